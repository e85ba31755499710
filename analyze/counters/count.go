package counters

import (
	"strings"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/memstats"
)

// tally is one counter of torch: c10/core/Allocator.h, struct Stat.
type tally struct{ current, peak, allocated, freed int64 }

func (t *tally) up(n int64) {
	t.current += n
	t.allocated += n
	t.peak = max(t.peak, t.current)
}

func (t *tally) down(n int64) {
	t.current -= n
	t.freed += n
}

// pools are a tally for all memory, for the small pool and for the large one.
type pools [3]tally

const (
	all = iota
	small
	large
)

var poolNames = [...]string{"all", "small_pool", "large_pool"}

const (
	smallRequest = 1 << 20 // larger rounded requests go to the large pool (analyze/allocator/SPEC.md 5.1)
	smallSegment = 2 << 20 // all segments of the small pool, and none of the large one
)

func pool(isSmall bool) int {
	if isSmall {
		return small
	}
	return large
}

func (p *pools) up(at int, n int64) {
	p[all].up(n)
	p[at].up(n)
}

func (p *pools) down(at int, n int64) {
	p[all].down(n)
	p[at].down(n)
}

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
	var allocs, frees, returned, ooms int64
	var segments [2]int64
	event = -2
	best := -1
	for e := -1; e < c.t.Trace.Len(); e++ {
		if e >= 0 {
			if c.born[e] > 0 {
				allocs++
			}
			if c.freeing[e] > 0 {
				frees++
			}
			if c.freed[e] > 0 {
				returned++
			}
			switch c.t.Trace.At(e).Action {
			case snapshot.SegmentAlloc, snapshot.SegmentMap:
				segments[0]++
			case snapshot.SegmentFree, snapshot.SegmentUnmap:
				segments[1]++
			case snapshot.OOM:
				ooms++
			}
		}
		if allocs > want["allocation.all.allocated"] || frees > want["allocation.all.freed"] {
			break
		}
		if allocs != want["allocation.all.allocated"] || frees != want["allocation.all.freed"] {
			continue
		}
		score := 0
		for name, have := range map[string]int64{"active.all.freed": returned, "num_device_alloc": segments[0], "num_device_free": segments[1], "num_ooms": ooms} {
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

// at gives the counters right after an event: all of them where the trace is whole, else the
// current ones.
func (c *counter) at(event int, whole bool) map[string]int64 {
	out := map[string]int64{}
	if whole {
		c.replay(event, out)
	} else {
		c.state(c.t.StateAt(event), out)
	}
	c.split(c.t.StateAt(event), out)
	return out
}

// replay counts the events up to one.
func (c *counter) replay(event int, out map[string]int64) {
	c.index()
	var blocks, bytes, active, activeBytes, requested, reserved, segments pools
	var ooms, device, released int64
	mapped := false
	for e := 0; e <= event; e++ {
		if row := c.born[e]; row > 0 {
			l := &c.t.Lives[row-1]
			at := pool(l.Rounded <= smallRequest)
			blocks.up(at, 1)
			bytes.up(at, l.Rounded)
			active.up(at, 1)
			activeBytes.up(at, l.Rounded)
			requested.up(at, l.Requested)
		}
		if row := c.freeing[e]; row > 0 {
			l := &c.t.Lives[row-1]
			at := pool(l.Rounded <= smallRequest)
			blocks.down(at, 1)
			bytes.down(at, l.Rounded)
		}
		if row := c.freed[e]; row > 0 {
			l := &c.t.Lives[row-1]
			at := pool(l.Rounded <= smallRequest)
			active.down(at, 1)
			activeBytes.down(at, l.Rounded)
			requested.down(at, l.Requested)
		}
		ev := c.t.Trace.At(e)
		at := pool(ev.Size == smallSegment)
		switch ev.Action {
		case snapshot.SegmentAlloc:
			reserved.up(at, ev.Size)
			segments.up(at, 1)
			device++
		case snapshot.SegmentFree:
			reserved.down(at, ev.Size)
			segments.down(at, 1)
			released++
		case snapshot.SegmentMap:
			mapped = true
			reserved.up(at, ev.Size)
			device++
		case snapshot.SegmentUnmap:
			mapped = true
			reserved.down(at, ev.Size)
			released++
		case snapshot.OOM:
			ooms++
		}
	}
	put := func(name string, p *pools, n int) {
		for i := range n {
			at := name + "." + poolNames[i] + "."
			out[at+"current"], out[at+"peak"] = p[i].current, p[i].peak
			out[at+"allocated"], out[at+"freed"] = p[i].allocated, p[i].freed
		}
	}
	put("allocation", &blocks, 3)
	put("allocated_bytes", &bytes, 3)
	put("active", &active, 3)
	put("active_bytes", &activeBytes, 3)
	put("requested_bytes", &requested, 3)
	n := 3
	if mapped { // whose pool a mapped range is in, its size does not tell
		n = 1
	}
	put("reserved_bytes", &reserved, n)
	put("segment", &segments, 3)
	out["num_ooms"], out["num_device_alloc"], out["num_device_free"] = ooms, device, released
	// Each failure is a retry that failed too, also where there was nothing to give back.
	retries := ooms
	for i := range c.t.Retries {
		if last := c.t.Retries[i].LastEvent; last < event && c.t.Trace.At(last+1).Action != snapshot.OOM {
			retries++
		}
	}
	out["num_alloc_retries"] = retries
	if set := &c.s.Settings; set.Present && set.MaxSplitSize < 0 {
		out["max_split_size"] = -1
		for _, name := range []string{"oversize_allocations", "oversize_segments"} { // nothing is at least that large
			for _, figure := range []string{"current", "peak", "allocated", "freed"} {
				out[name+"."+figure] = 0
			}
		}
	}
	if event == c.t.Trace.Len()-1 {
		out["inactive_split_bytes.all.peak"] = c.t.PeakInactiveSplit.Bytes
	}
}

// state sums up a layout: the current figures.
func (c *counter) state(st *timeline.State, out map[string]int64) {
	for i := range 3 {
		for _, name := range []string{"allocation", "allocated_bytes", "active", "active_bytes", "requested_bytes", "reserved_bytes", "segment"} {
			out[name+"."+poolNames[i]+".current"] = 0
		}
	}
	add := func(name string, at int, n int64) {
		out[name+".all.current"] += n
		out[name+"."+poolNames[at]+".current"] += n
	}
	mapped := false
	for i := range st.Segments {
		seg := &st.Segments[i]
		at := pool(seg.Kind == snapshot.KindSmall)
		add("reserved_bytes", at, seg.Size)
		if seg.Expandable {
			mapped = mapped || seg.Kind == snapshot.KindUnknown
		} else {
			add("segment", at, 1)
		}
		for _, row := range seg.Live {
			l := &c.t.Lives[row]
			at := pool(l.Rounded <= smallRequest)
			add("active", at, 1)
			add("active_bytes", at, l.Rounded)
			add("requested_bytes", at, l.Requested)
			if l.FreeRequested == -1 || int(l.FreeRequested) > st.Event {
				add("allocation", at, 1)
				add("allocated_bytes", at, l.Rounded)
			}
		}
	}
	if mapped {
		delete(out, "reserved_bytes.small_pool.current")
		delete(out, "reserved_bytes.large_pool.current")
	}
}

// split adds the free pieces beside live blocks, expandable segments left out.
func (c *counter) split(st *timeline.State, out map[string]int64) {
	for i := range 3 {
		out["inactive_split."+poolNames[i]+".current"], out["inactive_split_bytes."+poolNames[i]+".current"] = 0, 0
	}
	for i := range st.Segments {
		seg := &st.Segments[i]
		if seg.Expandable || len(seg.Live) == 0 {
			continue
		}
		name := poolNames[pool(seg.Kind == snapshot.KindSmall || seg.Kind == snapshot.KindUnknown && seg.Size == smallSegment)]
		end := seg.Addr
		gap := func(to uint64) {
			if to > end {
				for _, p := range []string{"all", name} {
					out["inactive_split."+p+".current"]++
					out["inactive_split_bytes."+p+".current"] += int64(to - end)
				}
			}
		}
		for _, row := range seg.Live {
			l := &c.t.Lives[row]
			gap(l.Addr)
			end = max(end, l.Addr+uint64(l.Rounded))
		}
		gap(seg.Addr + uint64(seg.Size))
	}
}

// figureOf is the last part of a counter's name, "" for one without figures.
func figureOf(name string) string {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		return name[at+1:]
	}
	return ""
}
