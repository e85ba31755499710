package change

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Found is what a search for changes came to, under which a run fits.
type Found struct {
	Answer // of the cheapest set that fits; without changes where none does
	// Tried are sets of changes: those that fit, the cheapest first, then each change by itself that is not enough, the
	// one that saves most first.
	Tried []Set `json:"tried"`
	// Refused are changes that the file lacks something for.
	Refused []Refused `json:"refused"`
	// All says that every set was tried that could be cheaper; else the search ended before.
	All bool `json:"all_tried"`
}

// Set is some changes that were made together.
type Set struct {
	Changes []string `json:"changes"`
	After   Outcome  `json:"after"`
	Time    float64  `json:"time_share"` // an estimate, as Cost has it
	Text    string   `json:"text"`

	applied []Applied
}

// rank is by how much a set is tried and named later than others: what it costs, and for each change that computes with
// fewer bits as much as a step that takes twice as long.
func (s *Set) rank() float64 {
	by := s.Time
	for i := range s.applied {
		if k := s.applied[i].Kind; k == DType || k == EightBit {
			by++
		}
	}
	return by
}

// Refused is a change that cannot be replayed.
type Refused struct {
	Change string `json:"change"`
	Text   string `json:"text"`
	Err    error  `json:"-"`
}

const (
	// mostSets bounds the sets that are replayed where nobody says how many, those of one change not counted, and
	// allowance is for how many times its input such a search may work: a replay takes up to a tenth of what is allowed.
	mostSets  = 20
	allowance = 5
	// atOnce bounds the sets that are replayed at a time, and with that the memory that this takes.
	atOnce = 2
)

// Candidates are the changes that are worth a try where nobody names any: those that one process can make by itself and
// that leave what it computes as it is, but for the bits of the optimizer's state.
func (in *Input) Candidates() []Change {
	r := in.run()
	texts := []string{string(FreeLeak)}
	for _, line := range r.evaluations() {
		texts = append(texts, string(NoGrad)+"="+line)
	}
	texts = append(texts, "foreach=off", string(InBackward))
	d := newDraft(r, in.Program)
	if kept := d.keeping(r.lists()); len(kept) > 0 {
		sorting.Stable(kept, func(a, b keeper) int { return cmp.Compare(b.saved, a.saved) })
		line, _, _ := strings.Cut(kept[0].line, " ")
		for _, n := range []int{kept[0].most / 4, kept[0].most / 2} {
			switch {
			case n == 1:
				texts = append(texts, "checkpoint="+line+".0")
			case n > 1:
				texts = append(texts, fmt.Sprintf("checkpoint=%s.0-%d", line, n-1))
			}
		}
		texts = append(texts, "checkpoint="+line+".*")
	}
	texts = append(texts, "accumulate=2", "accumulate=4", "accumulate=8", "offload=optimizer", "offload=activations",
		"dtype=bf16:optimizer state", string(EightBit))
	var out []Change
	for _, text := range slices.Compact(texts) {
		if c, err := Parse(text); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// evaluations are the lines of the program that call what keeps graphs which nothing goes back through, and nothing that a backward
// pass needs, those that keep most first: few, and of no more than a twentieth of the peak none.
func (r *run) evaluations() []string {
	const few, part = 2, 20
	trained := map[snapshot.FrameID]bool{}
	seen := make([]bool, len(r.stacks))
	for i := range r.passes {
		for _, row := range r.savedRows(&r.passes[i]) {
			if stack := r.code(row); !seen[stack] {
				seen[stack] = true
				for _, id := range r.stack(stack) {
					trained[id] = true
				}
			}
		}
	}
	var lines []string
	keeps := map[string]int64{} // in the pass in which it is most
	for i := range r.passes {
		p := &r.passes[i]
		of := map[string]int64{}
		for row := p.rows.from; row < p.rows.to; row++ {
			if r.unused[row] {
				of[r.callerOf(row, trained)] += r.t.Lives[row].Rounded
			}
		}
		for line, n := range of {
			keeps[line] = max(keeps[line], n)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(keeps)) {
		if line != "" && keeps[line]*part > r.t.PeakAllocated.Bytes {
			lines = append(lines, line)
		}
	}
	sorting.Stable(lines, func(a, b string) int { return cmp.Compare(keeps[b], keeps[a]) })
	return lines[:min(len(lines), few)]
}

// callerOf is the innermost line of the program that calls the modules which make a row, and none that is trained; "" for none.
func (r *run) callerOf(row int32, trained map[snapshot.FrameID]bool) string {
	for _, id := range r.outside(r.stack(r.code(row))) {
		if c := frames.Of(r.s, id); c.Has(frames.Python) && !c.IsLibrary() && !trained[id] {
			line, _, _ := strings.Cut(frames.Bare(attribution.FrameText(r.s, id)), " ")
			return line
		}
	}
	return ""
}

// mostNamed bounds what evidence has of changes that fit, and of those that do not.
const mostNamed = 3

// tooSlow is the share of a step's time above which a change is no advice.
const tooSlow = 5

// closeTo is the part of the capacity that must be left where a request failed: one in so many.
const closeTo = 50

// enough reports whether a replay fits, and leaves something where more may come behind.
func (f *Found) enough(o *Outcome) bool {
	return !f.Early && o.Served != nil && *o.Served && o.Short == 0 && (!f.Cut || o.Spare*closeTo >= f.Capacity.Reservable)
}

// Evidence is the search as a finding keeps it: of sets of the same kinds of changes the first.
func (f *Found) Evidence() *finding.Rescue {
	out := &finding.Rescue{Fit: []finding.Amended{}, Short: []finding.Amended{}, Ends: f.Cut, Early: f.Early}
	fit, short := map[string]bool{}, map[string]bool{} // by kinds
	tried := f.Tried
	if f.Early { // nothing is known to be enough: what leaves most comes first
		tried = slices.Clone(tried)
		sorting.Stable(tried, func(a, b Set) int { return cmp.Compare(b.After.Spare, a.After.Spare) })
	}
	for i := range tried {
		t := &tried[i]
		kinds := ""
		v := finding.Amended{Saves: units.Size(f.Before.ReservedPeak - t.After.ReservedPeak), Spare: units.Size(t.After.Spare),
			Slower: t.Time}
		for k := range t.applied {
			a := &t.applied[k]
			kinds += string(a.Kind) + " "
			v.Changes = append(v.Changes, finding.ProgramChange{Change: a.Change, Kind: string(a.Kind), Line: a.Line,
				Modules: a.Modules, Of: a.OfThose})
		}
		switch {
		case *t.After.Served && (!f.Early && !f.enough(&t.After) || t.Time > tooSlow):
		case *t.After.Served && len(out.Fit) < mostNamed && !fit[kinds]:
			if len(out.Fit) == 0 && slices.EqualFunc(f.Changes, t.applied, func(a, b Applied) bool { return a.Change == b.Change }) {
				v.Low, v.High, v.Confidence = units.Size(f.Band.Low), units.Size(f.Band.High), f.Confidence
			}
			out.Fit = append(out.Fit, v)
			fit[kinds] = true
		case !*t.After.Served && v.Saves > 0 && len(out.Short) < mostNamed && !short[kinds]:
			out.Short = append(out.Short, v)
			short[kinds] = true
		}
	}
	return out
}

// part of a program that a change is about. Of each, a set has one change.
func (c *Change) part() string {
	switch {
	case c.Kind == Checkpoint, c.Kind == Offload && c.what == activations:
		return "saved"
	case c.Kind == Foreach, c.Kind == InBackward, c.Kind == EightBit, c.Kind == Offload:
		return "step"
	case c.Kind == DType:
		return c.Text
	case c.Kind == Del, c.Kind == NoGrad, c.Kind == Free:
		return c.Text
	}
	return string(c.Kind)
}

// excludes reports whether a set has no use for two changes together.
func (c *Change) excludes(o *Change) bool { return c.part() == o.part() || c.contradicts(o) }

// contradicts reports whether two changes cannot be made together. An optimizer that steps in backward needs complete
// gradients, which smaller batches do not give; one change of a kind replaces another.
func (c *Change) contradicts(o *Change) bool {
	a, b := c.Kind, o.Kind
	return a == InBackward && b == Accumulate || a == Accumulate && b == InBackward ||
		a == EightBit && o.ofState() || b == EightBit && c.ofState() ||
		a == InBackward && (b == FSDP || o.dealt) || b == InBackward && (a == FSDP || c.dealt) || a == b && a == Accumulate ||
		(a == Zero || a == FSDP) && (b == Zero || b == FSDP)
}

// ofState reports whether a change is of the optimizer alone, and leaves nothing for one with 8 bits.
func (c *Change) ofState() bool {
	return c.Kind == DType && slices.Contains(c.of, category.OptimizerState) || c.Kind == Offload && c.what == optimizer ||
		c.Kind == InBackward || c.Kind == Foreach
}

// Search finds the cheapest set of changes under which a run fits into its capacity, which must be known. It tries those
// of Candidates unless some are given, each by itself and then together, the cheapest sets first, up to as many as most
// beside the single ones; 0 is a usual number.
func Search(ctx context.Context, in *Input, changes []Change, most int) (*Found, error) {
	a, err := in.answer(ctx)
	if err != nil {
		return nil, err
	}
	if meter := budget.From(ctx); most == 0 {
		meter.Allow(allowance * meter.Bytes())
	}
	f := &Found{Answer: *a, Tried: []Set{}, Refused: []Refused{}, All: true}
	s := &searcher{in: in, found: f}
	if changes == nil {
		if f.Before.Served != nil && *f.Before.Served {
			return f, nil
		}
		changes = in.Candidates()
	}
	if err := s.singles(ctx, changes); err != nil {
		return nil, err
	}
	if !f.Early { // nothing that is found then is known to be enough
		if err := s.sets(ctx, cmp.Or(most, mostSets)); err != nil {
			return nil, err
		}
	}
	s.finish()
	if s.best == nil {
		return f, nil
	}
	var d *draft
	if d, f.Changes, f.After, err = in.try(ctx, s.best, &f.Answer); err == nil {
		err = in.bound(ctx, d, &f.Answer)
	}
	return f, err
}

type searcher struct {
	in    *Input
	found *Found

	usable []Change
	costs  []float64
	best   []Change // nil for none
	least  float64  // what it costs
}

// singles tries each change by itself.
func (s *searcher) singles(ctx context.Context, changes []Change) error {
	sets := make([][]Change, len(changes))
	for i := range changes {
		sets[i] = changes[i : i+1]
	}
	for i, t := range s.tries(ctx, sets) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case t.err != nil:
			s.found.Refused = append(s.found.Refused, Refused{Change: changes[i].Text, Err: t.err})
			continue
		}
		s.usable, s.costs = append(s.usable, changes[i]), append(s.costs, t.set.rank())
		s.keep(sets[i], t.set)
	}
	return nil
}

// trial is what came of a set of changes.
type trial struct {
	set   *Set
	err   error
	fault any // what it panicked with
}

// tries makes and replays sets of changes, some at a time, and gives what came of them in their order.
func (s *searcher) tries(ctx context.Context, sets [][]Change) iter.Seq2[int, trial] {
	return func(yield func(int, trial) bool) {
		s.in.run() // read once, before several ask for it
		done := 0
		for some := range slices.Chunk(sets, atOnce) {
			stage.At(ctx, stage.Trying, done, len(sets))
			trials := make([]trial, len(some))
			var group sync.WaitGroup
			for i := range some {
				group.Go(func() {
					defer func() { trials[i].fault = recover() }()
					trials[i].set, trials[i].err = s.try(ctx, some[i])
				})
			}
			group.Wait()
			for i := range trials {
				if trials[i].fault != nil {
					panic(trials[i].fault) // for who asked to recover
				}
				if !yield(done+i, trials[i]) {
					return
				}
			}
			done += len(some)
		}
	}
}

// try makes a set of changes and replays it.
func (s *searcher) try(ctx context.Context, set []Change) (*Set, error) {
	_, applied, after, err := s.in.try(ctx, set, &s.found.Answer)
	out := &Set{After: after, applied: applied}
	for i := range applied {
		out.Changes = append(out.Changes, applied[i].Change)
		out.Time += applied[i].Cost.Time
	}
	return out, err
}

// keep notes what came of a set.
func (s *searcher) keep(changes []Change, set *Set) {
	fits := set.After.Served != nil && *set.After.Served
	if s.found.enough(&set.After) && (s.best == nil || set.rank() < s.least) {
		s.best, s.least = slices.Clone(changes), set.rank()
	}
	if fits || len(changes) == 1 {
		s.found.Tried = append(s.found.Tried, *set)
	}
}

// mostTogether bounds the changes of one set.
const mostTogether = 4

// sets tries changes together, the cheapest sets first, until one fits.
func (s *searcher) sets(ctx context.Context, most int) error {
	type some struct {
		of   []int
		cost float64
	}
	all := []some{{}}
	for i := range s.usable {
		for _, b := range all[:len(all):len(all)] {
			no := func(k int) bool { return s.usable[k].excludes(&s.usable[i]) }
			if len(b.of) < mostTogether && !slices.ContainsFunc(b.of, no) {
				all = append(all, some{append(slices.Clone(b.of), i), b.cost + s.costs[i]})
			}
		}
	}
	all = slices.DeleteFunc(all, func(b some) bool { return len(b.of) < 2 })
	sorting.Stable(all, func(a, b some) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(len(a.of), len(b.of)))
	})
	if k := slices.IndexFunc(all, func(b some) bool { return s.best != nil && b.cost >= s.least }); k >= 0 {
		all = all[:k]
	}
	s.found.All = len(all) <= most
	sets := make([][]Change, min(len(all), most))
	for k := range sets {
		for _, i := range all[k].of {
			sets[k] = append(sets[k], s.usable[i])
		}
	}
	for k, t := range s.tries(ctx, sets) {
		if s.best != nil && all[k].cost >= s.least {
			s.found.All = true
			return nil
		}
		if t.err != nil {
			return t.err
		}
		s.keep(sets[k], t.set)
	}
	s.found.All = s.found.All || s.best != nil && all[len(sets)].cost >= s.least
	return s.strongest(ctx)
}

// strongest tries together, of each part, the change that saves most, where nothing else fits.
func (s *searcher) strongest(ctx context.Context) error {
	if s.best != nil {
		return nil
	}
	var set []Change
	singles := slices.DeleteFunc(slices.Clone(s.found.Tried), func(t Set) bool { return len(t.Changes) > 1 })
	sorting.Stable(singles, func(a, b Set) int { return cmp.Compare(a.After.ReservedPeak, b.After.ReservedPeak) })
	for i := range singles {
		k := slices.IndexFunc(s.usable, func(c Change) bool { return c.Text == singles[i].Changes[0] })
		if !slices.ContainsFunc(set, func(c Change) bool { return c.excludes(&s.usable[k]) }) {
			set = append(set, s.usable[k])
		}
	}
	if len(set) < 2 || s.found.All && len(set) <= mostTogether {
		return nil // it was tried
	}
	out, err := s.try(ctx, set)
	if err == nil {
		s.keep(set, out)
	}
	return err
}

// finish sorts what was tried.
func (s *searcher) finish() {
	fits := func(t *Set) int {
		if t.After.Served != nil && *t.After.Served {
			return 0
		}
		return 1
	}
	sorting.Stable(s.found.Tried, func(a, b Set) int {
		if fits(&a) == 0 && fits(&b) == 0 {
			return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(len(a.Changes), len(b.Changes)))
		}
		return cmp.Or(fits(&a)-fits(&b), cmp.Compare(a.After.ReservedPeak, b.After.ReservedPeak))
	})
}
