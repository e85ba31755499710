package ranks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot/sorting"
)

// Mesh is how the ranks of a run are laid out, as torch's init_device_mesh does: a rank is counted along the axes, of
// which the last changes fastest.
type Mesh struct {
	Axes []Axis `json:"axes"`
	// Inferred says that nobody gave the mesh: the peaks of the ranks repeat as if there were this one axis, whose name is
	// not known.
	Inferred bool `json:"inferred"`
}

// Axis is one dimension of a mesh: that of data, tensor or pipeline parallelism, for example.
type Axis struct {
	Name   string `json:"name"`   // "" where it was inferred
	Size   int    `json:"size"`   // places along it
	Stride int    `json:"stride"` // from a rank at one place to one at the next
	// Medians of the active peaks at each place, -1 where none is known; nil where the mesh has no ranks with numbers.
	Medians []int64 `json:"medians"`
	// Explains says that the peaks differ by the place on this axis: the medians differ by more than 5%, and most ranks
	// lie much closer to that of their place.
	Explains bool `json:"explains"`
}

// maxAxes bounds a mesh.
const maxAxes = 8

var errMesh = errors.New("expected names with sizes, like dp=8,tp=8,pp=4, the last counted fastest")

// ParseMesh reads a mesh like "dp=8,tp=8,pp=4".
func ParseMesh(text string) (*Mesh, error) {
	m := &Mesh{}
	size := 1
	for part := range strings.SplitSeq(text, ",") {
		name, number, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(number)
		switch {
		case !ok || err != nil || n < 1 || name == "" || len(name) > 32 || strings.ContainsAny(name, " \t\n"):
			return nil, errMesh
		case len(m.Axes) == maxAxes || n > maxExpected/size:
			return nil, fmt.Errorf("a mesh has %d axes and %d ranks at most", maxAxes, int(maxExpected))
		case slices.ContainsFunc(m.Axes, func(a Axis) bool { return a.Name == name }):
			return nil, fmt.Errorf("the axis %q is there twice", name)
		}
		size *= n
		m.Axes = append(m.Axes, Axis{Name: name, Size: n})
	}
	stride := 1
	for i := len(m.Axes) - 1; i >= 0; i-- {
		m.Axes[i].Stride = stride
		stride *= m.Axes[i].Size
	}
	return m, nil
}

// Size is how many ranks a mesh has.
func (m *Mesh) Size() int {
	n := 1
	for _, a := range m.Axes {
		n *= a.Size
	}
	return n
}

// Place is where a rank is on the axis.
func (a *Axis) Place(rank int) int { return rank / a.Stride % a.Size }

// numbered is a rank whose number and peak are known.
type numbered struct {
	number int
	active int64
}

// layout takes the mesh, or infers one, and puts ranks into classes by the axes that explain their peaks.
func (c *Comparison) layout(given *Mesh) {
	var all []numbered
	last := -1
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Number >= 0 {
			last = max(last, k.Number)
			if k.Active >= 0 {
				all = append(all, numbered{k.Number, k.Active})
			}
		}
	}
	if given == nil {
		size := cmp.Or(c.Expected, last+1)
		if c.Mesh = infer(all, size, c.MedianActive); c.Mesh == nil {
			return
		}
	} else {
		c.Mesh = &Mesh{Axes: slices.Clone(given.Axes)}
	}
	for i := range c.Mesh.Axes {
		a := &c.Mesh.Axes[i]
		a.Medians, a.Explains = explain(all, a, c.MedianActive)
	}
	if given != nil {
		c.Mesh.together(all, c.MedianActive)
	}
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Number >= 0 {
			for j := range c.Mesh.Axes {
				if a := &c.Mesh.Axes[j]; a.Explains {
					k.class = k.class*int32(a.Size) + int32(a.Place(k.Number))
				}
			}
			k.class++
		}
	}
}

// explain gives the medians of the peaks at each place of an axis, and whether the place tells the peak.
func explain(all []numbered, a *Axis, middle int64) (medians []int64, explains bool) {
	by := make([][]int64, a.Size)
	for _, k := range all {
		by[a.Place(k.number)] = append(by[a.Place(k.number)], k.active)
	}
	lowest, highest := int64(-1), int64(-1)
	medians = make([]int64, a.Size)
	for i, v := range by {
		medians[i] = median(v)
		if len(v) > 0 && (lowest < 0 || medians[i] < lowest) {
			lowest = medians[i]
		}
		highest = max(highest, medians[i])
	}
	spread := highest - lowest
	if spread <= middle/20 || len(all) < 2*a.Size {
		return medians, false
	}
	near := 0 // ranks that are close to the median of their place
	for _, k := range all {
		if m := medians[a.Place(k.number)]; 4*max(k.active-m, m-k.active) <= spread {
			near++
		}
	}
	return medians, 4*near >= 3*len(all)
}

// together says which axes tell the peaks when the others are taken into account: stages may differ, and within each the
// places of experts. Axes are taken one after the other, the one that leaves least first, as long as one takes a quarter of
// what is left, and its places differ by more than 5% of the median.
func (m *Mesh) together(all []numbered, middle int64) {
	rest := make([]numbered, len(all))
	before := int64(0)
	for i, k := range all {
		rest[i] = numbered{k.number, k.active - middle}
		before += max(k.active-middle, middle-k.active)
	}
	var taken []int
	spreads := make([]int64, len(m.Axes))
	for {
		best, least := -1, int64(0)
		var adds []int64
		for i := range m.Axes {
			a := &m.Axes[i]
			if len(all) < 2*a.Size || slices.Contains(taken, i) {
				continue
			}
			medians, left := split(rest, a)
			if best < 0 || left < least {
				best, least, adds = i, left, medians
			}
		}
		if best < 0 || 4*least > 3*before || slices.Max(adds)-slices.Min(adds) <= middle/20 {
			break
		}
		before = least
		taken = append(taken, best)
		spreads[best] = slices.Max(adds) - slices.Min(adds)
		for i := range rest {
			rest[i].active -= adds[m.Axes[best].Place(rest[i].number)]
		}
	}
	for _, i := range taken { // what one took before the others were known
		adds, _ := split(rest, &m.Axes[i])
		for j := range rest {
			rest[j].active -= adds[m.Axes[i].Place(rest[j].number)]
		}
	}
	for i := range m.Axes {
		near := 0
		for _, k := range rest {
			if 4*max(k.active, -k.active) <= spreads[i] {
				near++
			}
		}
		m.Axes[i].Explains = slices.Contains(taken, i) && 4*near >= 3*len(all)
	}
}

// split gives the medians at the places of an axis, 0 where no rank is, and the sum of what lies beside them.
func split(all []numbered, a *Axis) (medians []int64, left int64) {
	by := make([][]int64, a.Size)
	for _, k := range all {
		by[a.Place(k.number)] = append(by[a.Place(k.number)], k.active)
	}
	medians = make([]int64, a.Size)
	for i, v := range by {
		if len(v) == 0 {
			continue
		}
		medians[i] = median(v)
		for _, n := range v {
			left += max(n-medians[i], medians[i]-n)
		}
	}
	return medians, left
}

// Bounds of what is inferred.
const (
	maxPlaces = 64   // of an axis
	minAtOne  = 32   // ranks at one place: of fewer, those of one odd machine could pass for a place
	maxSample = 4096 // ranks that are looked at for each axis that might be
)

// infer looks for an axis by which the peaks of a run repeat: 85% of the ranks lie very close to the median of their place
// on it. Of several it is the one of which most do, and of those that differ by less than 1% of the ranks the one with
// the fewest places. nil where there is none.
func infer(all []numbered, size int, middle int64) *Mesh {
	if 10*len(all) < 9*size {
		return nil // too many are missing
	}
	some := all
	if len(all) > maxSample { // the ones that a hash chooses, which knows of no axis
		some = slices.Clone(all)
		sorting.By(some, func(a, b numbered) int { return cmp.Compare(scatter(a.number), scatter(b.number)) })
		some = some[:maxSample]
	}
	var best Axis
	most := 0
	for n := 2; n <= min(maxPlaces, size/minAtOne); n++ {
		for stride := size / n; stride > 0; stride-- {
			if size%(stride*n) != 0 {
				continue
			}
			a := Axis{Size: n, Stride: stride}
			if near := repeats(some, &a, middle); 100*near > 101*most {
				best, most = a, near
			}
		}
	}
	if most == 0 || repeats(all, &best, middle) == 0 {
		return nil
	}
	return &Mesh{Axes: []Axis{best}, Inferred: true}
}

// repeats is how many ranks lie very close to the median of their place on an axis, 0 where those are too few.
func repeats(all []numbered, a *Axis, middle int64) (near int) {
	medians, ok := explain(all, a, middle)
	if !ok || slices.Min(medians) < 0 {
		return 0
	}
	spread := slices.Max(medians) - slices.Min(medians)
	for _, k := range all {
		if m := medians[a.Place(k.number)]; 10*max(k.active-m, m-k.active) <= spread {
			near++
		}
	}
	if 20*near < 17*len(all) {
		return 0
	}
	return near
}

// scatter is a number that tells nothing of another but that they differ.
func scatter(n int) uint32 {
	h := uint32(n) * 0x9e3779b1
	h ^= h >> 15
	h *= 0x85ebca77
	return h ^ h>>13
}
