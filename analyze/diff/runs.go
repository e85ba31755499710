package diff

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Spread is the active memory of several runs of one side, in bytes.
type Spread struct {
	Runs int   `json:"runs"`
	Low  int64 `json:"low"`
	High int64 `json:"high"`
}

func spreadOf(values []int64) Spread {
	return Spread{len(values), slices.Min(values), slices.Max(values)}
}

// apart reports whether the values of two sides do not overlap: what lies between them is more than chance.
func (s Spread) apart(o Spread) bool { return s.Low > o.High || o.Low > s.High }

// CompareRuns compares several runs with several others. Of each side the run with the median of active bytes stands
// for all, the lower one of two; the others tell which differences are no larger than those within a side. Where one is
// cut, as that of a report is, all are: what a cut one has no stacks of is not new in one that has them.
func CompareRuns(a, b []*footprint.Footprint) *Result {
	all := slices.Concat(a, b)
	if slices.ContainsFunc(all, (*footprint.Footprint).IsCut) {
		for i, f := range all {
			all[i] = f.Cut()
		}
	}
	a, b = all[:len(a)], all[len(a):]
	r := compare(medianOf(a), medianOf(b))
	if len(a) > 1 || len(b) > 1 {
		r.runs = [2][]*footprint.Footprint{a, b}
		x, y := spreadOf(actives(a)), spreadOf(actives(b))
		r.SpreadA, r.SpreadB = &x, &y
		if x, y := unlikeRuns(a, r.A), unlikeRuns(b, r.B); x+y != "" {
			r.Guards = append(r.Guards, Guard{Runs, x, y})
		}
	}
	return r
}

func actives(list []*footprint.Footprint) []int64 {
	var out []int64
	for _, f := range list {
		out = append(out, f.Totals.Active)
	}
	return out
}

func medianOf(list []*footprint.Footprint) *footprint.Footprint {
	sorted := slices.Clone(list)
	sorting.Stable(sorted, func(a, b *footprint.Footprint) int { return cmp.Compare(a.Totals.Active, b.Totals.Active) })
	return sorted[(len(sorted)-1)/2]
}

// Noise reports whether the difference is no larger than those between runs of one side.
func (r *Result) Noise() bool { return r.SpreadA != nil && !r.SpreadA.apart(*r.SpreadB) }

// Moved reports whether code that is not compared may be another line than that of its name on the other side: lines moved,
// files or functions were renamed.
func (r *Result) Moved(by attribution.Kind) bool {
	return r.moves.any() && (by == attribution.BySite || by == Mixed)
}

// RowOf finds the rows of a table for groups of a side that are not compared, of another run or another moment: -1 for none.
// By stacks there is none, and where code moved there is none for a line that is not compared: who bears its name may be
// another line.
func (r *Result) RowOf(rows []Row, by attribution.Kind, side int) func(g *footprint.Group) int {
	if by == attribution.ByStack {
		return func(*footprint.Group) int { return -1 }
	}
	index := map[string]int{}
	for i := range rows {
		index[rows[i].Name] = i
	}
	there := map[string]string{} // names of rows by those of the side
	split := map[string]bool{}   // those that lead to several rows, and so to none
	for i := range r.Pairs {
		p := &r.Pairs[i]
		if g := [2]*footprint.Group{p.A, p.B}[side]; g != nil {
			name, row := nameOf(by, g, g), nameOf(by, g, p.any())
			split[name] = split[name] || there[name] != "" && there[name] != row
			there[name] = row
		}
	}
	moved := r.Moved(by)
	return func(g *footprint.Group) int {
		name, known := nameOf(by, g, g), false
		if to := there[name]; to != "" {
			name, known = to, true
		}
		if at, ok := index[name]; ok && (known || !moved) && !split[nameOf(by, g, g)] {
			return at
		}
		return -1
	}
}

// spread fills in what the rows have in the other runs. Code goes by its name on its own side.
func (r *Result) spread(rows []Row, by attribution.Kind) {
	if r.SpreadA == nil || by == attribution.ByStack {
		return
	}
	values := make([][2][]int64, len(rows))
	for side, runs := range r.runs {
		rowOf := r.RowOf(rows, by, side)
		for _, f := range runs {
			sums := make([]int64, len(rows))
			for i := range f.Groups {
				g := &f.Groups[i]
				if at := rowOf(g); at >= 0 {
					sums[at] += g.Rounded
				}
			}
			for i, n := range sums {
				values[i][side] = append(values[i][side], n)
			}
		}
	}
	for i := range rows {
		rows[i].Noise = !spreadOf(values[i][0]).apart(spreadOf(values[i][1]))
	}
}
