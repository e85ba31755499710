// Package lever finds what would lower a run's peak, and by how much.
//
// A candidate is a set of lives of which parts are cut out: temporaries that another way of doing the same does
// not make, or the end of a life after which nobody needs it. What a candidate gives is computed, by one sweep over
// the trace: the highest active bytes before less those after, wherever in the trace they are by then. So the bytes
// of the blocks are never taken for the gain, and a peak that only moves gives nothing.
//
//	foreach       the temporaries that foreach optimizers of torch.optim make for all parameters at once,
//	              which foreach=False makes for one at a time (torch/optim, _multi_tensor_* and _single_tensor_*)
//	optimizer     temporaries of an optimizer that is the program's own
//	generations   what a call outside of modules returned, kept until the same call returns again
//	gradients     gradients that live on after the optimizer's step, through a forward pass
//	held          memory from long before the phase of the peak that is freed long after it
//	category      the largest category at the peak
//
// No file tells when memory is read, so all but the first two are inferred, and say so. Tried: temporaries of other
// code; what a layer needs for its result looks the same, and nothing can be done about that.
package lever

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// A lever that gives less is not worth a change.
const (
	leastBytes   = 64 << 20
	leastPercent = 3
)

// Find lists the levers of a device, the largest gain first, then the largest use of memory. Uses are the categories of
// its lives; at is the state at the last failure, or else at the peak, and sums are what its memory is for. The result
// is empty for a file that has no trace or contradicts itself.
func Find(s *snapshot.Snapshot, t *timeline.Timeline, uses *category.Table, at *timeline.State,
	sums []category.Sum) []finding.Lever {
	c := &t.Checks
	if t.Trace.Len() < 2 || c.Inconsistent() != 0 || c.Residual != 0 || t.PeakActive.Bytes < leastBytes {
		return nil
	}
	f := &finder{s: s, t: t, uses: uses, peak: t.PeakActive.Bytes, event: t.PeakActive.Event}
	for i := range t.OOMs {
		if o := &t.OOMs[i]; o.After.Active+o.Requested > f.peak {
			f.peak, f.event = o.After.Active+o.Requested, o.Event
		}
	}
	f.least = max(leastBytes, f.peak*leastPercent/100)
	if at.Event != f.event {
		at = t.StateAt(f.event)
		sums = uses.Sums(t, at)
	}
	f.at = at
	for _, row := range at.Rows() {
		f.rows = append(f.rows, row)
	}
	slices.Sort(f.rows)
	f.warm, _ = slices.BinarySearchFunc(t.Lives, 0, compareBirth)

	f.optimizers()
	f.generations()
	f.gradients()
	f.held()
	sorting.Stable(f.levers, func(a, b finding.Lever) int { return cmp.Compare(b.Gain, a.Gain) })
	f.largest(sums)
	return f.levers
}

// finder is what candidates are found in.
type finder struct {
	s    *snapshot.Snapshot
	t    *timeline.Timeline
	uses *category.Table
	at   *timeline.State // that of the peak
	rows []int32         // live there, in order of birth
	warm int             // the first row of Lives that the trace allocated

	peak  int64 // the highest of active bytes, with requests that failed
	event int   // after which it is needed
	least int64 // that a lever must give

	need  []int64 // active bytes before the trace and after each event, with requests that failed; at the first cut
	delta []int64 // by event, what a candidate changes from there on
	kinds []kind  // by stack, worked out when asked

	levers []finding.Lever
}

// cut takes a life out of the events from..to-1.
func (f *finder) cut(l *timeline.Life, from, to int32) {
	if from < to {
		f.add(-l.Rounded, from, to)
	}
}

// add is more memory after the events from..to-1.
func (f *finder) add(bytes int64, from, to int32) {
	if f.delta == nil {
		f.need = f.t.ActiveLevels().Values()
		for i := range f.t.OOMs {
			f.need[f.t.OOMs[i].Event+1] += f.t.OOMs[i].Requested
		}
		f.delta = make([]int64, len(f.need)+1)
	}
	f.delta[from+1] += bytes
	f.delta[to+1] -= bytes
}

// measure gives the peak with all that was cut and added, and the event after which it holds.
func (f *finder) measure() (top int64, event int) {
	if f.delta == nil {
		return f.peak, f.event
	}
	var sum int64
	for i, n := range f.need {
		if sum += f.delta[i]; n+sum > top {
			top, event = n+sum, i-1
		}
	}
	return top, event
}

// end is the event that ends a life, or the trace's length.
func (f *finder) end(l *timeline.Life) int32 {
	if l.Freed >= 0 {
		return l.Freed
	}
	return int32(f.t.Trace.Len())
}

// weigh sweeps a candidate and keeps it if it gives enough.
func (f *finder) weigh(v finding.Lever) {
	after, _ := f.measure()
	clear(f.delta)
	if f.peak-after >= f.least && v.Blocks > 0 {
		f.keep(v, after)
	}
}

// keep adds a lever with the peak that it gives.
func (f *finder) keep(v finding.Lever, after int64) {
	v.Device, v.Event = f.t.Device, f.event
	v.Before, v.After, v.Gain = units.Size(f.peak), units.Size(after), units.Size(f.peak-after)
	f.levers = append(f.levers, v)
}

// count adds a block of the peak to a lever.
func count(v *finding.Lever, l *timeline.Life) {
	v.Blocks++
	v.Bytes += units.Size(l.Rounded)
}

// lives are those that the trace allocated, in order of birth.
func (f *finder) lives() []timeline.Life { return f.t.Lives[f.warm:] }

func compareBirth(l timeline.Life, event int32) int { return cmp.Compare(l.Born, event) }

// atPeak reports whether a life is live at the peak.
func (f *finder) atPeak(l *timeline.Life) bool { return l.LiveAfter(f.event) }

func (f *finder) site(stack snapshot.StackID) string { return attribution.Site(f.s, stack) }

// largest adds the largest category of the peak, of which the site is known, with the site that made most of it.
func (f *finder) largest(sums []category.Sum) {
	if len(sums) == 0 || sums[0].Category == category.Unknown || len(sums[0].Stacks) == 0 ||
		sums[0].Rounded < f.least {
		return
	}
	v := finding.Lever{Kind: finding.LargestUse, Category: sums[0].Category.String(),
		Blocks: sums[0].Count, Bytes: units.Size(sums[0].Rounded), Confidence: finding.Medium, Inferred: true}
	for i := range sums {
		v.InUse += units.Size(sums[i].Rounded)
	}
	site, bytes := sums[0].Site(f.s)
	v.Site, v.AtSite = site, units.Size(bytes)
	losses := map[string]int64{}
	for _, from := range sums[0].Stacks {
		losses[f.loss(from.Stack)] += from.Bytes
	}
	for loss, bytes := range losses {
		if 2*units.Size(bytes) > v.Bytes {
			v.Function = loss
		}
	}
	v.Recomputed = frames.Recomputes(f.s)
	f.keep(v, f.peak)
}

// loss is the outermost loss function in a stack, "" for none.
func (f *finder) loss(stack snapshot.StackID) (name string) {
	for _, id := range f.s.Stacks.Get(stack) {
		if frames.Of(f.s, id).Part() == frames.Loss {
			name = f.name(id)
		}
	}
	return name
}
