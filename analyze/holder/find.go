package holder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Line is one device of the snapshot.
type Line struct {
	*timeline.Timeline
	Growth []ghost.Growth
	Use    func(row int32) string // what a life is for, see package category
}

// Input is what Find joins.
type Input struct {
	Lines   []Line
	Holders *sidecar.Holders
	Before  *sidecar.Holders // an earlier dump to compare, or nil
	Steps   int64            // of the program between the two, 0 unknown
}

// mostExact is for how many holders, the largest, what many objects free together is exact.
const mostExact = 32

// Find joins holders and blocks.
func Find(in Input) *Result {
	var lines []*timeline.Timeline
	for _, l := range in.Lines {
		lines = append(lines, l.Timeline)
	}
	mem, ofStore, blocks := join(lines, in.Holders)
	g := newGraph(in.Holders, mem, ofStore)
	groups := g.group()
	f := &finder{g: g, in: in}
	slices.SortStableFunc(groups, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i := range groups {
		f.measure(&groups[i], i < mostExact)
	}
	r := &Result{Notes: f.notes()}
	f.close(r, blocks)
	if in.Before != nil {
		f.compare(groups)
	}
	for i := range groups {
		f.judge(&groups[i])
	}
	slices.SortStableFunc(groups, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(rank(a.Standing), rank(b.Standing)), cmp.Compare(b.Grown, a.Grown),
			cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.key(), b.key()))
	})
	r.Holders = slices.DeleteFunc(groups, func(h Holder) bool { return h.Count == 0 })
	r.Unproven = f.unproven(r.Holders)
	for i := range in.Lines {
		for k := range in.Lines[i].Growth {
			if shares := r.Of(&in.Lines[i].Growth[k]); len(shares) > 1 {
				for _, s := range shares {
					s.Holder.PerLap, s.Holder.Laps = s.PerLap, s.Growth.Laps
				}
			}
		}
	}
	return r
}

func rank(s Standing) int {
	switch s {
	case Ghost:
		return 0
	case Other:
		return 1
	}
	return 2
}

// finder measures holders.
type finder struct {
	g    *graph
	in   Input
	tree *tree
	sums []int64

	growth map[site]*ghost.Growth
}

// site is a stack on a device.
type site struct {
	device int
	stack  snapshot.StackID
}

func (f *finder) line(device int) *Line {
	for i := range f.in.Lines {
		if f.in.Lines[i].Device == device {
			return &f.in.Lines[i]
		}
	}
	return nil
}

// close counts what is not joined.
func (f *finder) close(r *Result, blocks map[int][]int32) {
	held := map[int]map[int32]bool{}
	for i := range f.g.memory {
		m := &f.g.memory[i]
		if m.row < 0 {
			if m.device >= 0 { // else it is host memory
				r.Stray.add(m.storage)
			}
			continue
		}
		if held[m.device] == nil {
			held[m.device] = map[int32]bool{}
		}
		held[m.device][m.row] = true
	}
	for i := range f.in.Lines {
		l := &f.in.Lines[i]
		d := Device{Ordinal: l.Device}
		unheld := map[snapshot.StackID]Sum{}
		for _, row := range blocks[l.Device] {
			life := &l.Lives[row]
			d.Allocated.add(life.Rounded)
			if held[l.Device][row] {
				d.Held.add(life.Rounded)
				continue
			}
			d.Unheld.add(life.Rounded)
			s := unheld[life.Stack]
			s.add(life.Rounded)
			unheld[life.Stack] = s
		}
		d.UnheldSites = bySize(unheld)
		r.Devices = append(r.Devices, d)
	}
}

// notes says what the recorder could not see.
func (f *finder) notes() []string {
	out := slices.Clone(f.in.Holders.Notes)
	for what, n := range f.in.Holders.Dropped {
		if n > 0 {
			out = append(out, fmt.Sprintf("the recorder left out %d %s beyond its limit", n, strings.ReplaceAll(what, "_", " ")))
		}
	}
	slices.Sort(out)
	return out
}
