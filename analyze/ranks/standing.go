package ranks

import (
	"cmp"
	"slices"
	"unique"

	"github.com/snapana/snapana/snapshot/sorting"
)

// over says how far each rank lies above those like it, and whether it stands out.
func (c *Comparison) over() {
	peaks := map[int32][]int64{}
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Active >= 0 {
			peaks[k.class] = append(peaks[k.class], k.Active)
		}
	}
	type norm struct{ median, limit int64 }
	norms, standing := map[int32]norm{}, map[int32]int{}
	for class, v := range peaks {
		m, spread := spreadOf(v)
		norms[class] = norm{m, max(m/20, spread)}
	}
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if n := norms[k.class]; k.Active >= 0 {
			k.Over = k.Active - n.median
			k.Stands = len(peaks[k.class]) >= fewest && k.Over > n.limit
			if k.Stands {
				standing[k.class]++
			}
		}
	}
	for i := range c.Ranks { // half of all are how the program is laid out
		if k := &c.Ranks[i]; 2*standing[k.class] >= len(peaks[k.class]) {
			k.Stands = false
		}
	}
}

// fewest is of how many ranks one can stand out.
const fewest = 4

// spreadOf is the median of values and three of their standard deviations, as the median absolute deviation estimates
// them. It sorts v.
func spreadOf(v []int64) (middle, spread int64) {
	middle = median(v)
	deviation := make([]int64, len(v))
	for i, a := range v {
		deviation[i] = max(a-middle, middle-a)
	}
	return middle, int64(3 * 1.4826 * float64(median(deviation)))
}

// standing lists the outliers, with the places that they have more from.
func (c *Comparison) standing() {
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Stands {
			c.Outliers = append(c.Outliers, Outlier{Rank: i, Median: k.Active - k.Over})
		}
	}
	sorting.Stable(c.Outliers, func(a, b Outlier) int {
		return cmp.Compare(c.Ranks[b.Rank].Over, c.Ranks[a.Rank].Over)
	})
	c.Outliers = c.Outliers[:min(len(c.Outliers), told)]
	for i := range c.Outliers {
		c.Outliers[i].Sites = c.differences(&c.Ranks[c.Outliers[i].Rank])
	}
}

// differences are up to three places of which a rank has most more than the median rank like it has, and
// at least a tenth of what it has more in all. Of ranks without stacks nobody knows what they have from a place.
func (c *Comparison) differences(k *Rank) []Difference {
	all := []Difference{}
	if !slices.ContainsFunc(k.sites, func(s site) bool { return s.name != noStack }) {
		return all
	}
	values := make([]int64, 0, c.Peaks)
	for _, s := range k.sites {
		if s.bytes < k.Over/10 {
			break // the sites are in order
		}
		values = values[:0]
		for i := range c.Ranks {
			if o := &c.Ranks[i]; o.Active >= 0 && o.class == k.class && (o.placed() || s.name == noStack) {
				values = append(values, o.at(s.name))
			}
		}
		if m := median(values); len(values) >= fewest && s.bytes-m >= k.Over/10 {
			all = append(all, Difference{s.name.Value(), s.bytes, m})
		}
	}
	sorting.By(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(b.Bytes-b.Median, a.Bytes-a.Median), cmp.Compare(a.Site, b.Site))
	})
	return all[:min(len(all), 3)]
}

// extras finds what one rank has and the others like it have not.
func (c *Comparison) extras() {
	type key struct {
		class int32
		site  unique.Handle[string]
	}
	type most struct {
		rank          int
		bytes, second int64
		ranks         int // that list it
	}
	seen := map[key]*most{}
	size, least := map[int32]int{}, map[int32]int64{}
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if k.Active < 0 || !k.placed() {
			continue
		}
		size[k.class]++
		least[k.class] = max(least[k.class], k.least)
		for _, s := range k.sites {
			m := seen[key{k.class, s.name}]
			if m == nil {
				m = &most{rank: -1}
				seen[key{k.class, s.name}] = m
			}
			m.ranks++
			if s.bytes > m.bytes {
				m.rank, m.bytes, m.second = i, s.bytes, m.bytes
			} else {
				m.second = max(m.second, s.bytes)
			}
		}
	}
	for id, m := range seen {
		if m.ranks < size[id.class] {
			m.second = max(m.second, least[id.class])
		}
		k := &c.Ranks[max(m.rank, 0)]
		if size[id.class] >= fewest && m.rank >= 0 && !k.Stands && m.second <= m.bytes/10 && m.bytes >= k.Active/50 &&
			k.Over >= m.bytes/2 {
			c.Extras = append(c.Extras, Extra{m.rank, id.site.Value(), m.bytes, m.second})
		}
	}
	sorting.By(c.Extras, func(a, b Extra) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Site, b.Site))
	})
	c.Extras = c.Extras[:min(len(c.Extras), told)]
}

// median is the lower middle value, -1 of none. It sorts v.
func median(v []int64) int64 {
	if len(v) == 0 {
		return -1
	}
	slices.Sort(v)
	return v[(len(v)-1)/2]
}
