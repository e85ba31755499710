package diff

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Row is the memory of one name on both sides.
type Row struct {
	Name  string `json:"name"`
	A     int64  `json:"a"` // rounded bytes
	B     int64  `json:"b"`
	Delta int64  `json:"delta"` // B less A
	State State  `json:"state"`
	How   How    `json:"matched"` // least of what the row has, of code that both sides have
	Noise bool   `json:"noise"`   // of several runs: the difference is no larger than those within a side
}

// State says what became of a row from side A to side B.
type State string

// The states of rows.
const (
	Grown  State = "grown"
	Shrunk State = "shrunk"
	Came   State = "new"
	Left   State = "gone"
	Same   State = "same"
)

// StateOf is that of a bytes on side A and b bytes on side B.
func StateOf(a, b int64) State {
	switch {
	case a == b:
		return Same
	case a == 0:
		return Came
	case b == 0:
		return Left
	case b > a:
		return Grown
	}
	return Shrunk
}

// Kinds lists what Table groups by.
func Kinds() []attribution.Kind {
	return []attribution.Kind{attribution.ByCategory, attribution.BySite, attribution.ByStack, attribution.ByModule, Mixed}
}

// Mixed groups by category and site.
const Mixed attribution.Kind = "category,site"

// Table sums the pairs up, largest differences first. The rows sum up to both sides' active bytes. Code that is on both
// sides goes by its name on side B.
func (r *Result) Table(by attribution.Kind) []Row {
	rows, _ := r.Rows(by)
	return rows
}

// Rows is Table, and says in which of its rows the two sides of each pair are, -1 for a side that there is not.
func (r *Result) Rows(by attribution.Kind) (out []Row, of [][2]int32) {
	index := map[string]int{}
	row := func(key, name string) int {
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, Row{Name: name, How: Exact})
		}
		return i
	}
	of = make([][2]int32, len(r.Pairs))
	for i := range r.Pairs {
		p := &r.Pairs[i]
		of[i] = [2]int32{-1, -1}
		for side, g := range []*footprint.Group{p.A, p.B} {
			if g == nil {
				continue
			}
			key, name := "", nameOf(by, g, p.any())
			if by == attribution.ByStack {
				key = "pair " + strconv.Itoa(i)
			}
			at := row(cmp.Or(key, name), name)
			of[i][side] = int32(at)
			v := &out[at]
			if side == 0 {
				v.A += g.Rounded
			} else {
				v.B += g.Rounded
			}
			if p.How != Alone {
				v.How = min(v.How, p.How)
			}
		}
	}
	for i := range out {
		v := &out[i]
		v.Delta, v.State = v.B-v.A, StateOf(v.A, v.B)
	}
	r.spread(out, by)
	order := make([]int32, len(out))
	for i := range order {
		order[i] = int32(i)
	}
	sorting.Stable(order, func(a, b int32) int {
		x, y := &out[a], &out[b]
		return cmp.Or(cmp.Compare(abs(y.Delta), abs(x.Delta)), cmp.Compare(max(y.A, y.B), max(x.A, x.B)),
			cmp.Compare(x.Name, y.Name))
	})
	sorted, place := slices.Clone(out), make([]int32, len(out))
	for to, from := range order {
		sorted[to], place[from] = out[from], int32(to)
	}
	for i := range of {
		for side, at := range of[i] {
			if at >= 0 {
				of[i][side] = place[at]
			}
		}
	}
	return sorted, of
}

// nameOf is the name of memory, of code that goes by the name of another group.
func nameOf(by attribution.Kind, g, code *footprint.Group) string {
	switch by {
	case attribution.ByCategory:
		return g.Use.String()
	case attribution.ByModule:
		return cmp.Or(code.Module, "(outside of module calls)")
	case Mixed:
		return g.Use.String() + ", " + code.Site
	}
	return code.Site
}
