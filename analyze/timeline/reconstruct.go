package timeline

import (
	"cmp"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// gaps is what reconstruct could not tell for certain.
type gaps struct {
	outside   bool // blocks lie where nothing is known to have been reserved
	large     bool // of the large pool, so that their rounded sizes are not certain
	ambiguous bool // segments may have been made at their first use, or have been there before, unused
	firstUse  bool // those are taken to have been made then
}

// stay is the time for which a range was reserved.
type stay struct {
	Range
	from        int  // the event after which it was there, -1 for the start
	first, last int  // events of blocks in it, -1 for a pre-trace block; first is unused for none
	base        bool // first handed out its base
	born        bool // no event says when it was made
	lost        bool // none says when it was released
}

const unused = -2

// reconstruct is unwind for a trace that lacks kinds of segment events. What they would have said follows in part
// from the rest (SPEC.md 4.4):
//
//   - A range that an event releases, and that overlaps what is there later, shows that the latter was made after it.
//   - A range that an event makes, and that is not there later, shows that it was released.
//   - PyTorch makes a segment for a request, which gets its base. So a segment that was made within the trace appears
//     at its first alloc, as long as those are recorded.
//   - A block in no known range shows one that was released. Nothing tells its size but the block.
//
// Where two readings are left, a segment is taken to have been there before, unless the file shows that kinds of events
// were skipped, or that the trace began before all blocks.
func reconstruct(s *snapshot.Snapshot, t *Timeline) gaps {
	b := builder{s: s, t: t, unseen: t.Recording.Unseen}
	b.backward()
	b.forward()
	return b.finish()
}

type builder struct {
	s      *snapshot.Snapshot
	t      *Timeline
	unseen Kinds
	gaps

	changes []Change // of events, by event
	stays   []stay   // those at the start, those of changes that no event ends, and those that no event begins
	now     []piece
	out     []int32 // rows of lives in no range
	partly  bool    // a block reaches out of the ranges that are known
}

// piece is a part of a stay that is reserved, in the order of addresses.
type piece struct {
	addr, end uint64
	stay      int32 // none for one whose time is known
}

// backward undoes the segment events, as unwind does.
func (b *builder) backward() {
	t := b.t
	now := finalRanges(b.s, t)
	for c := range t.changesBackward(b.s) {
		if c.Add {
			b.undoAdd(&now, c.Event, c.Range)
		} else {
			b.undoRemove(&now, c.Event, c.Range)
		}
	}
	slices.Reverse(b.changes)
	t.Initially = now
}

// partner is the kind of event that ends what a range's event began, or began what it ends.
func partner(r *Range, of, ofMapped Kinds) Kinds {
	if r.Expandable {
		return ofMapped
	}
	return of
}

func (b *builder) undoAdd(now *Ranges, i int, r Range) {
	if was, ok := now.cut(r.Addr, r.Size); ok {
		r.Kind, r.Pool, r.Expandable, r.Stream = was.Kind, was.Pool, was.Expandable, was.Stream
		b.changes = append(b.changes, Change{Event: i, Add: true, Range: r})
		return
	}
	end := partner(&r, segmentFree, segmentUnmap)
	if !b.unseen.Has(end) {
		b.t.Checks.OutsideSegments++
		return
	}
	b.t.Recording.Skipped |= end
	// Part of it may still be there.
	for at := r.Addr; at < r.End(); {
		part := r
		part.Addr, part.Size = at, int64(r.End()-at)
		k := now.after(at) - 1
		if k >= 0 && at < (*now)[k].End() {
			part.Size = min(part.Size, int64((*now)[k].End()-at))
			was, _ := now.cut(part.Addr, part.Size)
			part.Kind, part.Pool, part.Expandable, part.Stream = was.Kind, was.Pool, was.Expandable, was.Stream
			b.changes = append(b.changes, Change{Event: i, Add: true, Range: part})
		} else {
			if k+1 < len(*now) && (*now)[k+1].Addr < r.End() {
				part.Size = int64((*now)[k+1].Addr - at)
			}
			b.stays = append(b.stays, stay{Range: part, from: i, first: unused, lost: true})
		}
		at = part.End()
	}
}

func (b *builder) undoRemove(now *Ranges, i int, r Range) {
	if n := neighbor(*now, &r); n != nil {
		r.Kind, r.Pool = n.Kind, n.Pool
	}
	begin := partner(&r, segmentAlloc, segmentMap)
	if b.unseen.Has(begin) {
		// What overlaps it was made later.
		for k := max(now.after(r.Addr)-1, 0); k < len(*now) && (*now)[k].Addr < r.End(); {
			later := (*now)[k]
			if later.End() <= r.Addr {
				k++
				continue
			}
			if later.Expandable {
				from, to := max(later.Addr, r.Addr), min(later.End(), r.End())
				later.Addr, later.Size = from, int64(to-from)
			}
			now.cut(later.Addr, later.Size)
			b.t.Recording.Skipped |= partner(&later, segmentAlloc, segmentMap)
			b.stays = append(b.stays, stay{Range: later, from: i, first: unused, born: true})
			k = max(now.after(r.Addr)-1, 0)
		}
	}
	if now.add(r) {
		b.changes = append(b.changes, Change{Event: i, Range: r})
	} else {
		b.t.Checks.OutsideSegments++
	}
}

// forward finds when the ranges were used whose time is not known, and which blocks lie in none.
func (b *builder) forward() {
	t := b.t
	sorting.Stable(b.stays, func(x, y stay) int { return cmp.Compare(x.from, y.from) })
	for k := range t.Initially {
		r := t.Initially[k]
		b.add(&r, int32(len(b.stays)))
		b.stays = append(b.stays, stay{Range: r, from: -1, first: unused})
	}
	timed := b.stays[:len(b.stays)-len(t.Initially)]
	// Without allocs a block seems to be there from the start: its range is known to be missing at its free only.
	blind := b.unseen.Has(alloc)
	row := 0
	for ; row < len(t.Lives) && t.Lives[row].Born < 0; row++ {
		if !b.use(t.Lives[row].Addr, b.size(row), -1, false) && !blind {
			b.out = append(b.out, int32(row))
		}
	}
	change, next := 0, 0
	for i := range t.Trace.Len() {
		e := t.Trace.At(i)
		switch e.Action {
		case snapshot.Alloc:
			if bad(e.Addr, e.Size) {
				continue
			}
			if !b.use(e.Addr, b.size(row), i, true) {
				b.out = append(b.out, int32(row))
			}
			row++
		case snapshot.FreeRequested, snapshot.FreeCompleted:
			if !bad(e.Addr, e.Size) && !b.use(e.Addr, e.Size, i, false) && blind {
				b.outside = true
			}
		default:
			for ; change < len(b.changes) && b.changes[change].Event == i; change++ {
				if c := &b.changes[change]; c.Add {
					b.add(&c.Range, none)
				} else {
					b.cut(c.Range.Addr, c.Range.End())
				}
			}
			for ; next < len(timed) && timed[next].from == i; next++ {
				b.add(&timed[next].Range, int32(next))
			}
		}
	}
}

// size is how far a life reaches, as far as the file or its request tells.
func (b *builder) size(row int) int64 {
	l := &b.t.Lives[row]
	return max(l.Rounded, b.t.Conf.Round(l.Requested))
}

// at is the first piece that ends above addr.
func (b *builder) at(addr uint64) int {
	return sort.Search(len(b.now), func(i int) bool { return b.now[i].end > addr })
}

// add makes a piece of a range. What lies there must have been released.
func (b *builder) add(r *Range, of int32) {
	b.cut(r.Addr, r.End())
	b.now = slices.Insert(b.now, b.at(r.Addr), piece{r.Addr, r.End(), of})
}

func (b *builder) cut(addr, end uint64) {
	for i := b.at(addr); i < len(b.now) && b.now[i].addr < end; {
		p := b.now[i]
		var rest []piece
		if p.addr < addr {
			rest = append(rest, piece{p.addr, addr, p.stay})
		}
		if end < p.end {
			rest = append(rest, piece{end, p.end, p.stay})
		}
		b.now = slices.Replace(b.now, i, i+1, rest...)
		if i += len(rest); end < p.end {
			break
		}
	}
}

// use notes that a block lies in the pieces there, false when none has its start.
func (b *builder) use(addr uint64, size int64, event int, alloc bool) bool {
	i := b.at(addr)
	if i == len(b.now) || b.now[i].addr > addr {
		return false
	}
	end, at := addr+uint64(max(size, 1)), b.now[i].addr
	for ; i < len(b.now) && b.now[i].addr < end; i++ {
		b.partly = b.partly || b.now[i].addr != at
		if at = b.now[i].end; b.now[i].stay == none {
			continue
		}
		st := &b.stays[b.now[i].stay]
		if st.first == unused {
			st.first, st.base = event, alloc && addr == st.Addr
		}
		st.last = event
	}
	b.partly = b.partly || at < end
	return true
}

// finish fills t.Initially and t.Changes.
func (b *builder) finish() gaps {
	t := b.t
	blind := b.unseen.Has(alloc)
	last := t.Trace.Len() - 1
	initial := t.Initially[:0]
	b.outsiders()
	whole := !slices.ContainsFunc(t.Lives[:min(1, len(t.Lives))], func(l Life) bool { return l.Born < 0 })
	b.firstUse = !blind && (b.outside || whole || t.Recording.Skipped.Has(plain&b.unseen))
	for i := range b.stays {
		st := &b.stays[i]
		switch {
		case st.lost:
			b.changes = append(b.changes, Change{Event: st.from, Add: true, Range: st.Range})
			if st.first == unused {
				st.last = st.from
			}
			b.changes = append(b.changes, Change{Event: st.last, Range: st.Range})
		case st.born:
			at := min(st.from+1, last)
			if st.first != unused && st.base && !st.Expandable {
				at = st.first
			}
			b.changes = append(b.changes, Change{Event: at, Add: true, Range: st.Range})
		case b.unseen.Has(segmentAlloc) && !st.Expandable && st.first >= 0 && st.base && !blind:
			b.ambiguous = true
			if b.firstUse {
				b.changes = append(b.changes, Change{Event: st.first, Add: true, Range: st.Range})
				continue
			}
			initial = append(initial, st.Range)
		default:
			initial = append(initial, st.Range)
		}
	}
	sorting.By(initial, func(x, y Range) int { return cmp.Compare(x.Addr, y.Addr) })
	t.Initially = initial
	b.block()
	sorting.Stable(b.changes, func(x, y Change) int {
		return cmp.Or(cmp.Compare(x.Event, y.Event), cmp.Compare(b.phase(&x), b.phase(&y)))
	})
	t.Changes = b.changes
	return b.gaps
}

// phase orders the changes of one event: at a block's, what adds comes before it.
func (b *builder) phase(c *Change) int {
	switch b.t.Trace.Action(c.Event) {
	case snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted:
		if !c.Add {
			return 1
		}
	}
	return 0
}

// outsiders notes that blocks lie in no range that is known.
func (b *builder) outsiders() {
	ends := b.unseen & (segmentFree | segmentUnmap)
	b.outside = b.outside || len(b.out) > 0 || b.partly && !b.unseen.Has(alloc)
	if !b.outside || ends == 0 {
		b.outside = false
		b.out = nil
		return
	}
	if b.younger() {
		b.t.doubts.younger = true
	} else if ends == segmentFree || ends == segmentUnmap {
		b.t.Recording.Skipped |= ends
	}
	for _, row := range b.out {
		b.large = b.large || b.t.Lives[row].Requested > allocator.SmallSize
	}
}

// younger reports whether memory was reserved where a block outside was live, which thus is younger than it seems.
func (b *builder) younger() bool {
	old := slices.Clone(b.out) // from before the trace, by address
	old = slices.DeleteFunc(old, func(row int32) bool { return b.t.Lives[row].Born >= 0 })
	for i := range b.changes {
		c := &b.changes[i]
		if !c.Add {
			continue
		}
		from := sort.Search(len(old), func(k int) bool { return b.t.Lives[old[k]].Addr >= c.Range.Addr })
		to := from
		for ; to < len(old) && b.t.Lives[old[to]].Addr < c.Range.End(); to++ {
			if freed := b.t.Lives[old[to]].Freed; freed < 0 || int(freed) > c.Event {
				return true
			}
		}
		if from < to {
			old = slices.Delete(old, from, to) // gone by then
		}
	}
	return false
}

// block reserves what each block outside takes, for as long as it lives.
func (b *builder) block() {
	t := b.t
	for _, row := range b.out {
		l := &t.Lives[row]
		r := Range{Addr: l.Addr, Size: b.size(int(row))}
		if r.Kind = snapshot.KindLarge; l.Requested <= allocator.SmallSize {
			r.Kind = snapshot.KindSmall
		}
		if l.Born >= 0 {
			r.Stream = t.Trace.At(int(l.Born)).Stream
			b.changes = append(b.changes, Change{Event: int(l.Born), Add: true, Range: r})
		} else if rs := Ranges(t.Initially); !rs.add(r) {
			continue
		} else {
			t.Initially = rs
		}
		if l.Freed >= 0 {
			b.changes = append(b.changes, Change{Event: int(l.Freed), Range: r})
		}
	}
}
