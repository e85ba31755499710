package fragmentation

import (
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Relief is what freeing some live blocks does by itself, before anything is requested.
type Relief struct {
	Blocks   int64 // that go back to their pool
	Bytes    int64 // their rounded bytes
	Waiting  int64 // of the blocks, those that the program had freed by then: nothing more comes of them
	Returned int64 // bytes that empty_cache gives back to the device, beside those that it gave back before
	Segments int   // of Returned, those that go back as a whole
	Largest  int64 // largest free range then, as Report.LargestUsable
}

// Relieve frees blocks of a state, rows of Timeline.Lives.
func Relieve(t *timeline.Timeline, st *timeline.State, rows []int32) Relief {
	freed := make(map[int32]bool, len(rows))
	var r Relief
	for _, row := range rows {
		switch l := &t.Lives[row]; {
		case !l.LiveAfter(st.Event) || freed[row]:
		case l.Waits(st.Event):
			r.Waiting++
		default:
			freed[row] = true
			r.Blocks++
			r.Bytes += l.Rounded
		}
	}
	less := Without(t, st, func(row int32) bool { return freed[row] })
	before, after := Measure(t, st), Measure(t, less)
	r.Largest, r.Returned = after.LargestUsable, after.Classes.Releasable-before.Classes.Releasable
	for i := range st.Segments {
		if seg := &st.Segments[i]; returnable(seg) && len(seg.Live) > 0 && len(less.Segments[i].Live) == 0 {
			r.Segments++
		}
	}
	return r
}

// Without is a state less some of its live blocks.
func Without(t *timeline.Timeline, st *timeline.State, gone func(row int32) bool) *timeline.State {
	out := &timeline.State{Event: st.Event, Time: st.Time, Totals: st.Totals, Outside: st.Outside,
		Segments: make([]timeline.SegmentState, len(st.Segments))}
	for i := range st.Segments {
		seg := st.Segments[i]
		seg.Live = nil
		for _, row := range st.Segments[i].Live {
			if !gone(row) {
				seg.Live = append(seg.Live, row)
				continue
			}
			l := &t.Lives[row]
			seg.Active -= l.Rounded
			out.Totals.Active -= l.Rounded
			out.Totals.Requested -= l.Requested
			if !l.Waits(st.Event) {
				out.Totals.Allocated -= l.Rounded
			}
		}
		out.Segments[i] = seg
	}
	return out
}

// Request is memory that is asked of the default pools of a stream.
type Request struct {
	Rounded    int64 // bytes that it takes
	Stream     snapshot.StreamID
	DeviceFree int64 // on the device beside what is reserved, -1 unknown
}

// Way is how a request is served.
type Way string

const (
	InHole   Way = "hole"    // a free range that is there has room
	New      Way = "new"     // the device has memory for it
	Released Way = "release" // the device has, once the allocator has given back what it can
	Refused  Way = "refused" // not even then
	Unclear  Way = "unclear" // what the device has is not known, and what is given back is not enough by itself
)

// Fit says how a request is served.
type Fit struct {
	Way      Way
	Addr     uint64 // of the free range of InHole
	Size     int64  // of that range
	Largest  int64  // largest free range that is there, in the pool of such requests
	Needs    int64  // bytes that the device is asked for where no range has room
	Returned int64  // bytes that the allocator gives back first
	Has      int64  // bytes that the device has then: at least, where it is not known
}

// Serve asks for memory in a state, by the rules of the allocator (analyze/allocator/SPEC.md 5.4 to 5.6, 5.10) under the
// settings of the run. Memory fractions are left out, and so are limits that the file does not tell. The page of
// report/html does the same for blocks that a user selects (report/html/ui/fit.ts).
func Serve(t *timeline.Timeline, st *timeline.State, req Request) Fit {
	pool := poolOf(t, req)
	f := Fit{Way: Unclear}
	for _, h := range FindHoles(t, st, req.Stream) {
		if !pool.has(&st.Segments[h.Segment].Range) {
			continue
		}
		f.Largest = max(f.Largest, h.Size)
		if h.Size >= req.Rounded && (f.Size == 0 || h.Size < f.Size) {
			f.Addr, f.Size = h.Addr, h.Size // the smallest: where a rule forbids it, larger ones are not tried
		}
	}
	if f.Size > 0 && t.Conf.Takes(req.Rounded, f.Size) {
		f.Way = InHole
		return f
	}
	f.Addr, f.Size = 0, 0
	f.Has = max(req.DeviceFree, 0) / allocator.RoundLarge * allocator.RoundLarge
	f.Needs = pool.needs(st, req.Rounded, false)
	if f.Has >= f.Needs {
		f.Way = New
		return f
	}
	synced := Without(t, st, func(row int32) bool { return t.Lives[row].Waits(st.Event) })
	measured := Measure(t, synced)
	f.Returned = measured.Classes.Releasable
	f.Has += f.Returned
	f.Needs = pool.needs(synced, req.Rounded, true)
	switch {
	case f.Has >= f.Needs:
		f.Way = Released
	case req.DeviceFree >= 0:
		f.Way = Refused
	}
	return f
}

// pool is the default pool that serves a request.
type pool struct {
	t      *timeline.Timeline
	stream snapshot.StreamID
	kind   snapshot.SegmentKind
	small  bool
}

func poolOf(t *timeline.Timeline, req Request) pool {
	p := pool{t: t, stream: req.Stream, kind: snapshot.KindLarge, small: t.Conf.Small(req.Rounded)}
	if p.small {
		p.kind = snapshot.KindSmall
	}
	return p
}

// has reports whether a range is of the pool.
func (p *pool) has(r *timeline.Range) bool {
	return r.Pool == (snapshot.PoolID{}) && r.Stream == p.stream && (r.Kind == p.kind || r.Kind == snapshot.KindUnknown) &&
		(p.t.Conf.Expandable || !r.Expandable)
}

// Space gives where the address space of the pool's expandable segment begins, which is taken to be the first that it
// ever had memory at, and whether it had any.
func (p *pool) space() (first uint64, ok bool) {
	see := func(r *timeline.Range) {
		if r.Expandable && p.has(r) && (!ok || r.Addr < first) {
			first, ok = r.Addr, true
		}
	}
	for i := range p.t.Initially {
		see(&p.t.Initially[i])
	}
	for i := range p.t.Changes {
		see(&p.t.Changes[i].Range)
	}
	return first, ok
}

// needs gives the bytes that the device is asked for when no free range serves a request: a segment, or of an expandable
// one what is not mapped of the first place that is large enough. With released, the free pages are not mapped any more.
func (p *pool) needs(st *timeline.State, rounded int64, released bool) int64 {
	conf := &p.t.Conf
	granule := conf.Granule(p.small)
	if !conf.Expandable {
		return up(conf.SegmentSize(rounded), allocator.RoundLarge)
	}
	at, ok := p.space()
	if !ok {
		return up(rounded, granule)
	}
	r := run{rounded: rounded, granule: granule, from: at}
	for i := range st.Segments {
		seg := &st.Segments[i]
		if !seg.Expandable || !p.has(&seg.Range) {
			continue
		}
		r.unmapped(at, seg.Addr)
		at = seg.Addr
		free := func(to uint64) {
			h := hole(p.t, st, i, at, to, Hard)
			if released && len(seg.Live) == 0 {
				h.Page, h.Pages = at, int64(to-at)
			}
			if released && h.Pages > 0 {
				r.unmapped(h.Page, h.Page+uint64(h.Pages))
			}
			at = to
		}
		for _, row := range seg.Live {
			l := &p.t.Lives[row]
			free(l.Addr)
			if r.ends(l.Addr) {
				return r.need
			}
			at = l.End()
			r = run{rounded: rounded, granule: granule, from: at}
		}
		free(seg.End())
	}
	r.unmapped(at, at+uint64(up(rounded, granule)))
	return r.need
}

// run is a stretch of an expandable segment in which no block lives.
type run struct {
	from             uint64
	rounded, granule int64
	need             int64
	some             bool // of it is not mapped
}

// unmapped notes that a part of the run is not mapped.
func (r *run) unmapped(from, to uint64) {
	if from >= to {
		return
	}
	r.some = true
	if end := min(to, r.from+uint64(r.rounded)); end > from {
		r.need += up(int64(end-from), r.granule)
	}
}

// ends reports whether the run is the place that is taken, given where it ends.
func (r *run) ends(at uint64) bool { return r.some && int64(at-r.from) >= r.rounded }

func up(n, to int64) int64 { return (n + to - 1) / to * to }
