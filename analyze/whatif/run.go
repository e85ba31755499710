// Package whatif says what other allocator settings, or another device, would have done to a
// recorded run: it replays the requests of a trace on the allocator of package allocator
// (analyze/allocator/SPEC.md 5.12).
//
//  1. NewProgram takes from a timeline what the run asked of its allocator: requests, frees and
//     empty_cache calls, without what the allocator made of them.
//  2. Program.Validate replays it under the recorded settings with the recorded segment
//     addresses, and compares every block's address with the trace. The share that agrees is the
//     accuracy of everything below.
//  3. Program.Run replays it under other settings, with a device of its own.
//  4. Program.Edited makes one with other requests, which is run in the same way.
//  5. Sweep runs many settings, Advise picks one if it wins by a margin, and
//     SmallestCapacity searches for the smallest device that serves every request.
//
// A replay answers for the allocator, not for the program: requests are taken to come in the
// same order and sizes whatever the settings are, which holds unless the program reads its own
// memory statistics or stops at a failure. Where the trace goes on after a request that the
// replay cannot serve, the replay goes on without that block.
package whatif

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
)

// Start says what becomes of the blocks from before the trace.
type Start uint8

const (
	// Keep leaves them and their segments where they were recorded. What earlier settings did to
	// them stays: the answer is cautious.
	Keep Start = iota
	// Anew asks for them again, by address, from an allocator that has nothing reserved, as if
	// the settings had been in force from the beginning. What was freed between them before the
	// trace leaves no holes: the answer is hopeful.
	Anew
)

// Options are the conditions of a replay.
type Options struct {
	Conf  allocator.Conf
	Start Start
	// Capacity is the memory that the allocator can reserve in bytes, 0 for no limit.
	Capacity int64
	// Total is the memory of the device, by which a memory fraction goes; 0 is Capacity.
	Total int64
	// UntilFailure stops at the first request that fails.
	UntilFailure bool
	// OtherWay has the driver give higher addresses to new segments where it gave lower ones in the run, see Program.Given, or lower ones.
	OtherWay bool
	// Curve samples the reserved and allocated bytes at so many points, 0 for none.
	Curve int

	until int // the last event to replay, 0 for all
}

// Outcome is what a replay came to. Bytes are rounded sizes unless they are said to be
// requested. The event of a peak is that of the request or free with which it first held, -1 for
// the start.
type Outcome struct {
	ReservedPeak  int64 `json:"reserved_peak"`
	ReservedEvent int   `json:"reserved_peak_event"`
	AllocatedPeak int64 `json:"allocated_peak"`
	Waste         int64 `json:"waste_peak"` // highest value of reserved minus allocated, between requests
	WasteEvent    int   `json:"waste_peak_event"`
	ReservedEnd   int64 `json:"reserved_end"`
	DeviceAllocs  int64 `json:"device_allocs"` // cudaMalloc calls and maps within the trace
	DeviceFrees   int64 `json:"device_frees"`  // cudaFree calls and unmaps
	Retries       int64 `json:"retries"`       // requests for which the whole cache was given back

	Failures int   `json:"failures"`
	New      int   `json:"new_failures"` // requests that the run served; unless it catches the error it ends there
	Served   int   `json:"served"`       // requests that failed in the run and do not here
	served   []int // their events
	// Assumed is the event of the first request that failed in the run, is served here and has others after it, nil for
	// none. Nothing records when the program would have freed its memory, or what it would have asked for next: from
	// there on the figures are estimates, for which it is freed at once.
	Assumed *int `json:"assumed_from"`

	StartFailed bool     `json:"start_failed"` // the blocks from before the trace did not even fit
	First       *Failure `json:"first_failure"`
	Largest     *Failure `json:"largest_failure"`

	Curve []Sample        `json:"-"`
	Stats allocator.Stats `json:"-"` // at the end; peaks and counts are those of the trace

	largest int64 // of the allocator
}

// Calls is how often the allocator asks the device, which takes time.
func (o *Outcome) Calls() int64 { return o.DeviceAllocs + o.DeviceFrees }

// Failure is a request that nothing could serve.
type Failure struct {
	Event     int              `json:"event"`
	Requested int64            `json:"requested"`     // bytes asked for; rounded ones where it failed in the run too
	Recorded  bool             `json:"failed_in_run"` // it failed in the run too
	Stack     snapshot.StackID `json:"-"`
	Site      string           `json:"site"` // of Stack, as Ask gives it
	// The state at that moment, after everything was given back.
	Reserved  int64 `json:"reserved"`
	Allocated int64 `json:"allocated"`
}

// Sample covers the events First..Last of a curve with the highest values in them.
type Sample struct {
	First     int   `json:"first"`
	Last      int   `json:"last"`
	Reserved  int64 `json:"reserved"`
	Allocated int64 `json:"allocated"`
}

// ErrAsync is why backend:cudaMallocAsync has no outcome.
var ErrAsync = errors.New("backend:cudaMallocAsync is another allocator, inside the driver: it cannot be replayed")

// ErrNoSize is why a share of the device has no outcome where nobody says how large the device is.
var ErrNoSize = errors.New("a memory fraction needs the size of the device")

// Replayable is the setting of a text, as Setting has it, if it can be replayed: else the error is ErrAsync or, unless the size
// of the device is known, ErrNoSize.
func (p *Program) Replayable(text string, sized bool) (Setting, error) {
	set, err := p.Setting(text)
	switch {
	case err != nil:
	case set.Conf.Fraction < 1 && !sized:
		err = ErrNoSize
	case set.Conf.Async:
		err = ErrAsync
	}
	return set, err
}

// checkEvery is after how many operations a replay looks whether it is still wanted: about a
// millisecond.
const checkEvery = 1 << 13

// Run replays a program. It gives ctx's error when that ends before the replay does.
func (p *Program) Run(ctx context.Context, o Options) (*Outcome, error) {
	if o.Conf.Async {
		return nil, ErrAsync
	}
	device := &allocator.Device{Total: o.Capacity}
	out, r := &Outcome{}, p.newReplay()
	r.begin(allocator.Options{Conf: o.Conf, Tie: p.Recorded.Tie, Total: cmp.Or(o.Total, o.Capacity), Driver: device})
	switch {
	case o.Start == Anew || p.anew:
		out.StartFailed = !r.ask(p.start)
	case o.Capacity > 0 && p.StartReserved > o.Capacity:
		out.StartFailed = true
	default:
		r.restore(p.start, -1, device)
		device.Hold(r.a.Stats().ReservedBytes[allocator.All].Current)
	}
	switch down := len(p.Given) > 0; {
	case down == o.OtherWay:
	case down && len(p.start) == 0:
		device.Follow(p.Given)
	default:
		device.GoDown()
	}
	if out.StartFailed {
		out.largest = r.a.Largest()
		return out, nil
	}
	return out, r.run(ctx, out, &o)
}

// run makes all operations and follows the sums.
func (r *replay) run(ctx context.Context, out *Outcome, o *Options) error {
	st := r.a.Stats()
	allocs, frees, retries := st.NumDeviceAlloc, st.NumDeviceFree, st.NumAllocRetries
	reserved, allocated := &st.ReservedBytes[allocator.All], &st.AllocatedBytes[allocator.All]
	out.ReservedPeak, out.ReservedEvent = reserved.Current, -1
	out.Waste, out.WasteEvent = reserved.Current-allocated.Current, -1
	curve := newCurve(r.p.t.Trace.Len(), o.Curve, reserved.Current, allocated.Current)
	for i := range r.p.ops {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		op := &r.p.ops[i]
		if o.until > 0 && int(op.event) > o.until {
			break
		}
		if out.Served > 0 && out.Assumed == nil && op.asks() {
			out.Assumed = &out.served[0]
		}
		ok := r.step(op)
		event := int(op.event)
		if reserved.Peak > out.ReservedPeak {
			out.ReservedPeak, out.ReservedEvent = reserved.Peak, event
		}
		if waste := reserved.Current - allocated.Current; waste > out.Waste {
			out.Waste, out.WasteEvent = waste, event
		}
		curve.add(event, reserved.Current, allocated.Current)
		if !ok {
			out.fail(r, op)
			if o.UntilFailure {
				break
			}
		} else if op.kind == opFail {
			out.Served++
			out.served = append(out.served, event)
		}
	}
	out.DeviceAllocs, out.DeviceFrees, out.Retries = st.NumDeviceAlloc-allocs, st.NumDeviceFree-frees,
		st.NumAllocRetries-retries
	out.ReservedEnd, out.AllocatedPeak = reserved.Current, allocated.Peak
	out.Curve = curve.finish()
	out.Stats, out.largest = *st, r.a.Largest()
	return nil
}

// Serves reports whether a request that failed in the recorded run, at that event, does not here.
func (out *Outcome) Serves(event int) bool {
	_, ok := slices.BinarySearch(out.served, event)
	return ok
}

// Proves reports whether what happens at an event follows from the recording alone.
func (out *Outcome) Proves(event int) bool { return out.Assumed == nil || event <= *out.Assumed }

// Fails reports whether it is proven that a request fails.
func (out *Outcome) Fails() bool { return out.First != nil && out.Proves(out.First.Event) }

// fail counts a request that fails.
func (out *Outcome) fail(r *replay, o *op) {
	st := r.a.Stats()
	f := &Failure{
		Event: int(o.event), Requested: r.p.asks[o.row].bytes, Recorded: o.kind == opFail,
		Reserved: st.ReservedBytes[allocator.All].Current, Allocated: st.AllocatedBytes[allocator.All].Current,
	}
	if int(o.row) < r.p.recorded() { // no recorded event asks for an added life, which may come after the last
		f.Stack = r.p.t.Trace.Stack(int(o.event))
	}
	out.Failures++
	if !f.Recorded {
		out.New++
	}
	if out.First == nil {
		out.First = f
	}
	if out.Largest == nil || f.Requested > out.Largest.Requested {
		out.Largest = f
	}
}

// curve samples two series.
type curve struct {
	samples             []Sample
	span, events        int
	reserved, allocated int64 // before the next event
}

// newCurve samples a trace of n events at up to so many points.
func newCurve(n, points int, reserved, allocated int64) *curve {
	c := &curve{events: n, reserved: reserved, allocated: allocated}
	if points > 0 && n > 0 {
		c.span = (n + points - 1) / points
		c.samples = make([]Sample, 0, (n+c.span-1)/c.span)
	}
	return c
}

// add takes the values after an event. Events come in order; some are left out, because nothing
// changes with them.
func (c *curve) add(event int, reserved, allocated int64) {
	if c.span == 0 {
		return
	}
	c.upTo(event)
	s := &c.samples[len(c.samples)-1]
	s.Reserved, s.Allocated = max(s.Reserved, reserved), max(s.Allocated, allocated)
	c.reserved, c.allocated = reserved, allocated
}

// upTo makes the samples up to that of an event.
func (c *curve) upTo(event int) {
	for n := len(c.samples); n*c.span <= event; n++ {
		c.samples = append(c.samples, Sample{n * c.span, min((n+1)*c.span, c.events) - 1, c.reserved, c.allocated})
	}
}

func (c *curve) finish() []Sample {
	if c.span > 0 {
		c.upTo(c.events - 1)
	}
	return c.samples
}
