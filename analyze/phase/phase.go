// Package phase says what the parts of a program that it named did to memory: the recorder's phase("rollout"), and
// record_function scopes that torch notes beside the trace. Each run through a part is a lap.
//
// Where a trace covers a lap, its figures are rebuilt from the events, to the byte. The recorder notes at both ends of a
// lap how often torch had allocated and freed by then, so that their places in the trace are found by counting and not
// by a clock (locate.go). Of laps that no trace has, torch's counters tell what was allocated at each end and now and
// then in between, and their peak: when it rises within a lap, it is the lap's (counters.go).
//
// All figures are torch's allocated bytes, those of max_memory_allocated: blocks that the program has not freed.
// Memory that other threads allocate meanwhile counts too, since a trace does not tell threads apart.
package phase

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Source is where phases are named.
type Source string

// The sources of phases.
const (
	Recorder   Source = "recorder"
	Annotation Source = "annotations" // record_function
)

// How says what a lap's peak is known from.
type How string

const (
	ByTrace   How = "trace"   // the events, exact as far as the trace is
	ByCounter How = "counter" // torch's own peak, which rose in the lap
	BySamples How = "samples" // what torch had in some moments of it: the peak may be higher
)

// Phase is one named part of the program, on one device.
type Phase struct {
	Name   string `json:"name"`
	Source Source `json:"source"`
	// Library says that torch named it, as it does Optimizer.step, and not the program.
	Library bool   `json:"library"`
	Laps    int64  `json:"laps"`      // how often it ran
	Seen    int    `json:"laps_seen"` // of them, those of which something is known on this device
	Failed  int    `json:"failed"`    // that ended with an exception
	Error   string `json:"error"`     // the class of the last of those, "" for none
	Open    int    `json:"open"`      // that had not ended when the recording did
	// Bound is that of the peak: laps, or moments of laps, that were not seen may have had more.
	Bound timeline.Bound `json:"bound"`
	// List has the laps that were seen, in the order in which they began, the first 200 and those of Top, Last and Most.
	List []Lap `json:"list"`
	Top  int   `json:"top"`  // in List, the lap with the highest peak, the first of equal ones
	Last int   `json:"last"` // the last lap
	Most int   `json:"most"` // the one that left most behind, -1 where that is not known of any
	// Lowest is the lowest peak of all laps that were seen.
	Lowest int64 `json:"lowest"`
	// Holds is what the lap Top had allocated since it began when it was at its peak, and Leaves what Most had when it
	// ended, both by site, most bytes first, 20 at most. Nil: not known.
	Holds  []Site `json:"holds"`
	Leaves []Site `json:"leaves"`
}

// Peak is the lap with the highest peak.
func (p *Phase) Peak() *Lap { return &p.List[p.Top] }

// Lap is one run through a phase. Sizes are bytes, -1 unknown; events are indexes into the trace.
type Lap struct {
	Number int64 `json:"lap"`   // from 1 on
	Step   int64 `json:"step"`  // of the recorder in which it began, -1 unknown
	Start  int64 `json:"start"` // allocated when it began
	Peak   int64 `json:"peak"`  // the most then, Start included
	End    int64 `json:"end"`   // allocated when it ended, or at the end of what was recorded
	Left   int64 `json:"left"`  // of End, what was allocated in the lap
	How    How   `json:"how"`
	// AtMost bounds the peak where How is BySamples.
	AtMost int64 `json:"at_most"`
	// Reserved is the most that was reserved, of counters at least so much.
	Reserved int64 `json:"reserved"`
	// First and Last are the events of the lap, and At that after which the peak was reached (First-1 is when it
	// began); all are -1 for a lap that the trace does not have. Micros is the time from the lap's start to its peak.
	First  int   `json:"first_event"`
	Last   int   `json:"last_event"`
	At     int   `json:"peak_event"`
	Micros int64 `json:"peak_us"`
	Ended  bool  `json:"ended"`
	Cut    bool  `json:"cut"` // the trace has a part of it only
}

// Site is what was allocated at a place of the program.
type Site struct {
	Stack snapshot.StackID `json:"-"`
	Site  string           `json:"site"` // "" where no stack was recorded
	Bytes int64            `json:"bytes"`
	Count int64            `json:"blocks"`
}

// Bounds on the work that laps of a hostile file can cause.
const (
	maxPhases = 1000
	maxLaps   = 200_000
	maxSites  = 20
)

// lap is a lap while it is looked at.
type lap struct {
	name   string
	source Source
	number int64 // from 0 on
	step   int64
	begin  *sidecar.Phase // nil for an annotation
	end    *sidecar.Phase // nil where it has none
	from   int64          // microseconds since the Unix epoch, 0 unknown
	to     int64
	ended  bool
	error  string
	// begun and finished are what torch's counters say was allocated at both ends, -1 unknown.
	begun, finished int64
	Lap
}

// Find gives the phases of a device, by what the recorder noted in the run of the snapshot and by annotations; f is nil
// without a recorder. Phases with the highest peaks come first.
func Find(s *snapshot.Snapshot, t *timeline.Timeline, f *sidecar.File) []Phase {
	run, dump := of(s, t, f)
	laps := fromRun(run)
	traced := t.HasHistory() && !t.Recording.BlocksUnknown()
	if traced {
		laps = append(laps, fromAnnotations(s, t, laps)...)
	}
	if len(laps) == 0 {
		return nil
	}
	if run != nil {
		watch(laps, run, t.Device)
	}
	var tr *trace
	if traced {
		tr = newTrace(s, t)
		clock := newClock(t, laps, dump)
		for i := range laps {
			tr.measure(&laps[i], clock)
		}
	}
	return gather(laps, tr)
}

// of finds the run of a snapshot: as the recorder says, or else the last with a phase in the time of the trace.
func of(s *snapshot.Snapshot, t *timeline.Timeline, f *sidecar.File) (*sidecar.Run, *sidecar.Dump) {
	if f == nil {
		return nil, nil
	}
	if run, dump := f.Snapshot(snapshot.PlainName(s.Name), s.Bytes); run != nil {
		return run, dump
	}
	n := t.Trace.Len()
	for i := len(f.Runs) - 1; i >= 0 && n > 0; i-- {
		for _, p := range f.Runs[i].Phases {
			if us := p.Time / 1000; us >= t.Trace.Time(0) && us <= t.Trace.Time(n-1) {
				return &f.Runs[i], nil
			}
		}
	}
	return nil, nil
}

// OfDevice are the phases of one device, from counters alone.
type OfDevice struct {
	Device int     `json:"device"`
	Phases []Phase `json:"phases"`
}

// OfRun gives the phases of all devices that a run of the recorder tells of, from torch's counters alone. Nil: none.
func OfRun(run *sidecar.Run) []OfDevice {
	laps := fromRun(run)
	if len(laps) == 0 {
		return nil
	}
	var devices []int
	for i := range run.Phases {
		for _, l := range run.Phases[i].Devices {
			if l.Device != nil && *l.Device >= 0 && *l.Device < maxDevices && !slices.Contains(devices, int(*l.Device)) {
				devices = append(devices, int(*l.Device))
			}
		}
	}
	slices.Sort(devices)
	var out []OfDevice
	for _, d := range devices {
		mine := slices.Clone(laps)
		watch(mine, run, d)
		if list := gather(mine, nil); len(list) > 0 {
			out = append(out, OfDevice{d, list})
		}
	}
	return out
}

const maxDevices = 1024

// gather puts the laps of each phase together.
func gather(laps []lap, tr *trace) []Phase {
	type key struct {
		name   string
		source Source
	}
	index := map[key]int{}
	var out []Phase
	for i := range laps {
		l := &laps[i]
		k := key{l.name, l.source}
		at, ok := index[k]
		if !ok {
			if len(out) == maxPhases {
				continue
			}
			at = len(out)
			index[k] = at
			out = append(out, Phase{Name: l.name, Source: l.source,
				Library: l.source == Annotation && byLibrary(l.name), Most: -1})
		}
		p := &out[at]
		p.Laps = max(p.Laps, l.number+1)
		if l.error != "" {
			p.Failed, p.Error = p.Failed+1, l.error
		}
		if !l.ended {
			p.Open++
		}
		if l.Peak < 0 {
			continue
		}
		n := len(p.List)
		p.List = append(p.List, l.Lap)
		if l.Peak > p.List[p.Top].Peak {
			p.Top = n
		}
		if p.Last = n; n == 0 {
			p.Lowest = l.Peak
		}
		p.Lowest = min(p.Lowest, l.Peak)
		if l.Left >= 0 && (p.Most < 0 || l.Left > p.List[p.Most].Left) {
			p.Most = n
		}
	}
	out = slices.DeleteFunc(out, func(p Phase) bool { return len(p.List) == 0 })
	for i := range out {
		out[i].finish(tr)
	}
	sorting.Stable(out, func(a, b Phase) int {
		return cmp.Or(cmp.Compare(b.Peak().Peak, a.Peak().Peak), cmp.Compare(a.Source, b.Source))
	})
	return out
}

// finish says what follows from all laps, and keeps some of them.
func (p *Phase) finish(tr *trace) {
	top := p.List[p.Top]
	p.Seen = len(p.List)
	if int64(p.Seen) < p.Laps {
		p.Bound = timeline.AtLeast
	}
	for i := range p.List {
		if l := &p.List[i]; l.How == BySamples && (l.AtMost < 0 || l.AtMost > top.Peak) {
			p.Bound = timeline.AtLeast
		}
	}
	if tr != nil {
		if top.How == ByTrace && tr.bound != timeline.Exact {
			p.Bound = p.Bound.And(tr.bound)
		}
		p.Holds = tr.sites(top.First, top.At)
		if p.Most >= 0 {
			p.Leaves = tr.sites(p.List[p.Most].First, p.List[p.Most].Last)
		}
	}
	if len(p.List) <= maxList {
		return
	}
	kept := p.List[:maxList:maxList]
	for _, at := range []*int{&p.Top, &p.Most, &p.Last} { // the last is last
		if *at >= maxList {
			kept = append(kept, p.List[*at])
			*at = len(kept) - 1
		}
	}
	p.List = kept
}

const maxList = 200
