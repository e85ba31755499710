package ranks

import (
	"cmp"
	"path/filepath"
	"slices"
	"unique"

	"github.com/snapana/snapana/snapshot/sorting"
)

// stragglers finds who did fewer steps than others of whom a step is the same.
func (c *Comparison) stragglers() {
	by, all := map[string][]int{}, 0
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Steps > 0 && k.Failure == nil {
			by[k.Unit] = append(by[k.Unit], i)
			all++
		}
	}
	if all < fewest {
		return
	}
	for unit, rows := range by {
		if len(rows) < fewest {
			if len(by) > 1 {
				c.Uncounted = append(c.Uncounted, Uncounted{unit, rows})
			}
			continue
		}
		steps, begins, spans := make([]int64, len(rows)), []int64{}, []int64{}
		for i, row := range rows {
			k := &c.Ranks[row]
			steps[i] = k.Steps
			if k.began > 0 && k.ended > k.began {
				begins, spans = append(begins, k.began), append(spans, k.ended-k.began)
			}
		}
		m, spread := spreadOf(steps)
		began, span := median(begins), median(spans)
		for _, row := range rows {
			if k := &c.Ranks[row]; m-k.Steps > max(1, m/20, spread) {
				late := k.began - began
				if k.began <= 0 || late <= max(ClockError, span/10) {
					late = 0
				}
				c.Stragglers = append(c.Stragglers, Straggler{row, late, k.Steps, m})
			}
		}
	}
	sorting.By(c.Stragglers, func(a, b Straggler) int {
		return cmp.Or(cmp.Compare(a.Steps, b.Steps), cmp.Compare(c.Ranks[a.Rank].Number, c.Ranks[b.Rank].Number),
			cmp.Compare(a.Rank, b.Rank))
	})
	c.Stragglers = c.Stragglers[:min(len(c.Stragglers), told)]
	sorting.By(c.Uncounted, func(a, b Uncounted) int {
		return cmp.Or(cmp.Compare(len(b.Ranks), len(a.Ranks)), cmp.Compare(a.Unit, b.Unit))
	})
	c.Uncounted = c.Uncounted[:min(len(c.Uncounted), told)]
}

// hosts finds machines all of whose ranks stand out, while those of others do not.
func (c *Comparison) hosts() {
	for _, folder := range []bool{false, true} {
		by := map[string][]int{}
		for i := range c.Ranks {
			if k := &c.Ranks[i]; k.Active >= 0 {
				name := k.machine
				if folder {
					name = filepath.Dir(k.place())
				}
				by[name] = append(by[name], i)
			}
		}
		delete(by, "")
		if len(by) < 2 {
			continue
		}
		for name, rows := range by {
			if len(rows) < 2 || 2*len(rows) > c.Peaks {
				continue
			}
			h := Host{Name: name, Folder: folder, Ranks: rows, Least: c.Ranks[rows[0]].Over}
			for _, i := range rows {
				h.Least = min(h.Least, c.Ranks[i].Over)
			}
			if !slices.ContainsFunc(rows, func(i int) bool { return !c.Ranks[i].Stands }) {
				if folder {
					h.Name = filepath.Base(name)
				}
				c.Hosts = append(c.Hosts, h)
			}
		}
		break
	}
	sorting.By(c.Hosts, func(a, b Host) int {
		return cmp.Or(cmp.Compare(b.Least, a.Least), cmp.Compare(a.Name, b.Name), slices.Compare(a.Ranks, b.Ranks))
	})
	c.Hosts = c.Hosts[:min(len(c.Hosts), told)]
}

// odd finds settings in which a few ranks differ from most.
func (c *Comparison) odd() {
	type value = unique.Handle[string]
	by := map[value]map[value][]int{} // by name, by value, the rows
	for i := range c.Ranks {
		for _, s := range c.Ranks[i].settings {
			if by[s[0]] == nil {
				by[s[0]] = map[value][]int{}
			}
			by[s[0]][s[1]] = append(by[s[0]][s[1]], i)
		}
	}
	for name, values := range by {
		all, usual := 0, value{}
		for v, rows := range values {
			if all += len(rows); usual == (value{}) || len(rows) > len(values[usual]) {
				usual = v
			}
		}
		if all < fewest || 4*len(values[usual]) < 3*all {
			continue
		}
		for v, rows := range values {
			if v != usual {
				c.Odd = append(c.Odd, Odd{name.Value(), v.Value(), usual.Value(), rows})
			}
		}
	}
	sorting.By(c.Odd, func(a, b Odd) int {
		return cmp.Or(cmp.Compare(len(b.Ranks), len(a.Ranks)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	c.Odd = c.Odd[:min(len(c.Odd), told)]
}
