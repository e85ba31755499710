package whatif

import (
	"math"

	"github.com/snapana/snapana/snapshot"
)

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
	p.Full = len(t.Retries)
	if p.Capacity > 0 || p.Full == 0 || p.Recorded.Conf.GCThreshold > 0 { // garbage is collected before a device is full
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
			if e := t.Trace.At(i); acquires(e) {
				limit = min(limit, reserved+e.Size-capacityStep)
			} else if e.Action != snapshot.FreeCompleted {
				break
			}
		}
	}
	if limit < math.MaxInt64 {
		p.Capacity = max(limit, t.PeakReserved.Bytes)
	}
}
