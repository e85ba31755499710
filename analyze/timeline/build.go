// Package timeline rebuilds the memory of one device over time, exactly, from the events of a
// trace and the state at its end (SPEC.md 4.2).
//
// A trace names requested bytes, while the allocator counts rounded ones and hands out whole
// blocks where splitting does not pay. The sizes follow from where blocks lie, so Build plays
// the allocator's block lists:
//
//  1. match pairs every free with its allocation by address. A free of an address that no
//     event handed out ends a pre-trace block; so does a block of the final state.
//  2. unwind goes backward from the final segments through the segment events, to those that
//     were there before the trace.
//  3. replay goes forward from there over linked block lists: a request takes the front of
//     the free block that starts at its address, by the allocator's rule for splitting. Each
//     event changes the totals; their highest values are the peaks.
//  4. Where a later event proves that a size was guessed wrong (a block starts inside another
//     or behind a gap that nothing else can own) the size is corrected, and the replay run
//     again.
//
// The state is trusted over the trace. What contradicts it is counted in Checks and skipped;
// nothing in a file makes this package fail.
package timeline

import (
	"cmp"
	"slices"
	"sync"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
)

// Build rebuilds the history of one device ordinal. It never fails: what does not add up is
// counted in Checks. Of a file that was read only in part, the trace ends before the state does,
// which then says nothing about the trace: Final is the state after the last event instead.
func Build(s *snapshot.Snapshot, device int) *Timeline {
	t := &Timeline{Device: device, Conf: allocator.RecordedIn(s).Conf, active: new(levels), allocated: new(levels)}
	if device >= 0 && device < len(s.Traces) {
		t.Trace = s.Traces[device]
	}
	t.unused = isUnused(s, device)
	checkState(s, t)
	if t.window = s.WindowOf(device); t.window != nil {
		t.Checks.UnmatchedAllocs += t.window.Unmatched
		t.Checks.Overlaps += t.window.Overlaps
		t.Checks.OutsideSegments += t.window.Outside
	}
	t.poolsFail = s.Writer.Newest != 0 && s.Writer.Newest < 213 &&
		slices.ContainsFunc(s.Segments, func(seg snapshot.Segment) bool { return seg.Pool != snapshot.PoolID{} })
	t.cut = s.Partial != nil && t.Trace.Len() > 0
	t.Recording.Unseen = unseen(s, t)
	inferred := t.Recording.Unseen.Has(segmentKinds)
	var beside sync.WaitGroup // what goes through all events and needs no lives: another core does it
	beside.Go(func() {
		t.Recording.Resized = resized(s, t)
		if !t.cut && !inferred {
			unwind(s, t)
		}
	})
	sizes := match(s, t)
	beside.Wait()
	var gone gaps
	switch {
	case t.cut:
		windForward(s, t)
	case inferred:
		gone = reconstruct(s, t)
	}
	run(s, t, sizes)
	if t.window != nil {
		t.Checks.Residual += t.window.Residual
	}
	t.bound(s, &gone)
	t.Recording.Inferred = t.Trace.Len() > 0 && t.Initial.Reserved > 0
	if t.window != nil {
		t.Recording.Inferred = t.window.Inferred
	}
	if t.HasHistory() { // a dump lists no frames where none were recorded: snapshot/SPEC.md 2.3
		for i := 0; i < len(t.Lives) && t.Lives[i].Born < 0; i++ {
			if l := &t.Lives[i]; l.Stack == snapshot.EmptyStack {
				l.Stack = 0
			}
		}
	}
	t.retries()
	return t
}

// isUnused reports whether a device has neither segments nor events, though events were recorded: torch begins to record
// all devices of a process at once (CUDACachingAllocator.cpp, recordHistory), and has a trace for each.
func isUnused(s *snapshot.Snapshot, device int) bool {
	if s.Partial != nil || device < 0 || device >= len(s.Traces) || s.Traces[device].Len() > 0 ||
		slices.ContainsFunc(s.Segments, func(seg snapshot.Segment) bool { return int(seg.Device) == device }) {
		return false
	}
	for i := range s.Traces {
		n := 0
		for e := 0; e < s.Traces[i].Len(); e++ {
			if s.Traces[i].Action(e) == snapshot.Alloc {
				n++
			}
			if n == few {
				return true
			}
		}
	}
	return false
}

// Main builds the timeline of the device that matters most: the one with the highest peak of reserved
// memory, and of equal ones the first. It is nil when no device has segments or events.
func Main(s *snapshot.Snapshot) *Timeline {
	var best *Timeline
	for _, d := range s.UsedDevices() {
		if t := Build(s, d); best == nil || ByPeak(t, best) < 0 {
			best = t
		}
	}
	return best
}

// ByPeak compares how much memory two devices reserved at their peaks: it is below 0 if a reserved more.
func ByPeak(a, b *Timeline) int { return cmp.Compare(b.PeakReserved.Bytes, a.PeakReserved.Bytes) }

// checkState sums up the dump's own state and checks it against itself.
func checkState(s *snapshot.Snapshot, t *Timeline) {
	for seg := range s.SegmentsOf(t.Device) {
		var sum, beyond Totals // beyond is of blocks that cannot be, such as over the end of all addresses
		at, tiled := seg.Address, true
		for j := seg.Blocks.Start; j < seg.Blocks.End(); j++ {
			b := &s.Blocks[j]
			to := &sum
			if !possible(b.Address, b.Size) {
				to = &beyond
			}
			if b.Address != at || to == &beyond {
				tiled = false
			}
			at += uint64(b.Size)
			if b.State.Active() {
				to.Active += b.Size
				to.Requested += b.Requested
			}
			if b.State == snapshot.StateAllocated {
				to.Allocated += b.Size
			}
		}
		if !tiled || at != seg.Address+uint64(seg.TotalSize) {
			t.Checks.UntiledSegments++
		}
		if sum.Active+beyond.Active != seg.ActiveSize || sum.Allocated+beyond.Allocated != seg.AllocatedSize ||
			sum.Requested+beyond.Requested != seg.RequestedSize {
			t.Checks.WrongSegmentTotals++
		}
		if possible(seg.Address, seg.TotalSize) {
			t.Final.Reserved += seg.TotalSize
		}
		t.Final.Active += sum.Active
		t.Final.Allocated += sum.Allocated
		t.Final.Requested += sum.Requested
	}
}

// retries finds the requests inside which the allocator gave memory back because cudaMalloc
// refused: releases followed by new memory, or by the failure, of the same stack
// (analyze/allocator/SPEC.md 5.5 step 5). Frees of blocks that waited for streams may come in between, and where
// segments expand, what was unmapped around a free block may leave enough for the request.
// torch.cuda.empty_cache() releases in the same way, but from a stack of its own; without stacks the two look alike
// and only failures are taken.
func (t *Timeline) retries() {
	n := t.Trace.Len()
	var made map[uint64]snapshot.StackID // segments, where releases by empty_cache have their stacks
	if t.lent() {
		made = map[uint64]snapshot.StackID{}
	}
	note := func(i int) {
		if a := t.Trace.Action(i); made != nil && (a == snapshot.SegmentAlloc || a == snapshot.SegmentMap) {
			e := t.Trace.At(i)
			made[e.Addr] = e.Stack
		}
	}
	const kinds = uint32(segmentKinds)
	for i := t.Trace.Next(kinds, 0); i < n; i = t.Trace.Next(kinds, i+1) {
		if !t.releases(i) {
			note(i)
			continue
		}
		first, last := i, i
		for i++; i < n; i++ {
			if t.releases(i) {
				last = i
			} else if t.Trace.Action(i) != snapshot.FreeCompleted {
				break
			}
		}
		if i == n {
			return
		}
		e, before := t.Trace.At(i), t.Trace.At(last)
		note(i)
		same := e.Stack == before.Stack
		r := Retry{LastEvent: last, Failed: e.Action == snapshot.OOM}
		switch e.Action {
		case snapshot.OOM:
		case snapshot.SegmentAlloc, snapshot.SegmentMap:
			if before.Stack <= snapshot.EmptyStack {
				t.unsure = append(t.unsure, int32(last))
				continue
			}
			if !same {
				continue
			}
		case snapshot.Alloc:
			if !same || e.Stack <= snapshot.EmptyStack || before.Action != snapshot.SegmentUnmap {
				continue
			}
		default:
			continue
		}
		small, own := false, made == nil || r.Failed
		for k := last; k >= first; k-- {
			switch x := t.Trace.At(k); {
			case !t.releases(k):
			case x.Stack == before.Stack:
				r.FirstEvent = k
				r.Released += x.Size
				stack, known := made[x.Addr]
				own = own || known && stack != x.Stack
				small = small || x.Action == snapshot.SegmentUnmap || x.Size == allocator.SmallBuffer
			default:
				k = first
			}
		}
		if !own {
			t.unsure = append(t.unsure, int32(last))
			continue
		}
		t.retry(r, small)
	}
}

// lent reports whether releases that no request caused may have the stacks of what they release: frees then have those
// of their allocations (SPEC.md 3.5).
func (t *Timeline) lent() bool {
	return !slices.ContainsFunc(t.Lives, func(l Life) bool {
		return l.Born >= 0 && l.FreeRequested >= 0 && t.Trace.Action(int(l.FreeRequested)) == snapshot.FreeRequested &&
			t.Trace.Stack(int(l.FreeRequested)) != t.Trace.Stack(int(l.Born))
	})
}

// retry adds a request inside which memory was given back; small says that some was of a kind that only a release of
// everything gives back.
func (t *Timeline) retry(r Retry, small bool) {
	partly := t.Conf.Collects() || t.Conf.MaxSplit >= 0
	switch {
	case r.Failed || !partly || small:
		r.Whole = true
	case t.cached(r.LastEvent):
		if t.Conf.Collects() {
			return // garbage collection, before cudaMalloc was asked
		}
	default:
		t.unsure = append(t.unsure, int32(r.LastEvent))
		if t.Conf.Collects() {
			return
		}
	}
	t.Retries = append(t.Retries, r)
}

// cached reports whether a whole segment of the default pool is free after an event.
func (t *Timeline) cached(event int) bool {
	st := t.StateAt(event)
	return slices.ContainsFunc(st.Segments, func(seg SegmentState) bool {
		return len(seg.Live) == 0 && !seg.Expandable && seg.Pool == snapshot.PoolID{}
	})
}

// CountRetries says what torch's num_alloc_retries rises by up to an event: requests for which everything that was
// cached was given back, be it nothing. Each failure is one, but before 2.13 those in private pools. Of more events,
// unsure, the trace does not tell whether they belong to one: releases without stacks of their own, which empty_cache
// makes too, releases by garbage collection or under max_split_size that left nothing cached, and such failures.
func (t *Timeline) CountRetries(event int) (sure, unsure int) {
	failed := 0
	for i := range t.OOMs {
		if t.OOMs[i].Event <= event {
			failed++
		}
	}
	for i := range t.Retries {
		r := &t.Retries[i]
		if r.LastEvent >= event {
			continue
		}
		if r.Whole && (!r.Failed || t.poolsFail) {
			sure++
		}
		if r.Failed && t.poolsFail {
			failed-- // it released what was cached, thus was no private pool's
		}
	}
	if t.poolsFail {
		unsure += failed
	} else {
		sure += failed
	}
	for _, e := range t.unsure {
		if int(e) < event {
			unsure++
		}
	}
	return sure, unsure
}

// releases reports whether event i gives memory back.
func (t *Timeline) releases(i int) bool {
	a := t.Trace.Action(i)
	if a != snapshot.SegmentFree && a != snapshot.SegmentUnmap {
		return false
	}
	return !bad(t.Trace.Block(i))
}
