package whatif

import (
	"context"
	"math"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
)

// capacityStep is how exactly the smallest capacity is searched: the driver's own granularity.
const capacityStep = 2 << 20

// SmallestCapacity searches for the smallest memory that serves every request, also those that
// failed in the run: with the result the program runs, and with 2 MiB less it does not. Since a
// full device makes the allocator give its cache back, that is often less than the highest
// reserved bytes of a run without limit. Fit is taken to grow with capacity, which a rare
// layout contradicts. It is 0 where a memory fraction of the settings lets requests fail.
func (p *Program) SmallestCapacity(ctx context.Context, o Options) (int64, error) {
	n, _, err := p.smallestCapacity(ctx, o)
	return n, err
}

// smallestCapacity is SmallestCapacity, with the largest block of all replays.
func (p *Program) smallestCapacity(ctx context.Context, o Options) (_, largest int64, _ error) {
	o.UntilFailure = true
	o.Capacity = 0
	free, err := p.Run(ctx, o)
	if err != nil {
		return 0, 0, err
	}
	if largest = free.largest; free.First != nil {
		return 0, largest, nil
	}
	// No limit is reached by a run that never reserves more than there is.
	fits := (free.ReservedPeak + capacityStep - 1) / capacityStep
	fails := free.Stats.RequestedBytes[allocator.All].Peak/capacityStep - 1
	// Requests fail where most is in use, if they do. What serves all up to there is searched first, and tried on the rest
	// then; where that fails is the next place to search up to, once, from what failed on.
	end := p.t.Trace.Len()
	early := func(event int) int {
		if 0 < event && event < end/4*3 {
			return event
		}
		return end
	}
	until, enough := early(p.t.PeakActive.Event), fits // for the events up to there
	stride, again := fits, false
	for fits-fails > 1 {
		n := fails + min((enough-fails)/2, stride)
		stride = min(2*stride, fits)
		if o.until = until; n == fails { // found, but for what comes behind
			n, o.until = enough, end
		}
		o.Capacity = n * capacityStep
		out, err := p.Run(ctx, o)
		if err != nil {
			return 0, 0, err
		}
		largest = max(largest, out.largest)
		switch failed := out.StartFailed || out.First != nil; {
		case failed && o.until == until:
			fails = n
		case failed:
			if fails, enough, stride, until = n, fits, 1, early(out.First.Event); again {
				until = end
			}
			again = true
		case o.until == end:
			fits, enough = n, n
		default:
			enough, stride = n, fits
		}
	}
	return fits * capacityStep, largest, nil
}

// capacity finds the memory that the run could reserve. Where a request failed the driver said
// what was free. Where one was served after memory was given back, the device had less than
// what was reserved before and the new segment together, and no less than the run ever reserved:
// any value between the two gives the recorded run, and the highest is taken.
func (p *Program) capacity() {
	t := p.t
	for i := range t.OOMs {
		if o := &t.OOMs[i]; o.DeviceFree >= 0 {
			p.Capacity = max(p.Capacity, o.After.Reserved+o.DeviceFree)
		}
	}
	if p.Capacity > 0 || len(t.Retries) == 0 || p.Recorded.Conf.Collects() {
		return
	}
	limit := int64(math.MaxInt64)
	reserved, change := t.Initial.Reserved, 0
	for _, r := range t.Retries {
		for ; change < len(t.Changes) && t.Changes[change].Event < r.FirstEvent; change++ {
			if c := &t.Changes[change]; c.Add {
				reserved += c.Range.Size
			} else {
				reserved -= c.Range.Size
			}
		}
		for i := r.LastEvent + 1; i < t.Trace.Len(); i++ {
			if acquires(t.Trace, i) {
				limit = min(limit, reserved+t.Trace.At(i).Size-capacityStep)
			} else if t.Trace.Action(i) != snapshot.FreeCompleted {
				break
			}
		}
	}
	if limit < math.MaxInt64 {
		p.Capacity = max(limit, t.PeakReserved.Bytes)
	}
}
