package phase

import (
	"cmp"
	"slices"
	"sort"

	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// sight is what torch's counters said of a device at one moment, the peak being the one since the program last set it
// back. Between two sights the most was the second's peak where that is higher than the first's. Where it is the same,
// the most was no more; where it is lower, it was set back, and the most was between the two.
type sight struct {
	time                      int64 // nanoseconds
	allocated, peak, reserved int64 // reserved -1 unknown
}

// watch adds to laps of the recorder what the counters of a device tell: those at both ends of each lap, and of steps
// and other phases in between.
func watch(laps []lap, run *sidecar.Run, device int) {
	var all []sight
	for i := range run.Phases {
		if v, ok := sightOf(&run.Phases[i], device); ok {
			all = append(all, v)
		}
	}
	for i := range run.Samples {
		for k := range run.Samples[i].Devices {
			d := &run.Samples[i].Devices[k]
			if d.Device == nil || *d.Device != int64(device) {
				continue
			}
			get := func(name string) int64 {
				if v, ok := d.Stats.Get(name); ok {
					return v
				}
				return -1
			}
			all = append(all, sight{run.Samples[i].Time, get("allocated_bytes.all.current"), get("allocated_bytes.all.peak"),
				get("reserved_bytes.all.current")})
		}
	}
	all = slices.DeleteFunc(all, func(v sight) bool { return v.allocated < 0 || v.peak < 0 })
	sorting.Stable(all, func(a, b sight) int { return cmp.Compare(a.time, b.time) })
	for i := range laps {
		if l := &laps[i]; l.begin != nil {
			l.watch(all, device)
		}
	}
}

// levelOf is what is said of a device, zeros where torch had no memory of it yet, and nil where nothing was read.
func levelOf(levels []sidecar.Level, device int) *sidecar.Level {
	if l := levelIn(levels, device); l != nil || levels == nil {
		return l
	}
	return &sidecar.Level{Allocated: new(int64), Peak: new(int64), Reserved: new(int64), ReservedPeak: new(int64),
		Allocs: new(int64), Frees: new(int64)}
}

func or(n *int64) int64 {
	if n == nil || *n < 0 {
		return -1
	}
	return *n
}

// watch fills in a lap from what was seen at its ends, and between them.
func (l *lap) watch(all []sight, device int) {
	before, ok := sightOf(l.begin, device)
	if !ok {
		return
	}
	l.begun = before.allocated
	until := int64(1<<63 - 1)
	if l.end != nil {
		until = l.end.Time - 1
	}
	l.Start, l.End, l.Peak, l.AtMost, l.Reserved = before.allocated, before.allocated, before.allocated, before.allocated,
		before.reserved
	see := func(v sight) {
		l.Peak, l.AtMost = max(l.Peak, v.allocated), max(l.AtMost, v.peak, before.peak)
		if v.peak != before.peak {
			l.Peak = max(l.Peak, v.peak)
		}
		l.End, l.Reserved = v.allocated, max(l.Reserved, v.reserved)
		before = v
	}
	i := sort.Search(len(all), func(i int) bool { return all[i].time > l.begin.Time })
	for ; i < len(all) && all[i].time <= until; i++ {
		see(all[i])
	}
	last, ended := sight{}, false
	if l.end != nil {
		if last, ended = sightOf(l.end, device); ended {
			see(last)
			l.finished = last.allocated
		}
	}
	switch l.How = BySamples; {
	case l.Peak == 0 && l.AtMost == 0:
		l.Peak = -1 // nothing happened on this device
	case !ended:
		l.AtMost = -1 // it went on
	case l.Peak >= l.AtMost:
		l.How = ByCounter
	}
}

// sightOf is what one end of a lap says of a device, false where it says nothing.
func sightOf(p *sidecar.Phase, device int) (sight, bool) {
	l := levelOf(p.Devices, device)
	if l == nil || or(l.Allocated) < 0 || or(l.Peak) < 0 {
		return sight{}, false
	}
	return sight{p.Time, *l.Allocated, *l.Peak, or(l.Reserved)}, true
}
