package oomlog

// Event is an `oom` entry of a snapshot's trace with the state rebuilt at that moment.
type Event struct {
	Device    int
	Index     int    // in the device's trace
	Time      int64  // microseconds since the Unix epoch, 0 unknown
	Requested int64  // rounded to the allocator's 512 bytes (analyze/timeline/SPEC.md 3.1)
	Free      int64  // of the device, -1 unknown
	Reserved  int64  // by the caching allocator
	Allocated int64  // in live tensors
	Site      string // who asked
}

// SegmentSize is the size that CUDA is asked for when a request needs a new segment
// (analyze/allocator/SPEC.md 5.3): the one that messages print.
func SegmentSize(requested int64) int64 {
	const small, large = 1 << 20, 10 << 20
	switch {
	case requested <= small:
		return 2 << 20
	case requested < large:
		return 20 << 20
	}
	return (requested + granule - 1) / granule * granule
}

// Compared is one figure in a message and in a snapshot.
type Compared struct {
	Name     string // requested, free, reserved, allocated, unallocated
	Message  Size
	Snapshot int64
	Agree    bool // the difference is within the rounding of print
}

// Difference is the snapshot's figure minus the message's.
func (c *Compared) Difference() int64 { return c.Snapshot - c.Message.Bytes }

// Match is a message beside the event of a snapshot that comes nearest to it.
type Match struct {
	Event   Event
	Same    bool // size and device agree: they are about the same failure
	Figures []Compared
}

// Match finds the event of the message: on its device, with its size, and then with the most
// figures that agree; the last of equals. It returns nil when there are no events.
func (m *Message) Match(events []Event) *Match {
	var best *Match
	score := -1
	for _, e := range events {
		c := m.compare(e)
		n := 0
		for _, f := range c.Figures {
			if f.Agree {
				n++
			}
		}
		if c.Same {
			n += 100
		} else if m.Device == e.Device {
			n += 10
		}
		if n >= score {
			best, score = c, n
		}
	}
	return best
}

func (m *Message) compare(e Event) *Match {
	out := &Match{Event: e}
	add := func(name string, s Size, v int64) bool {
		if !s.Known() || v < 0 {
			return false
		}
		d := v - s.Bytes
		agree := -s.Step <= d && d <= s.Step
		out.Figures = append(out.Figures, Compared{name, s, v, agree})
		return agree
	}
	size := SegmentSize(e.Requested)
	if m.Family == Rejected || m.Family == Async {
		size = e.Requested
	}
	out.Same = add("requested", m.Tried, size) && (m.Device < 0 || m.Device == e.Device)
	add("free", m.Free, e.Free)
	add("reserved", m.ReservedBytes(), e.Reserved)
	add("allocated", m.Allocated, e.Allocated)
	add("unallocated", m.UnallocatedBytes(), e.Reserved-e.Allocated)
	return out
}
