package whatif

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
)

// Accuracy says how well the replay under the recorded settings agrees with the trace.
type Accuracy struct {
	Requests     int `json:"requests"`
	SameRequests int `json:"same_requests"`  // their block was predicted at the recorded address
	Segments     int `json:"segment_events"` // maps and unmaps included
	// SameSegments were predicted with their size, and at their address where the driver does not
	// choose it.
	SameSegments int     `json:"same_segment_events"`
	Blocks       int     `json:"final_blocks"`      // in the final state or at the end of the replay
	SameBlocks   int     `json:"same_final_blocks"` // in both
	Share        float64 `json:"share"`             // of the requests that was reproduced, 0 to 1; 1 for none
	Trusted      bool    `json:"trusted"`           // predictions are permitted
	// FirstEvent is that of the first disagreement, the number of events when it is the final state
	// that differs, and -1 for none. After each the replay goes on from the recorded state.
	FirstEvent int    `json:"first_divergence"`
	What       string `json:"what"` // a sentence
	Why        string `json:"why"`  // the likely reason, a sentence
}

// minShare is the share of reproduced requests below which predictions are not to be trusted.
const minShare = 0.99

// Load makes the program of a timeline and validates it. Where the file does not tell the
// release that wrote it well enough, the order of equal blocks that agrees best is taken.
// It fails when ctx ends, and where the recording left out when blocks were born or freed.
func Load(ctx context.Context, s *snapshot.Snapshot, t *timeline.Timeline) (*Program, *Accuracy, error) {
	if t.Recording.BlocksUnknown() {
		return nil, nil, &snapshot.NothingError{Msg: fmt.Sprintf(
			"the recording left out %v events (skip_actions), and a replay needs them", t.Recording.LeftOut())}
	}
	p := NewProgram(s, t)
	best, err := p.Validate(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if best.FirstEvent < 0 || p.Recorded.Release != allocator.Newest && p.Recorded.Release < 212 {
		return p, best, nil
	}
	first := p.Recorded.Tie
	for tie := range allocator.TieSegment + 1 {
		if tie == first {
			continue
		}
		other := *p
		other.Recorded.Tie = tie
		v, err := other.Validate(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		if v.SameRequests > best.SameRequests {
			p, best = &other, v
		}
	}
	return p, best, nil
}

// rebuildShare is how much of the time for a file going on after disagreements may take, in percent, for each of up to
// four orders of equal blocks. rebuildSteps is what it takes to find a block of a state and put it back, and to give
// it back when the cache is emptied; a new allocator takes as long as asNew of them.
const (
	rebuildShare = 8
	rebuildSteps = 8
	asNew        = 32
)

// Validate replays a program under the recorded settings and compares it with its trace. It fails only
// when ctx ends.
func (p *Program) Validate(ctx context.Context, s *snapshot.Snapshot) (*Accuracy, error) {
	own := *p // which learns of streams and pools that only later states have
	own.streams, own.pools = slices.Clone(p.streams), slices.Clone(p.pools)
	p = &own
	v := &validator{p: p, x: newExtractor(p, s), r: p.newReplay()}
	v.v = Accuracy{Requests: p.Allocs, Share: 1, FirstEvent: -1}
	for i := range p.t.Trace.Len() {
		if releases(p.t.Trace, i) || acquires(p.t.Trace, i) {
			v.script = append(v.script, int32(i))
		}
	}
	v.v.Segments = len(v.script)
	v.work = budget.Share(s.Bytes, rebuildShare).Part(int64(p.t.Trace.Len()), events(s))
	err := v.run(ctx)
	if v.v.Requests > 0 {
		v.v.Share = float64(v.v.SameRequests) / float64(v.v.Requests)
	}
	v.v.Trusted = v.v.Share >= minShare
	return &v.v, err
}

// validator feeds a replay with the segments of the trace.
type validator struct {
	p      *Program
	x      *extractor
	v      Accuracy
	script []int32 // segment events that are still to come
	d      scripted
	r      *replay
	work   *budget.Steps // for going on after disagreements
	done   int           // the event up to which the replay was put into the recorded state
}

func (v *validator) run(ctx context.Context) error {
	p := v.p
	v.restart(p.start, nil, -1)
	for i := range p.ops {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		o := &p.ops[i]
		if int(o.event) <= v.done {
			continue
		}
		v.op(o)
		if v.d.kind == agrees {
			continue
		}
		v.differs(int(o.event), o)
		event := int(o.last())
		st := p.t.StateAt(event)
		blocks := len(st.Outside)
		for _, seg := range st.Segments {
			blocks += len(seg.Live)
		}
		if !v.work.Draw(rebuildSteps * (asNew + blocks + len(st.Segments) + len(p.streams) + len(p.pools))) {
			v.v.Why += fmt.Sprintf(" Behind event %d the two were not compared: there are too many differences to go on "+
				"after each.", event)
			return nil
		}
		v.restart(v.x.places(st), st.Outside, event)
	}
	v.final()
	return nil
}

// differs notes the first disagreement.
func (v *validator) differs(event int, o *op) {
	if v.v.FirstEvent < 0 {
		v.v.FirstEvent, v.v.What, v.v.Why = event, v.d.what, v.reason(o)
	}
}

// restart makes a new allocator with the recorded state after an event. What the replay holds
// besides is never asked for again, but for the blocks that the state has no place for.
func (v *validator) restart(places []place, outside []int32, event int) {
	v.d = scripted{t: v.p.t}
	v.r.begin(allocator.Options{Conf: v.p.Recorded.Conf, Tie: v.p.Recorded.Tie, Driver: &v.d})
	v.r.restore(places, event, nil)
	for _, row := range outside {
		v.r.held[row] = gone
	}
	v.done = event
	for len(v.script) > 0 && int(v.script[0]) <= event {
		v.script = v.script[1:]
	}
}

// op makes one operation with the segment events that belong to it: those before it that no
// other has used.
func (v *validator) op(o *op) {
	n := 0
	var k ask
	if o.asks() {
		k = v.p.asks[o.row]
	}
	if o.asks() || o.kind == opEmpty {
		for n < len(v.script) && v.script[n] <= o.last() {
			n++
		}
	}
	v.d.begin(k, o.kind == opFail, v.script, n)
	ok := v.r.step(o)
	v.script = v.script[n:]
	v.d.end()
	v.v.SameSegments += v.d.same
	switch {
	case o.kind == opAlloc && ok:
		l := &v.p.t.Lives[o.row]
		if got := v.r.a.Addr(allocator.Block(v.r.held[o.row])); got != l.Addr {
			v.d.faultf(otherBlock, "%s was allocated at %#x in the run, and at %#x in the replay.",
				units.Bytes(l.Requested), l.Addr, got)
			break
		}
		v.v.SameRequests++
	case o.kind == opAlloc:
		v.d.faultf(otherFailure, "A request for %s succeeded in the run and fails in the replay.", units.Bytes(k.bytes))
	case o.kind == opFail && ok:
		v.d.faultf(otherFailure, "A request for %s failed in the run and succeeds in the replay.", units.Bytes(k.bytes))
	}
}

// final compares the end with the dump's state.
func (v *validator) final() {
	type key struct {
		addr uint64
		size int64
		live bool
	}
	got := make(map[key]bool)
	for _, seg := range v.r.a.Segments() {
		at := seg.Addr
		for _, p := range seg.Pieces {
			if p.State != allocator.Unmapped {
				got[key{at, p.Size, p.State != allocator.Free}] = true
			}
			at += uint64(p.Size)
		}
	}
	s := v.x.s
	for seg := range s.SegmentsOf(v.p.Device) {
		for j := seg.Blocks.Start; j < seg.Blocks.End(); j++ {
			b := &s.Blocks[j]
			v.v.Blocks++
			if k := (key{b.Address, b.Size, b.State.Active()}); got[k] {
				v.v.SameBlocks++
				delete(got, k)
			}
		}
	}
	v.v.Blocks += len(got)
	if n := v.v.Blocks - v.v.SameBlocks; n > 0 {
		v.d.faultf(otherBlock, "%s of %s final blocks are only in the dump or only in the replay.",
			units.Count(int64(n)), units.Count(int64(v.v.Blocks)))
		v.differs(v.p.t.Trace.Len(), &op{kind: opEmpty})
	}
}

// reason guesses why the replay and the trace disagree at an operation, from what the file has.
func (v *validator) reason(o *op) string {
	s, p := v.x.s, v.p
	pool := o.asks() && p.asks[o.row].pool != 0 || slices.ContainsFunc(s.Segments,
		func(seg snapshot.Segment) bool { return seg.Pool != snapshot.PoolID{} })
	c := &p.t.Checks
	released := v.d.kind == otherReleases || v.d.kind == otherFailure
	switch {
	case c.Inconsistent() > 0 || c.Residual != 0:
		return "The trace contradicts itself or the final state: it was edited or filtered, or no allocator wrote it."
	case p.t.Recording.LeftOut() != 0:
		return fmt.Sprintf("The recording left out %v events (skip_actions): what they would say is partly inferred.",
			p.t.Recording.LeftOut())
	case p.Platform.Options != nil:
		return p.Platform.Doubt
	case p.Recorded.Conf.Collects() && released:
		return "garbage_collection_threshold is set: it acts under a memory fraction, which the file does not record."
	case pool:
		return p.Platform.Say("There are private pools (CUDA graphs or MemPool): the file does not record when " +
			"captures begin and end.")
	case !p.Recorded.Known:
		return "The file does not record the allocator settings (torch before 2.3): they may not have been the " +
			"defaults."
	case strings.Contains(p.Recorded.Text, "release_lock_on_cudamalloc:True"),
		strings.Contains(p.Recorded.Text, "release_lock_on_hipmalloc:True"):
		return "release_lock_on_cudamalloc lets threads use the allocator while another thread's request waits for " +
			"the driver."
	case released:
		return "A memory fraction that the file does not record, or memory released for a reason that the trace does " +
			"not show."
	case c.PreTraceBlocks > 0:
		return "What was there before the trace is rebuilt from what remained of it, and may have been laid out " +
			"differently."
	}
	return "Settings that changed while the program ran, or a release of torch with other rules."
}

// events is the number of events of all devices.
func events(s *snapshot.Snapshot) int64 {
	n := 0
	for i := range s.Traces {
		n += s.Traces[i].Len()
	}
	return int64(n)
}
