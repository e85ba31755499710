package host

import (
	"slices"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// maxClock bounds the events of a GPU that are looked at, the last ones, which take 80 bytes each.
const maxClock = 4 << 20

// grow looks for memory that loops leave behind. A data set that is pinned on purpose looks like that
// as long as nothing else is freed, and is not accused. The allocations of the GPU that had most, put in
// between by their time, tell what the program did meanwhile.
func (m *Pinned) grow(s *snapshot.Snapshot) {
	host := map[snapshot.StackID]int{}
	for i := range m.Lives {
		if l := &m.Lives[i]; l.Born >= 0 && l.Freed < 0 && l.Stack > snapshot.EmptyStack {
			host[l.Stack]++
		}
	}
	grows := false
	for _, n := range host {
		grows = grows || n >= ghost.MinLaps
	}
	if !grows {
		return
	}
	for i := range m.Lives {
		if l := &m.Lives[i]; l.Born >= 0 {
			host[l.Stack] += 0 // none of these is the GPU's
		}
	}
	both, own := m.withDevice(s, host)
	for _, b := range m.Blocks {
		both.Initially = append(both.Initially, timeline.Range{Addr: b.Addr, Size: b.Size, Pool: b.Pool})
	}
	m.Growth = ghost.Find(s, both, func(stack snapshot.StackID) bool { _, ok := host[stack]; return ok })
	m.Growth = slices.DeleteFunc(m.Growth, func(g ghost.Growth) bool { return g.LikeFill() })
	for i := range m.Growth {
		g := &m.Growth[i]
		for k, e := range g.Events {
			g.Events[k] = int(own[e])
		}
		g.First, g.Last, g.Horizon = int(own[g.First]), int(own[g.Last]), m.Trace.Len()-1
	}
}

// withDevice is a timeline of the host's lives and of a GPU's, and for each of its events the
// host's event that it is or that came before it. What a GPU allocated at the very stacks of the host
// is left out: the two could not be told apart.
func (m *Pinned) withDevice(s *snapshot.Snapshot, host map[snapshot.StackID]int) (*timeline.Timeline, []int32) {
	var device snapshot.Trace
	for d, t := range s.Traces {
		if t.Len() > device.Len() {
			device, m.GPU = t, d
		}
	}
	if m.Trace.At(0).Has&snapshot.EventHasTime == 0 || device.Len() == 0 ||
		device.At(0).Has&snapshot.EventHasTime == 0 {
		device, m.GPU = snapshot.Trace{}, none
	}
	skip := max(device.Len()-maxClock, 0)
	n := m.Trace.Len() + device.Len() - skip
	events := &snapshot.Events{}
	own := make([]int32, 0, n)
	place := make([]int32, m.Trace.Len()) // of each event of the host
	t := &timeline.Timeline{Device: none}
	open := map[uint64]int32{} // of the GPU: rows of lives
	var lives []timeline.Life
	for i, k := 0, 0; i+k < n; {
		at := int32(i + k)
		if k+skip == device.Len() || i < m.Trace.Len() && m.Trace.Time(i) <= device.Time(k+skip) {
			events.Add(m.Trace.At(i))
			place[i] = at
			own = append(own, int32(i))
			i++
			continue
		}
		e := device.At(k + skip)
		events.Add(e)
		own = append(own, int32(max(i-1, 0)))
		k++
		if _, shared := host[e.Stack]; shared && e.Action == snapshot.Alloc {
			continue
		}
		switch row, ok := open[e.Addr]; {
		case e.Action == snapshot.Alloc:
			open[e.Addr] = int32(len(lives))
			lives = append(lives, timeline.Life{Addr: e.Addr, Requested: e.Size, Rounded: e.Size, Born: at,
				FreeRequested: none, Freed: none, Stack: e.Stack})
		case ok && e.Action == snapshot.FreeRequested:
			lives[row].FreeRequested = at
		case ok && e.Action == snapshot.FreeCompleted:
			lives[row].Freed = at
			if lives[row].FreeRequested < 0 {
				lives[row].FreeRequested = at
			}
			delete(open, e.Addr)
		}
	}
	for _, l := range m.Lives {
		for _, e := range []*int32{&l.Born, &l.FreeRequested, &l.Freed} {
			if *e >= 0 {
				*e = place[*e]
			}
		}
		lives = append(lives, l)
	}
	sorting.Stable(lives, func(a, b timeline.Life) int { return int(a.Born) - int(b.Born) })
	t.Lives, t.Trace = lives, snapshot.NewTrace(events, 0, n)
	return t, own
}
