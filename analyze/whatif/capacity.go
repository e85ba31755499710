package whatif

import (
	"context"

	"github.com/snapana/snapana/analyze/allocator"
)

// capacityStep is how exactly the smallest capacity is searched: the driver's own granularity.
const capacityStep = 2 << 20

// SmallestCapacity searches for the smallest memory that serves every request, also those that
// failed in the run: with the result the program runs, and with 2 MiB less it does not. Since a
// full device makes the allocator give its cache back, that is often less than the highest
// reserved bytes of a run without limit. Fit is taken to grow with capacity, which a rare
// layout contradicts. The result has the outcome at that capacity.
func (p *Program) SmallestCapacity(ctx context.Context, o Options) (int64, *Outcome, error) {
	o.UntilFailure = true
	o.Capacity = 0
	best, err := p.Run(ctx, o)
	if err != nil {
		return 0, nil, err
	}
	// No limit is reached by a run that never reserves more than there is.
	fits := (best.PeakReserved.Bytes + capacityStep - 1) / capacityStep
	fails := best.Stats.RequestedBytes[allocator.All].Peak/capacityStep - 1
	if best.First != nil { // the memory fraction of the settings
		return 0, best, nil
	}
	for fits-fails > 1 {
		mid := fails + (fits-fails)/2
		o.Capacity = mid * capacityStep
		out, err := p.Run(ctx, o)
		if err != nil {
			return 0, nil, err
		}
		if out.StartFailed || out.First != nil {
			fails = mid
		} else {
			fits, best = mid, out
		}
	}
	return fits * capacityStep, best, nil
}
