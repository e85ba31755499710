package pickle

import (
	"encoding/binary"
	"math/bits"
)

// Each event of a pickle takes a slot of the memo, most lists of frames one more, and so does each pool_id: a fifth of
// the file's size. Where events are not kept (Options.Each) their slots are packed: of events there is a bit, and of the
// rest, which may be asked for again, a small number.

const (
	memoPage = 1 << 12 // slots of a page
	memoHot  = 1 << 16 // slots at the beginning, where names are, which stay as they are
	memoTail = 1 << 17 // slots at the end that stay so, at least; containers are changed soon after they begin
)

// page is memoPage slots: an event where its bit is not set. The others have a number of width bytes each, which is twice
// that of a stack, or twice the place in the palette of anything else, plus one.
type page struct {
	bits   [memoPage / 64]uint64
	before [memoPage / 64]uint16 // bits set in the words before
	ids    []byte
	width  int
}

// palette numbers the distinct values of slots that are packed, but for stacks, which have numbers.
type palette struct {
	all     []memoEntry
	index   map[memoEntry]uint32
	changed map[uint64]memoEntry // slots that got another value since they were packed
}

func (t *palette) number(e memoEntry) uint32 {
	if kind(e>>memoBits) == kStack {
		return uint32(e) << 1
	}
	if n := len(t.all); n > 0 && t.all[n-1] == e {
		return uint32(n-1)<<1 | 1
	}
	n, ok := t.index[e]
	if !ok {
		if t.index == nil {
			t.index = map[memoEntry]uint32{}
		}
		n = uint32(len(t.all))
		t.all = append(t.all, e)
		t.index[e] = n
	}
	return n<<1 | 1
}

// slot is where in memo a slot is that is not packed; beyond all for others.
func (d *machine) slot(i uint64) uint64 {
	if i < d.hot {
		return i
	}
	if i -= d.gap; i >= d.hot {
		return i
	}
	return noSlot
}

const noSlot = ^uint64(0)

// slots is how many slots the memo has.
func (d *machine) slots() uint64 { return uint64(len(d.memo)) + d.gap }

// entry is what a slot has, noEntry for nothing.
func (d *machine) entry(i uint64) (memoEntry, error) {
	if k := d.slot(i); k < uint64(len(d.memo)) {
		return d.memo[k], nil
	}
	if e, ok := d.palette.changed[i]; ok {
		return e, nil
	}
	if i -= d.hot; i >= d.gap {
		return noEntry, nil
	}
	p, word, bit := d.pages[i/memoPage], i%memoPage/64, i%64
	if p.bits[word]>>bit&1 == 0 {
		return noEntry, errScattered
	}
	at := (int(p.before[word]) + bits.OnesCount64(p.bits[word]&(1<<bit-1))) * p.width
	var id [4]byte
	copy(id[:], p.ids[at:at+p.width])
	n := binary.LittleEndian.Uint32(id[:])
	if n&1 == 0 {
		return memoEntry(kStack)<<memoBits | memoEntry(n>>1), nil
	}
	return d.palette.all[n>>1], nil
}

// setEntry changes a slot that has something.
func (d *machine) setEntry(i uint64, e memoEntry) {
	if k := d.slot(i); k < uint64(len(d.memo)) {
		d.memo[k] = e
		return
	}
	if d.palette.changed == nil {
		d.palette.changed = map[uint64]memoEntry{}
	}
	d.palette.changed[i] = e
}

// packMemo packs the slots between those that are hot and those at the end, if they are many.
func (d *machine) packMemo() {
	if len(d.memo) < memoHot+4*memoTail {
		return
	}
	d.hot = memoHot
	n := (len(d.memo) - memoHot - memoTail) / memoPage * memoPage
	for at := memoHot; at < memoHot+n; at += memoPage {
		d.pages = append(d.pages, d.palette.page(d.memo[at:at+memoPage]))
	}
	d.memo = append(d.memo[:memoHot], d.memo[memoHot+n:]...)
	d.gap += uint64(n)
}

// page packs the slots of a page.
func (t *palette) page(entries []memoEntry) *page {
	p := &page{width: 1}
	var numbers [memoPage]uint32
	n, largest := 0, uint32(0)
	for k, e := range entries {
		if k%64 == 0 {
			p.before[k/64] = uint16(n)
		}
		if kind(e>>memoBits) == kEvent {
			continue
		}
		p.bits[k/64] |= 1 << (k % 64)
		numbers[n] = t.number(e)
		largest = max(largest, numbers[n])
		n++
	}
	for p.width < 4 && largest>>(8*p.width) != 0 {
		p.width++
	}
	p.ids = make([]byte, 0, n*p.width)
	for _, number := range numbers[:n] {
		var id [4]byte
		binary.LittleEndian.PutUint32(id[:], number)
		p.ids = append(p.ids, id[:p.width]...)
	}
	return p
}
