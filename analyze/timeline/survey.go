package timeline

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
)

// Survey is what one pass over all events of a device tells, in memory that grows with the addresses that they name and
// not with their number: what was there before the first of them, and which of them the final state still shows. A
// Forward goes through the events again from there.
type Survey struct {
	Events      int
	First, Last int64  // their times, 0 where they have none
	Seen        uint32 // a bit for each action
	Back        int64  // the most that times went back, in microseconds

	newest  int64
	at      *table // row of touches by address
	touches []touch
	made    Ranges // by the events so far
	before  Ranges // released without having been made
	lastly  map[uint64]int32
}

// touch is what happened at an address that blocks had.
type touch struct {
	addr      uint64
	requested int64 // of the block from before the trace
	size      int64 // rounded, where the final state has it
	stack     snapshot.StackID
	alloc     int32 // the last that handed it out, -1 for none
	older     bool  // what was there first is from before the trace
	waited    bool  // that was freed before the trace
	live      bool
}

// NewSurvey is a survey of no events.
func NewSurvey() *Survey { return &Survey{at: newTable(1024), lastly: map[uint64]int32{}} }

// Event takes in the next event.
func (v *Survey) Event(s *snapshot.Snapshot, e *snapshot.Event) {
	i := int32(v.Events)
	v.Events++
	v.Seen |= 1 << e.Action
	if e.Has&snapshot.EventHasTime != 0 {
		if v.First == 0 {
			v.First = e.Time
		}
		v.Back, v.newest, v.Last = max(v.Back, v.newest-e.Time), max(v.newest, e.Time), e.Time
	}
	if bad(e.Addr, e.Size) {
		return
	}
	switch e.Action {
	case snapshot.Alloc:
		t := v.touch(e)
		t.alloc, t.live = i, true
	case snapshot.FreeRequested, snapshot.FreeCompleted:
		t := v.touch(e)
		if t.alloc < 0 && !t.older {
			t.older, t.live, t.waited = true, true, e.Action == snapshot.FreeCompleted
		}
		if e.Action == snapshot.FreeCompleted {
			t.live = false
		}
	case snapshot.SegmentAlloc, snapshot.SegmentMap:
		if e.Size > 0 && v.made.add(eventRange(s, e)) {
			v.lastly[e.Addr] = i
		}
	case snapshot.SegmentFree, snapshot.SegmentUnmap:
		if e.Size > 0 {
			v.release(eventRange(s, e))
		}
	}
}

func (v *Survey) touch(e *snapshot.Event) *touch {
	row, ok := v.at.get(e.Addr)
	if !ok {
		row = int32(len(v.touches))
		v.touches = append(v.touches, touch{addr: e.Addr, requested: e.Size, alloc: -1})
		v.at.put(e.Addr, row)
	}
	return &v.touches[row]
}

// eventRange is rangeOf with the pool of the event's label.
func eventRange(s *snapshot.Snapshot, e *snapshot.Event) Range {
	r := rangeOf(e)
	if e.Label != 0 {
		r.Pool = s.Labels.Get(e.Label).Pool
	}
	return r
}

// release takes away what was made of a range. The rest was there before the trace.
func (v *Survey) release(r Range) {
	for from := r.Addr; from < r.End(); {
		k := v.made.after(from) - 1
		end := r.End()
		if k+1 < len(v.made) {
			end = min(end, v.made[k+1].Addr)
		}
		piece := r
		piece.Addr = from
		if k >= 0 && from < v.made[k].End() {
			end = min(r.End(), v.made[k].End())
			v.made.cut(from, int64(end-from))
		} else {
			piece.Size = int64(end - from)
			v.before.add(piece)
		}
		from = end
	}
}

// settle works out the state before the first event: the ranges, and the blocks by address.
func (v *Survey) settle(s *snapshot.Snapshot, t *Timeline) (rs Ranges, older []touch) {
	for seg := range s.SegmentsOf(t.Device) {
		for j := seg.Blocks.Start; j < seg.Blocks.End(); j++ {
			b := &s.Blocks[j]
			if !b.State.Active() || b.Address == 0 || b.Size <= 0 || b.Size > allocator.MaxRequest {
				continue
			}
			row, ok := v.at.get(b.Address)
			if !ok {
				row = int32(len(v.touches))
				v.touches = append(v.touches, touch{addr: b.Address, requested: b.Requested, alloc: -1, older: true,
					live: true, waited: b.State == snapshot.StatePendingFree})
				v.at.put(b.Address, row)
			}
			if x := &v.touches[row]; x.live {
				x.size = b.Size
				x.stack = b.Stack
			}
		}
	}
	for _, x := range v.touches {
		if x.alloc >= 0 {
			x.size, x.stack = 0, 0 // of a later block
		}
		if x.older {
			older = append(older, x)
		}
	}
	slices.SortFunc(older, func(a, b touch) int { return cmp.Compare(a.addr, b.addr) })
	rs = v.before
	for _, r := range finalRanges(s, t) {
		for from := r.Addr; from < r.End(); {
			k := v.made.after(from) - 1
			end := r.End()
			if k >= 0 && from < v.made[k].End() {
				from = min(end, v.made[k].End())
				continue
			}
			if k+1 < len(v.made) {
				end = min(end, v.made[k+1].Addr)
			}
			piece := r
			piece.Addr, piece.Size = from, int64(end-from)
			rs.add(piece)
			from = end
		}
	}
	return rs, older
}
