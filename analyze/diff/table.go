package diff

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/footprint"
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

func stateOf(a, b int64) State {
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
	var out []Row
	index := map[string]int{}
	row := func(key, name string) *Row {
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, Row{Name: name, How: Exact})
		}
		return &out[i]
	}
	for i := range r.Pairs {
		p := &r.Pairs[i]
		for side, g := range []*footprint.Group{p.A, p.B} {
			if g == nil {
				continue
			}
			key, name := "", nameOf(by, g, p.any())
			if by == attribution.ByStack {
				key = "pair " + strconv.Itoa(i)
			}
			v := row(cmp.Or(key, name), name)
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
		v.Delta, v.State = v.B-v.A, stateOf(v.A, v.B)
	}
	r.spread(out, by)
	slices.SortStableFunc(out, func(x, y Row) int {
		return cmp.Or(cmp.Compare(abs(y.Delta), abs(x.Delta)), cmp.Compare(max(y.A, y.B), max(x.A, x.B)),
			cmp.Compare(x.Name, y.Name))
	})
	return out
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
