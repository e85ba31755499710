package diff

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/frames"
)

// Causes that are about where and when the peaks of the two sides are. What is live differs there for that alone, so that
// it says little about changes of the code that allocated it.

// parts finds a peak that one side has in another part of the program: most of its tensors between forward and backward
// come from below a function through which none of the other side's come, and the other way round. It is enough that one
// side has such a function where that also has no backward pass: a call that was put in between does not change that.
func (s *sorter) parts() {
	from, to := s.r.part(s.a, s.b), s.r.part(s.b, s.a)
	c := Cause{Kind: Part}
	switch {
	case from == to, from != nil && to != nil && from.name == to.name: // none, or one that was moved
		return
	case from == nil && (goesBack(s.b) || !goesBack(s.a)), to == nil && (goesBack(s.a) || !goesBack(s.b)):
		return
	}
	if from != nil {
		c.From = from.String()
	}
	if to != nil {
		c.To = to.String()
	}
	s.take(c, func(p *piece) bool {
		return isSaved(p.any()) || p.A != nil && isSaved(p.A)
	})
}

// part is the outermost function of the program through which more than half of a side's tensors between forward and
// backward come, and none of those of the other side; nil for none.
func (r *Result) part(f, other *footprint.Footprint) *function {
	there := map[function]bool{}
	for i := range other.Groups {
		if g := &other.Groups[i]; isSaved(g) && g.Stack >= 0 {
			for _, row := range other.Stacks[g.Stack] {
				there[r.onB(other, &other.Frames[row])] = true
			}
		}
	}
	bytes := map[function]int64{}
	var outermost []function
	for i := range f.Groups {
		g := &f.Groups[i]
		if !isSaved(g) || g.Stack < 0 {
			continue
		}
		stack := f.Stacks[g.Stack]
		for k := len(stack) - 1; k >= 0; k-- {
			v := &f.Frames[stack[k]]
			if at := r.onB(f, v); v.Origin == frames.User && !there[at] {
				at = placeOf(v).function // by its own name
				if bytes[at] == 0 {
					outermost = append(outermost, at)
				}
				bytes[at] += g.Rounded
				break
			}
		}
	}
	for _, at := range outermost {
		if bytes[at] > saved(f)/2 {
			return &at
		}
	}
	return nil
}

// onB is the function of a side's frame as side B has it.
func (r *Result) onB(f *footprint.Footprint, v *attribution.Frame) function {
	at := placeOf(v).function
	if f == r.A {
		at = r.moves.function(at)
	}
	return at
}

// stepping finds a peak that one side has between the passes, such as in the optimizer's step, where it has no activations:
// what the other has of them says nothing of those of this one.
func (s *sorter) stepping() {
	a, b := activations(s.a), activations(s.b)
	f, other, c := s.a, s.b, Cause{Kind: Between}
	to := &c.From
	if b < a {
		f, other, to = s.b, s.a, &c.To
	}
	trains := func(g footprint.Group) bool { return g.Use == category.Gradient || g.Use == category.OptimizerState }
	if min(a, b) > max(a, b)/50 && !(optimizes(f) && !optimizes(other)) || 4*max(a, b) < abs(s.r.Delta()) ||
		!slices.ContainsFunc(f.Groups, trains) || f.Top < 0 || !f.Groups[f.Top].Known {
		return
	}
	top := &f.Groups[f.Top]
	*to = top.Site
	s.take(c, func(p *piece) bool {
		return isSaved(p.any()) || p.A != nil && isSaved(p.A) ||
			p.law == alone && p.any().Site == top.Site && p.use() == top.Use
	})
}

// optimizes reports whether the optimizer runs at a side's moment.
func optimizes(f *footprint.Footprint) bool {
	if f.Top < 0 || f.Groups[f.Top].Stack < 0 {
		return false
	}
	return slices.ContainsFunc(f.Stacks[f.Groups[f.Top].Stack], func(row int32) bool {
		return strings.Contains(f.Frames[row].File, "torch/optim/")
	})
}

// progress finds a peak that comes at another time of the backward pass: more is left of what it frees and less is there of
// what it makes, or the other way round.
func (s *sorter) progress() {
	fits := func(p *piece) bool {
		return p.use() == category.Gradient || p.law == multiplied && isSaved(p.any())
	}
	var gradients, others int64
	for i := range s.left {
		switch p := &s.left[i]; {
		case p.use() == category.Gradient:
			gradients += p.delta
		case fits(p):
			others += p.delta
		}
	}
	if gradients > 0 != (others > 0) && 4*min(abs(gradients), abs(others)) > max(abs(gradients), abs(others)) {
		s.take(Cause{Kind: Progress}, fits)
	}
}

// goesBack reports whether most of a side's activations wait for a backward pass.
func goesBack(f *footprint.Footprint) bool {
	var saved int64
	for i := range f.Groups {
		if f.Groups[i].Use == category.AutogradSaved {
			saved += f.Groups[i].Rounded
		}
	}
	return saved > activations(f)/2
}

// activations are what a side has between forward and backward, but for gradients.
func activations(f *footprint.Footprint) (n int64) {
	for i := range f.Groups {
		if g := &f.Groups[i]; isSaved(g) && g.Use != category.Gradient {
			n += g.Rounded
		}
	}
	return n
}
