package counters

import (
	"strings"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/memstats"
)

// kind is the kind of pools that serve a block.
func (c *counter) kind(l *timeline.Life) int { return allocator.KindOf(c.t.Conf.Small(l.Rounded)) }

// counter counts a trace again as torch did.
type counter struct {
	s *snapshot.Snapshot
	t *timeline.Timeline

	born, freeing, freed []int32 // by event: 1 + the row of Lives, 0 none
}

// index finds the events of each life.
func (c *counter) index() {
	if c.born != nil {
		return
	}
	n := c.t.Trace.Len()
	c.born, c.freeing, c.freed = make([]int32, n), make([]int32, n), make([]int32, n)
	set := func(col []int32, event int32, row int) {
		if event >= 0 && int(event) < n {
			col[event] = int32(row) + 1
		}
	}
	for row := range c.t.Lives {
		l := &c.t.Lives[row]
		set(c.born, l.Born, row)
		set(c.freed, l.Freed, row)
		if l.FreeRequested >= 0 {
			set(c.freeing, l.FreeRequested, row)
		} else if l.FreeRequested == -1 {
			set(c.freeing, l.Freed, row)
		}
	}
}

// locate finds the moment of a sample in a whole trace: the last event at which as much had
// happened as the sample says. Allocations and frees must be as many, the rest decides between
// the events in between.
func (c *counter) locate(s *memstats.Sample) (event int, ok bool) {
	want := map[string]int64{}
	for _, name := range []string{"allocation.all.allocated", "allocation.all.freed"} {
		f := s.Get(name)
		if f.Step != 1 {
			return 0, false
		}
		want[name] = f.Value
	}
	c.index()
	var n allocator.Stats
	event = -2
	best := -1
	for e := -1; e < c.t.Trace.Len(); e++ {
		if e >= 0 {
			c.count(e, &n)
		}
		blocks := &n.Allocation[allocator.All]
		allocs, frees := blocks.Allocated, blocks.Freed()
		if allocs > want["allocation.all.allocated"] || frees > want["allocation.all.freed"] {
			break
		}
		if allocs != want["allocation.all.allocated"] || frees != want["allocation.all.freed"] {
			continue
		}
		score := 0
		for name, have := range map[string]int64{"active.all.freed": n.Active[allocator.All].Freed(),
			"num_device_alloc": n.NumDeviceAlloc, "num_device_free": n.NumDeviceFree, "num_ooms": n.NumOOMs} {
			if f := s.Get(name); f.Known() && f.Value == have {
				score++
			}
		}
		if score >= best {
			event, best = e, score
		}
	}
	return event, event >= -1
}

// at gives the counters right after an event by name: all of them where the trace is whole, else the
// current ones.
func (c *counter) at(event int, whole bool) map[string]int64 {
	var n allocator.Stats
	st := c.t.StateAt(event)
	var mapped bool // whose pool a mapped range is in is not known
	if whole {
		mapped = c.replay(event, &n)
	} else {
		mapped = c.state(st, &n)
	}
	split(c.t, st, &n)
	last := whole && event == c.t.Trace.Len()-1
	unlimited := whole && c.s.Settings.Present && c.t.Conf.MaxSplit < 0 // no block is oversize
	if last {
		n.InactiveSplitBytes[allocator.All].Peak = c.t.PeakInactiveSplit.Bytes
	}
	n.MaxSplitSize = -1
	out := map[string]int64{}
	n.Each(func(name string, value int64) {
		known := whole || figureOf(name) == "current"
		switch {
		case strings.HasPrefix(name, "inactive_split"):
			known = figureOf(name) == "current" || last && name == "inactive_split_bytes.all.peak"
		case mapped && strings.HasPrefix(name, "reserved_bytes."):
			known = known && strings.HasPrefix(name, "reserved_bytes.all.")
		case strings.HasPrefix(name, "oversize_"), name == "max_split_size":
			known = unlimited
		case name == "num_oom_rejections", name == "num_sync_all_streams":
			known = false
		}
		if known {
			out[name] = value
		}
	})
	return out
}

// count counts an event. It reports whether a range was mapped or unmapped.
func (c *counter) count(e int, n *allocator.Stats) (mapped bool) {
	if row := c.born[e]; row > 0 {
		l := &c.t.Lives[row-1]
		n.Allocate(c.kind(l), l.Rounded, l.Requested)
	}
	if row := c.freeing[e]; row > 0 {
		l := &c.t.Lives[row-1]
		n.Free(c.kind(l), l.Rounded)
	}
	if row := c.freed[e]; row > 0 {
		l := &c.t.Lives[row-1]
		n.Complete(c.kind(l), l.Rounded, l.Requested)
	}
	ev := c.t.Trace.At(e)
	pools := allocator.KindOf(ev.Size == allocator.SmallBuffer)
	switch ev.Action {
	case snapshot.SegmentAlloc:
		n.Segment.Add(pools, 1)
	case snapshot.SegmentFree:
		n.Segment.Add(pools, -1)
	case snapshot.SegmentMap, snapshot.SegmentUnmap:
		mapped = true
	case snapshot.OOM:
		n.NumOOMs++
	}
	switch ev.Action {
	case snapshot.SegmentAlloc, snapshot.SegmentMap:
		n.ReservedBytes.Add(pools, ev.Size)
		n.NumDeviceAlloc++
	case snapshot.SegmentFree, snapshot.SegmentUnmap:
		n.ReservedBytes.Add(pools, -ev.Size)
		n.NumDeviceFree++
	}
	return mapped
}

// replay counts the events up to one. It reports whether ranges were mapped.
func (c *counter) replay(event int, n *allocator.Stats) (mapped bool) {
	c.index()
	for e := range event + 1 {
		mapped = c.count(e, n) || mapped
	}
	retries, _ := c.t.CountRetries(event)
	n.NumAllocRetries = int64(retries)
	return mapped
}

// state sums up a layout. It reports whether a segment is mapped whose pool is unknown.
func (c *counter) state(st *timeline.State, n *allocator.Stats) (mapped bool) {
	for i := range st.Segments {
		seg := &st.Segments[i]
		pools := allocator.KindOf(seg.Kind == snapshot.KindSmall)
		n.ReservedBytes.Add(pools, seg.Size)
		if seg.Expandable {
			mapped = mapped || seg.Kind == snapshot.KindUnknown
		} else {
			n.Segment.Add(pools, 1)
		}
		for _, row := range seg.Live {
			l := &c.t.Lives[row]
			n.Allocate(c.kind(l), l.Rounded, l.Requested)
			if l.Waits(st.Event) {
				n.Free(c.kind(l), l.Rounded)
			}
		}
	}
	return mapped
}

// split adds the free pieces beside live blocks, expandable segments left out.
func split(t *timeline.Timeline, st *timeline.State, n *allocator.Stats) {
	for _, h := range fragmentation.FindHoles(t, st, 0) {
		seg := &st.Segments[h.Segment]
		if seg.Expandable || len(seg.Live) == 0 {
			continue
		}
		unknown := seg.Kind == snapshot.KindUnknown && seg.Size == allocator.SmallBuffer
		pools := allocator.KindOf(seg.Kind == snapshot.KindSmall || unknown)
		n.InactiveSplit.Add(pools, 1)
		n.InactiveSplitBytes.Add(pools, h.Size)
	}
}

// figureOf is the last part of a counter's name, "" for one without figures.
func figureOf(name string) string {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		return name[at+1:]
	}
	return ""
}
