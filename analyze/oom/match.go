package oom

import (
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// Event is an `oom` entry of a snapshot's trace with the state rebuilt at that moment.
type Event struct {
	Device    int    `json:"device"`
	Index     int    `json:"event"`   // in the device's trace
	Time      int64  `json:"time_us"` // microseconds since the Unix epoch, 0 unknown
	Requested int64  `json:"-"`       // rounded to the allocator's 512 bytes (analyze/timeline/SPEC.md 3.1)
	Segment   int64  `json:"-"`       // that the device is asked for when one is needed (analyze/allocator/SPEC.md 5.3)
	Free      int64  `json:"-"`       // of the device, -1 unknown
	Reserved  int64  `json:"-"`       // by the caching allocator
	Allocated int64  `json:"-"`       // in live tensors
	Site      string `json:"site"`    // who asked
}

// Events lists the out-of-memory events of a snapshot with the rebuilt state at each.
func Events(s *snapshot.Snapshot) []Event {
	var out []Event
	for _, d := range s.UsedDevices() {
		if d >= len(s.Traces) {
			continue
		}
		t := timeline.Build(s, d)
		for _, e := range t.OOMs {
			out = append(out, Event{
				Device: d, Index: e.Event, Time: t.Trace.Time(e.Event),
				Requested: e.Requested, Segment: t.Conf.SegmentSize(e.Requested),
				Free: e.DeviceFree, Reserved: e.After.Reserved, Allocated: e.After.Allocated,
				Site: attribution.Site(s, e.Stack),
			})
		}
	}
	return out
}

// Compared is one figure in a message and in a snapshot.
type Compared struct {
	Name     string      `json:"name"` // requested, free, reserved, allocated, unallocated
	Message  oomlog.Size `json:"message"`
	Snapshot int64       `json:"snapshot"`
	Agree    bool        `json:"agree"` // the difference is within the rounding of print
}

// Difference is the snapshot's figure minus the message's.
func (c *Compared) Difference() int64 { return c.Snapshot - c.Message.Bytes }

// Match is a message beside the event of a snapshot that comes nearest to it.
type Match struct {
	Event
	Same    bool       `json:"same"` // size and device agree: they are about the same failure
	Figures []Compared `json:"figures"`
}

// match finds the event of the message: on its device, with its size, and then with the most
// figures that agree; the last of equals. It returns nil when there are no events.
func (g *Group) match(events []Event) *Match {
	var best *Match
	score := -1
	for _, e := range events {
		c := g.compare(e)
		n := 0
		for _, f := range c.Figures {
			if f.Agree {
				n++
			}
		}
		if c.Same {
			n += 100
		} else if g.Device == e.Device {
			n += 10
		}
		if n >= score {
			best, score = c, n
		}
	}
	return best
}

func (g *Group) compare(e Event) *Match {
	out := &Match{Event: e, Figures: []Compared{}}
	add := func(name string, s oomlog.Size, v int64) bool {
		if !s.Known() || v < 0 {
			return false
		}
		d := v - s.Bytes
		agree := -s.Step <= d && d <= s.Step
		out.Figures = append(out.Figures, Compared{name, s, v, agree})
		return agree
	}
	size := e.Segment // which messages print, but for two families
	if g.Family == oomlog.Rejected || g.Family == oomlog.Async {
		size = e.Requested
	}
	out.Same = add("requested", g.Tried, size) && (g.Device < 0 || g.Device == e.Device)
	add("free", g.Free, e.Free)
	add("reserved", g.Reserved, e.Reserved)
	add("allocated", g.Allocated, e.Allocated)
	add("unallocated", g.Unallocated, e.Reserved-e.Allocated)
	return out
}
