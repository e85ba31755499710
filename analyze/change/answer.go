package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Answer is what changes of a program come to. Bytes are integers, events count from 0.
type Answer struct {
	File     string          `json:"file"`
	Device   int             `json:"device"`
	Events   int             `json:"events"`
	Accuracy whatif.Accuracy `json:"licence"`
	Capacity whatif.Capacity `json:"capacity"`
	// Doubt is what the replay cannot know of a device that is not CUDA's, "" for nothing.
	Doubt string `json:"doubt,omitempty"`
	// Anew says that what was there before the trace is asked for again in both replays.
	Anew bool `json:"start_anew"`
	// Cut says that a request failed in the recording: what would have come behind it is not known, even where the run
	// went on, perhaps with less.
	Cut bool `json:"ends_at_failure"`
	// Early says that it failed before the first backward pass was over: what the rest of a step needs is not known.
	Early  bool    `json:"ends_in_first_pass"`
	Before Outcome `json:"before"`
	After  Outcome `json:"after"`
	// Instead is what the run comes to in another way of Zero: of stage 3 with FSDP, where parameters come and go in ways that
	// differ most, of stage 1 with torch's ZeroRedundancyOptimizer; nil where that is not asked for, or cannot be replayed. The
	// band covers it.
	Instead *Instead `json:"instead,omitempty"`
	// Band is where the reserved peak of After is expected, Confidence how narrow that is (High within 2%, Medium 6%), and
	// Doubts are why it is no narrower. Of what Search answers they are left empty.
	Band       Band               `json:"band"`
	Confidence finding.Confidence `json:"confidence"`
	Doubts     []Doubt            `json:"doubts"`

	Changes []Applied `json:"changes"` // in the order in which they are made
	Text    string    `json:"text"`    // the answer in one sentence
}

// Instead is another way to do what was asked for.
type Instead struct {
	Change        string `json:"change"` // what to ask for
	Of            string `json:"of"`     // in place of this
	Dealt         bool   `json:"-"`      // it is torch's ZeroRedundancyOptimizer, and not FSDP
	ReservedPeak  int64  `json:"reserved_peak"`
	AllocatedPeak int64  `json:"allocated_peak"`
}

// Outcome is what a replay came to.
type Outcome struct {
	ReservedPeak  int64 `json:"reserved_peak"` // on a device that is large enough
	AllocatedPeak int64 `json:"allocated_peak"`
	// Fits says whether the run fits into the capacity, nil where that is not known, for the reason of Unknown. Served
	// says whether every recorded request is served, nil without a capacity. Spare is what of the capacity is never
	// reserved, below 0 what more is needed for the peak of reserved memory.
	Fits    *bool           `json:"fits"`
	Unknown Unknown         `json:"fits_unknown"`
	Served  *bool           `json:"recorded_served"`
	Spare   int64           `json:"spare"`
	First   *whatif.Failure `json:"first_failure"` // with that capacity, nil for none
	// Short is what the capacity lacks, rounding not counted, if the pass in which a request failed goes on as the pass
	// before it went; 0 for nothing, or where that is not known.
	Short int64 `json:"expected_shortfall"`
}

// Unknown is why it is not known whether a run fits.
type Unknown string

// The reasons.
const (
	NoCapacity Unknown = "no_capacity" // the size of the device is not known
	FirstPass  Unknown = "first_pass"  // the recording ends in the first pass: what the rest of a step needs is not known
	Shortfall  Unknown = "shortfall"   // it ends within a pass that needs more than there is if it goes on like the one before
)

// settle says whether the run fits, as far as the recording tells.
func (o *Outcome) settle(early bool) {
	switch o.Fits, o.Unknown = nil, ""; {
	case o.Served == nil:
		o.Unknown = NoCapacity
	case *o.Served && early:
		o.Unknown = FirstPass
	case *o.Served && o.Short > 0:
		o.Unknown = Shortfall
	default:
		o.Fits = o.Served
	}
}

// Input is a recorded run with what is known of it.
type Input struct {
	Snapshot *snapshot.Snapshot
	Timeline *timeline.Timeline
	Steps    *steps.Result
	Uses     *category.Table
	Program  *whatif.Program
	Accuracy *whatif.Accuracy
	// Capacity is the memory of the device, of which Foreign are not to be had; 0 is that of the run, where that ran
	// out of memory.
	Capacity, Foreign int64

	known *run // nil until it is needed
}

// run is what changes need to know of the recording, which is read once.
func (in *Input) run() *run {
	if in.known == nil {
		in.known = read(in.Snapshot, in.Timeline, in.Steps, in.Uses)
	}
	return in.known
}

// NewInput looks at a run. It replays it under its own settings first.
func NewInput(ctx context.Context, s *snapshot.Snapshot, t *timeline.Timeline, rules []category.Rule) (*Input, error) {
	p, v, err := whatif.Load(ctx, s, t)
	if err != nil {
		return nil, err
	}
	st := steps.Find(s, t)
	uses := category.Find(s, t, &st, rules)
	return &Input{Snapshot: s, Timeline: t, Steps: &st, Uses: uses, Program: p, Accuracy: v}, ctx.Err()
}

// Ask makes changes to a run and replays it. It gives a *RefusedError where the file lacks what a change needs, and an
// *LineError for a line that no stack goes through.
func Ask(ctx context.Context, in *Input, changes []Change) (*Answer, error) {
	a, err := in.answer(ctx)
	if err != nil {
		return nil, err
	}
	var d *draft
	if d, a.Changes, a.After, err = in.try(ctx, changes, a); err != nil {
		return a, err
	}
	if a.Instead, err = in.instead(ctx, changes, a); err == nil {
		err = in.bound(ctx, d, a)
	}
	return a, err
}

// instead replays the changes with another way of Zero.
func (in *Input) instead(ctx context.Context, changes []Change, a *Answer) (*Instead, error) {
	i := slices.IndexFunc(changes, func(c Change) bool { return c.Kind == Zero && c.stage != 2 && !c.dealt })
	if i < 0 {
		return nil, nil
	}
	of, other, changes := changes[i].Text, changes[i], slices.Clone(changes)
	if other.stage == 1 {
		other.dealt, other.Text = true, fmt.Sprintf("%s=%s,%d", Zero, ofTorch, other.n)
	} else {
		other.Kind, other.Text = FSDP, string(FSDP)+strings.TrimPrefix(other.Text, string(Zero))
	}
	changes[i] = other
	_, _, o, err := in.try(ctx, changes, a)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return nil, nil
	}
	return &Instead{Change: other.Text, Of: of, Dealt: other.dealt, ReservedPeak: o.ReservedPeak, AllocatedPeak: o.AllocatedPeak}, err
}

// answer is one without changes.
func (in *Input) answer(ctx context.Context) (*Answer, error) {
	p := in.Program
	a := &Answer{File: in.Snapshot.Name, Device: p.Device, Events: in.Timeline.Trace.Len(), Accuracy: *in.Accuracy,
		Capacity: p.Room(in.Capacity, in.Foreign), Anew: p.StartReserved > 0, Cut: p.OOMs > 0, Early: in.run().failedIn() == 0,
		Doubt: p.Platform.Doubt, Changes: []Applied{},
		Doubts: []Doubt{}}
	var err error
	a.Before, err = in.replay(ctx, p, a)
	a.Before.settle(a.Early)
	return a, err
}

// try makes changes and replays what they come to, and what they do where the program does in the other way what it does not tell.
// Parameters of 16 bits are taken to be converted on the device, but where that is what needs most, which who makes parameters smaller
// avoids.
func (in *Input) try(ctx context.Context, changes []Change, a *Answer) (d *draft, all []Applied, o Outcome, err error) {
	var how way
	d, all, o, err = in.tryWay(ctx, changes, a, how)
	assuming := func(kinds ...AssumptionKind) int { // the first change that assumes one of some, -1 for none
		return slices.IndexFunc(all, func(c Applied) bool {
			return slices.ContainsFunc(c.Assumptions, func(k Assumption) bool { return slices.Contains(kinds, k.Kind) })
		})
	}
	if i := assuming(Converted); err == nil && i >= 0 {
		other, others, less, err := in.tryWay(ctx, changes, a, way{in16: true})
		if err != nil {
			return nil, nil, o, err
		}
		if share(o.AllocatedPeak-less.AllocatedPeak, o.AllocatedPeak) > sure {
			how.in16 = true
			d, all, o, less = other, others, less, o
		}
		all[i].other = less.ReservedPeak
	}
	if i := assuming(EvaluatesHalf, SamplesFull); err == nil && i >= 0 {
		how.evaluates = true
		_, _, other, err := in.tryWay(ctx, changes, a, how)
		if err != nil {
			return nil, nil, o, err
		}
		all[i].other = other.ReservedPeak
	}
	return d, all, o, err
}

// way is how a program does what no recording tells: in16 has a model whose parameters have 16 bits then come to the device with these,
// and not with 32 to be converted there, and evaluates the types of what it evaluates be the other ones, see evaluated.
type way struct{ in16, evaluates bool }

// tryWay is try for one of the ways.
func (in *Input) tryWay(ctx context.Context, changes []Change, a *Answer, how way) (d *draft, all []Applied, o Outcome, err error) {
	d, all, err = amend(ctx, in.run(), in.Program, changes, how)
	if err != nil {
		return nil, nil, o, err
	}
	if d.after, err = d.p.Edited(d.edits()); err != nil {
		return nil, nil, o, err
	}
	if o, err = in.replay(ctx, d.after, a); a.Capacity.Reservable > 0 {
		o.Short = max(d.ahead()-a.Capacity.Reservable, 0)
	}
	o.settle(a.Early)
	return d, all, o, err
}

// options are those of a replay of a program without a limit.
func (a *Answer) options(p *whatif.Program) whatif.Options {
	opt := whatif.Options{Conf: p.Recorded.Conf}
	if a.Anew {
		opt.Start = whatif.Anew
	}
	return opt
}

// replay runs a program without a limit, and with that of the device.
func (in *Input) replay(ctx context.Context, p *whatif.Program, a *Answer) (o Outcome, err error) {
	opt := a.options(p)
	free, err := p.Run(ctx, opt)
	if err != nil {
		return o, err
	}
	o.ReservedPeak, o.AllocatedPeak = free.ReservedPeak, free.AllocatedPeak
	limit := a.Capacity.Reservable
	if limit == 0 {
		return o, nil
	}
	fits := free.ReservedPeak <= limit
	if o.Spare = limit - free.ReservedPeak; !fits || !p.Recorded.Conf.Waits() {
		opt.Capacity, opt.Total, opt.UntilFailure = limit, cmp.Or(a.Capacity.Device, limit), true
		out, err := p.Run(ctx, opt)
		if err != nil {
			return o, err
		}
		fits = !out.StartFailed && out.First == nil
		if o.First = out.First; o.First != nil {
			o.First.Site = attribution.Site(in.Snapshot, o.First.Stack)
		}
	}
	o.Served = &fits
	return o, nil
}

// amend makes changes in the order of Kinds.
func amend(ctx context.Context, r *run, p *whatif.Program, changes []Change, how way) (*draft, []Applied, error) {
	d := newDraft(r, p)
	d.way = how
	changes = slices.Clone(changes)
	sorting.Stable(changes, func(a, b Change) int {
		return slices.Index(Kinds(), a.Kind) - slices.Index(Kinds(), b.Kind)
	})
	asks := func(kind Kind) bool {
		return slices.ContainsFunc(changes, func(c Change) bool { return c.Kind == kind })
	}
	d.single = asks(Foreach) && asks(InBackward)
	var all []Applied
	for i := range changes {
		for k := range changes[:i] {
			if changes[k].contradicts(&changes[i]) {
				other := []string{changes[k].Text}
				return nil, nil, &RefusedError{Change: changes[i].Text, Lacks: Contradiction, Lines: other}
			}
		}
		a, err := d.apply(ctx, &changes[i])
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		d.price(&changes[i], a)
		all = append(all, *a)
	}
	for i := range all {
		at := slices.Index(all[i].Assumptions, Assumption{Kind: Converted})
		switch {
		case at < 0:
		case how.in16:
			all[i].Assumptions[at].Kind = Loaded16
		default:
			d.convertParameters()
		}
	}
	return d, all, nil
}
