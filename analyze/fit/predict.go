package fit

import (
	"cmp"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// nearest is the recording whose values are nearest to a point, by their ratios; one that failed only if all did. Where loops make
// more passes with higher values it is one of lower values, if that predicts the nearest one better than the other way around: to
// add passes may be more exact than to leave some out.
func (f *fitter) nearest(p Point, without int) int {
	best := f.nearestOf(p, func(k int) bool { return k != without })
	if len(p) > 1 || without >= 0 || f.all[best].At[0] <= p[0] || !f.loops() {
		return best
	}
	lower := f.nearestOf(p, func(k int) bool { return f.all[k].At[0] <= p[0] && !f.all[k].failed() })
	if lower >= 0 && f.misses(lower, best) <= f.misses(best, lower) {
		return lower
	}
	return best
}

// misses is by what share the allocated peak of a recording is other than is predicted from another one, 1 where that is not known.
func (f *fitter) misses(from, to int) float64 {
	k := [2]int{from, to}
	if off, ok := f.extends[k]; ok {
		return off
	}
	off := 1.0
	if r := f.all[to]; !r.failed() {
		if out, err := f.replay(f.model(from), r.At, mid, nil, 0); err == nil {
			off = math.Abs(float64(out.AllocatedPeak)/float64(max(r.Timeline.PeakAllocated.Bytes, 1)) - 1)
		}
	}
	f.extends[k] = off
	return off
}

// nearestOf is the nearest of some recordings, -1 for none.
func (f *fitter) nearestOf(p Point, counts func(k int) bool) int {
	best, least := -1, math.Inf(1)
	for k, r := range f.all {
		if !counts(k) {
			continue
		}
		far := away(p, r.At)
		if r.failed() {
			far += 1e6
		}
		if far < least {
			best, least = k, far
		}
	}
	return best
}

func (r *recording) failed() bool { return len(r.Timeline.OOMs) > 0 }

// program is a model's program at a point. The last ones are kept: several settings are tried at the same points.
func (f *fitter) program(m *model, p Point, s side) (*whatif.Program, error) {
	const most = 6
	for _, made := range f.made {
		if made.m == m && made.s == s && slices.Equal(made.p, p) {
			return made.program, nil
		}
	}
	q, err := m.program.Edited(m.edits(p, s))
	if err != nil {
		return nil, err
	}
	if len(f.made) == most {
		f.made = f.made[1:]
	}
	f.made = append(f.made, made{m, slices.Clone(p), s, q})
	return q, nil
}

type made struct {
	m       *model
	p       Point
	s       side
	program *whatif.Program
}

// options are those of a replay under some settings, nil for those of the question, with so much to reserve, 0 for no limit.
func (f *fitter) options(set *whatif.Setting, capacity int64) whatif.Options {
	o := whatif.Options{Conf: f.conf, Start: whatif.Anew, Capacity: capacity, UntilFailure: capacity > 0}
	if set != nil {
		o.Conf = set.Conf
	}
	if capacity > 0 {
		o.Total = max(f.total, capacity)
	}
	return o
}

// replay runs a model at a point.
func (f *fitter) replay(m *model, p Point, s side, set *whatif.Setting, capacity int64) (*whatif.Outcome, error) {
	q, err := f.program(m, p, s)
	if err != nil {
		return nil, err
	}
	return q.Run(f.ctx, f.options(set, capacity))
}

// likely are the sides that are as likely as each other.
func (m *model) likely() []side {
	if m.chance {
		return []side{mid, even, turned}
	}
	return []side{mid}
}

// replays are the runs of a model at a point that are as likely as each other, the one that needs least first.
func (f *fitter) replays(m *model, p Point, set *whatif.Setting, capacity int64) ([]*whatif.Outcome, error) {
	sides := m.likely()
	if slices.Equal(p, m.At) {
		sides = []side{mid} // as it was recorded
	}
	outs := make([]*whatif.Outcome, len(sides))
	for i, s := range sides {
		var err error
		if outs[i], err = f.replay(m, p, s, set, capacity); err != nil {
			return nil, err
		}
	}
	sorting.Stable(outs, func(a, b *whatif.Outcome) int { return cmp.Compare(a.ReservedPeak, b.ReservedPeak) })
	return outs, nil
}

// fits reports whether the program runs at a point. The margin is the share of the capacity that is left free, below 0
// one that it is more.
func (f *fitter) fits(p Point, s side, set *whatif.Setting, margin float64) (bool, *whatif.Outcome, error) {
	m := f.model(f.nearest(p, -1))
	capacity := int64(float64(f.capacity) / (1 + margin))
	if s.bounds() {
		out, err := f.replay(m, p, s, set, capacity)
		return err == nil && served(out), out, err
	}
	outs, err := f.replays(m, p, set, capacity)
	if err != nil {
		return false, nil, err
	}
	sorting.Stable(outs, func(a, b *whatif.Outcome) int { return cmp.Compare(failed(a), failed(b)) })
	out := middle(outs)
	return served(out), out, nil
}

func middle(outs []*whatif.Outcome) *whatif.Outcome { return outs[len(outs)/2] }

func failed(out *whatif.Outcome) int {
	if served(out) {
		return 0
	}
	return 1
}

func served(out *whatif.Outcome) bool { return !out.StartFailed && out.First == nil }

// segment is the least that the allocator reserves: any request that a recording lacks may be one more.
const segment = 2 << 20

// unseen is the share by which a peak may be off for each doubling of the values beyond those recorded, and each halving
// below them: kernels take other workspaces, or more of it, and programs other paths. It is more where the recordings are
// nearer to each other than a doubling.
const unseen = 0.08

// data is the share by which a peak may be off where sizes depend on the data, and half of it more for each doubling of the
// values beyond those recorded.
const data = 0.15

// guessed is the same of a single recording, up and down, and from its value on.
const guessed = 0.05

// looped is the same where a step makes more requests with higher values, as loops over time do: of those that are added the
// order is known, and what passes of a loop have in common is not always.
const looped = 0.2

// unseen is by what share a peak may be off at a point, for what no recording shows.
func (f *fitter) unseen(p Point) float64 {
	if f.loops() {
		return looped * (f.doublings(p) + f.halvings(p))
	}
	beyond := f.doublings(p)
	if len(f.all) > 1 {
		beyond += f.halvings(p)
	}
	return unseen * beyond / math.Sqrt(min(f.spread(), 1))
}

// spread is by how many doublings the recordings differ, 1 where there is one.
func (f *fitter) spread() float64 {
	if len(f.all) == 1 {
		return 1
	}
	n := 0.0
	for _, r := range f.all[1:] {
		n = max(n, away(r.At, f.all[0].At)/math.Ln2)
	}
	return n
}

// loops reports whether recordings differ much in how many requests a step makes.
func (f *fitter) loops() bool {
	const much = 0.15
	least, most := math.Inf(1), 0.0
	for _, r := range f.all {
		n := float64(len(r.Timeline.Lives)-r.warm) / float64(r.numSteps())
		least, most = min(least, n), max(most, n)
	}
	return most > (1+much)*least
}

// layouts are the least and the most bytes to reserve for so many that are allocated, if the layout were as good or as bad as
// any that was recorded. What a segment has to spare counts for less the more there are: it goes with the root. It may stay
// as large where less is allocated.
func (f *fitter) layouts(allocated int64) (least, most int64) {
	least, most = math.MaxInt64, allocated
	for _, r := range f.all {
		if r.failed() {
			continue
		}
		was := max(r.Timeline.PeakAllocated.Bytes, 1)
		spare := float64(r.Timeline.PeakReserved.Bytes - was)
		root := math.Sqrt(float64(allocated) / float64(was))
		least = min(least, allocated+int64(spare*root))
		most = max(most, allocated+int64(spare*max(root, 1)))
	}
	return least, most
}

// doublings is by how many doublings the values are beyond the highest ones recorded, 0 for none.
func (f *fitter) doublings(p Point) float64 {
	n := 0.0
	for i := range p {
		n += f.doublingsOf(p, i)
	}
	return n
}

// doublingsOf is doublings of one of the values.
func (f *fitter) doublingsOf(p Point, value int) float64 {
	most := int64(0)
	for _, r := range f.all {
		most = max(most, r.At[value])
	}
	return max(math.Log2(float64(p[value])/float64(most)), 0)
}

// halvings is by how many halvings the first value is below the lowest one recorded, 0 for none.
func (f *fitter) halvings(p Point) float64 {
	least := int64(math.MaxInt64)
	for _, r := range f.all {
		least = min(least, r.At[0])
	}
	return max(math.Log2(float64(least)/float64(p[0])), 0)
}

// off is the share by which a peak may be higher or lower than predicted at a point.
func (f *fitter) off(p Point) float64 { return (1+f.marginAt(p))*(1+f.unseen(p)) - 1 }

// begun is the same at least where recordings begin in the middle of the run, and the layout before is not known.
const begun = 0.08

// marginAt is by what share a prediction may be off.
func (f *fitter) marginAt(p Point) float64 {
	off := f.margin
	if slices.ContainsFunc(f.all, (*recording).midway) {
		off = max(off, begun)
	}
	switch {
	case len(f.all) == 1:
		off = max(off, guessed*(1+math.Abs(math.Log2(float64(p[0])/float64(f.all[0].At[0])))))
	case f.model(f.nearest(p, -1)).depends:
		off = max(off, data*(1+f.doublings(p)/2))
	}
	return off
}

// predict says what a run at a point needs.
func (f *fitter) predict(p Point) (Prediction, error) {
	k := f.nearest(p, -1)
	m := f.model(k)
	out := Prediction{At: p[0], Values: p, From: k}
	outs, err := f.replays(m, p, nil, 0)
	if err != nil {
		return out, err
	}
	out.ReservedPeak, out.AllocatedPeak = middle(outs).ReservedPeak, middle(outs).AllocatedPeak
	out.ReservedLow, out.ReservedHigh = outs[0].ReservedPeak, outs[len(outs)-1].ReservedPeak
	if m.doubt {
		for _, s := range []side{low, high} {
			o, err := f.replay(m, p, s, nil, 0)
			if err != nil {
				return out, err
			}
			out.ReservedLow, out.ReservedHigh = min(out.ReservedLow, o.ReservedPeak), max(out.ReservedHigh, o.ReservedPeak)
		}
	}
	if m.depends || len(f.all) == 1 { // another layout may need no more than what is allocated
		out.ReservedLow = min(out.ReservedLow, out.AllocatedPeak)
	}
	for i, r := range f.all {
		if slices.Equal(r.At, p) && !r.failed() && r.program.Recorded.Conf == f.conf {
			out.Recorded = true
			out.From = i
		}
	}
	for j, r := range f.all { // in the order of requests of the others, too
		if j == k || r.failed() || out.Recorded {
			continue
		}
		o, err := f.replay(f.model(j), p, mid, nil, 0)
		if err != nil {
			return out, err
		}
		out.ReservedLow, out.ReservedHigh = min(out.ReservedLow, o.ReservedPeak), max(out.ReservedHigh, o.ReservedPeak)
	}
	if f.doublings(p) > 0 || len(f.all) == 1 {
		least, most := f.layouts(out.AllocatedPeak)
		out.ReservedLow, out.ReservedHigh = min(out.ReservedLow, least), max(out.ReservedHigh, most)
	}
	off, slack := f.off(p), int64(segment)
	if out.Recorded { // the allocator may have had a layout from before the trace
		rec := f.all[out.From].Timeline.PeakReserved.Bytes
		out.ReservedLow, out.ReservedHigh = min(out.ReservedPeak, rec), max(out.ReservedPeak, rec)
		off, slack = 0, 0
	}
	out.ReservedLow = max(int64(float64(out.ReservedLow)/(1+off))-slack, 0)
	out.ReservedHigh = int64(float64(out.ReservedHigh)*(1+off)) + slack
	_, event := m.peak(p, mid)
	out.Peak = m.place(event)
	if f.capacity == 0 {
		return out, nil
	}
	fits := out.ReservedPeak <= f.capacity
	if !fits {
		if fits, _, err = f.fits(p, mid, nil, 0); err != nil {
			return out, err
		}
	}
	out.Fits, out.Sure = &fits, fits && out.ReservedHigh <= f.capacity
	if !out.Sure {
		s, margin := high, off
		if !fits {
			s, margin = low, -off/(1+off)
		}
		same, _, err := f.fits(p, s, nil, margin)
		if err != nil {
			return out, err
		}
		out.Sure = same == fits
	}
	return out, nil
}

// place says where the run is at an event, that of an allocation.
func (r *recording) place(event int) Place {
	at := Place{Event: event, Step: -1}
	row, ok := slices.BinarySearchFunc(r.Timeline.Lives, event, func(l timeline.Life, e int) int { return int(l.Born) - e })
	if event < 0 || !ok {
		return at
	}
	if r.codes == nil {
		r.codes = attribution.NewCodes(r.Snapshot, r.Timeline)
	}
	at.Step = r.steps.At(event)
	at.Site, at.Module, _ = r.codes.Names(r.codes.Of(int32(row)))
	at.Phase = r.phase(r.Timeline.Lives[row].Stack)
	return at
}

var phases = [...]string{
	frames.InProgram: "", frames.InForward: "forward", frames.InRecompute: "backward (recomputed)",
	frames.InBackward: "backward", frames.InOptimizer: "optimizer",
}

// phase is what the program does at a stack.
func (r *recording) phase(stack snapshot.StackID) string {
	if r.phases == nil {
		r.phases = make([]string, r.Snapshot.Stacks.Len()+1)
		for i := range r.phases {
			r.phases[i] = phaseOf(r.Snapshot, snapshot.StackID(i))
		}
	}
	return r.phases[stack]
}

func phaseOf(s *snapshot.Snapshot, stack snapshot.StackID) string {
	if stack == snapshot.EmptyStack {
		return "backward" // a thread without Python frames, of the autograd engine
	}
	return phases[frames.PhaseOf(s, stack)]
}
