package verdict

import (
	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/units"
)

// swapping: the machine has no memory left, and it is not this process that takes more.
func (j *Host) swapping() {
	v := &finding.Machine{SwapFirst: -1, SwapLast: -1}
	for i := range j.Run.Samples {
		h := j.Run.Samples[i].Host
		if h == nil || h.Available == nil || h.RAM == nil {
			continue
		}
		v.Samples++
		v.Available = units.Size(*h.Available)
		if *h.Available < *h.RAM/20 {
			v.Short++
		}
		if h.SwapFree != nil && h.SwapTotal != nil {
			if v.SwapLast = units.Size(*h.SwapTotal - *h.SwapFree); v.SwapFirst < 0 {
				v.SwapFirst = v.SwapLast
			}
		}
	}
	own := j.Trends.Of(host.Swap)
	moved := own != nil && own.Last-own.First >= 16<<20
	if v.Samples < 5 || v.Short*2 < v.Samples || !moved && v.SwapLast-v.SwapFirst < 64<<20 {
		return
	}
	p := j.Trends.Of(host.Size)
	if p == nil || p.Grows() {
		if p != nil && len(j.Findings) > 0 {
			j.Findings[0].Because("The machine is already short of memory: it swaps.")
		}
		return
	}
	f := &finding.Finding{ID: "host-swapping", Bytes: int64(max(v.SwapLast-v.SwapFirst, 0)),
		Evidence: trends(j.Trends, host.Size, host.Swap, host.CPUBytes)}
	f.Evidence.Machine = v
	f.Say("The machine is short of memory and swaps; this program does not leak.")
	f.Because("Less than 5%% of the RAM was available in %d of %d samples; %v at the end.", v.Short, v.Samples,
		v.Available)
	f.Because("The process keeps its size (RSS with swap %s at first, %s at the end): a falling RSS does not mean "+
		"that memory was freed.", units.Bytes(p.First), units.Bytes(p.Last))
	f.Do("Find what else uses the memory: other processes, /dev/shm, files in tmpfs.",
		"Use fewer workers, less prefetching, or a machine with more RAM: swapping slows every step.")
	if v.SwapFirst >= 0 {
		f.Because("Swap in use on the machine went from %v to %v.", v.SwapFirst, v.SwapLast)
	}
	if t := j.Trends.Of(host.CPUBytes); t != nil && !t.Grows() {
		f.Because("CPU tensors do not grow either (%s at the end).", units.Bytes(t.Last))
	}
	j.add(f)
}

// filled: the process rose and is level since, as with caches.
func (j *Host) filled() {
	p := j.Trends.Of(host.Size)
	if p == nil || p.Shape != counters.Settled || p.Last-p.First < max(p.First/10, 16<<20) {
		return
	}
	f := &finding.Finding{ID: "host-filled", Severity: finding.Info, Bytes: p.Last - p.First,
		Evidence: trends(j.Trends, host.Size, host.CPUBytes)}
	f.Say("The process grew by %s and has been level since, like a cache that fills up.", units.Bytes(f.Bytes))
	f.Because("RSS with swap went from %s to %s, and stayed there for the last third of the samples.",
		units.Bytes(p.First), units.Bytes(p.Last))
	f.Do("No fix needed. A longer run would show whether it grows again.")
	if t := j.Trends.Of(host.CPUBytes); t != nil && t.Shape == counters.Settled && t.Last > t.First {
		f.Because("CPU tensors did the same: %s to %s.", units.Bytes(t.First), units.Bytes(t.Last))
	}
	j.add(f)
}
