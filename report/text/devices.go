package text

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
)

// fullest returns first and the devices with the most reserved memory at their peak, n in
// all, by ordinal.
func fullest(devices []analyze.Device, first *analyze.Device, n int) []analyze.Device {
	if len(devices) <= n {
		return devices
	}
	out := slices.Clone(devices)
	slices.SortStableFunc(out, func(a, b analyze.Device) int {
		if a.Timeline == first.Timeline || b.Timeline == first.Timeline {
			return cmp.Compare(btoi(b.Timeline == first.Timeline), btoi(a.Timeline == first.Timeline))
		}
		return cmp.Compare(b.Timeline.PeakReserved.Bytes, a.Timeline.PeakReserved.Bytes)
	})
	out = out[:n]
	slices.SortStableFunc(out, func(a, b analyze.Device) int {
		return cmp.Compare(a.Timeline.Device, b.Timeline.Device)
	})
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// focus is the device that the leading finding is about, or else the one with the highest
// peak of reserved memory.
func focus(r *analyze.Result, top *finding.Finding) *analyze.Device {
	best := &r.Devices[0]
	for i := range r.Devices {
		d := &r.Devices[i]
		if top != nil && d.Timeline.Device == top.Device {
			return d
		}
		if d.Timeline.PeakReserved.Bytes > best.Timeline.PeakReserved.Bytes {
			best = d
		}
	}
	return best
}
