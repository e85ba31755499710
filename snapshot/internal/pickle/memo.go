package pickle

import (
	"encoding/binary"
	"math/bits"

	"github.com/snapana/snapana/snapshot"
)

// Each event of a pickle takes a slot of the memo, and most lists of frames one more: a fifth of the file's size. Where
// events are not kept (Options.Each) their slots are packed: all that may be asked for again are the stacks, of which a
// page keeps small numbers, and the few values that are neither.

const (
	memoPage = 1 << 12 // slots of a page
	memoHot  = 1 << 16 // slots at the beginning, where names are, which stay as they are
	memoTail = 1 << 17 // slots at the end that stay so, at least; containers are changed soon after they begin
)

// page is memoPage slots: a stack where its bit is set, else what rare has, else an event.
type page struct {
	bits   [memoPage / 64]uint64
	before [memoPage / 64]uint16 // bits set in the words before
	ids    []byte                // of the stacks, width bytes each
	width  int
	rare   map[uint16]memoEntry
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
	if i -= d.hot; i >= d.gap {
		return noEntry, nil
	}
	p, k := d.pages[i/memoPage], uint16(i%memoPage)
	if e, ok := p.rare[k]; ok {
		return e, nil
	}
	word, bit := k/64, k%64
	if p.bits[word]>>bit&1 == 0 {
		return noEntry, errScattered
	}
	at := (int(p.before[word]) + bits.OnesCount64(p.bits[word]&(1<<bit-1))) * p.width
	var id [4]byte
	copy(id[:], p.ids[at:at+p.width])
	return memoEntry(kStack)<<memoBits | memoEntry(binary.LittleEndian.Uint32(id[:])), nil
}

// setEntry changes a slot that has something.
func (d *machine) setEntry(i uint64, e memoEntry) error {
	if k := d.slot(i); k < uint64(len(d.memo)) {
		d.memo[k] = e
		return nil
	}
	i -= d.hot
	p, k := d.pages[i/memoPage], uint16(i%memoPage)
	if _, ok := p.rare[k]; !ok {
		return errScattered
	}
	p.rare[k] = e
	return nil
}

// packMemo packs the slots between those that are hot and those at the end, if they are many.
func (d *machine) packMemo() {
	if len(d.memo) < memoHot+4*memoTail {
		return
	}
	d.hot = memoHot
	n := (len(d.memo) - memoHot - memoTail) / memoPage * memoPage
	for at := memoHot; at < memoHot+n; at += memoPage {
		d.pages = append(d.pages, packed(d.memo[at:at+memoPage]))
	}
	d.memo = append(d.memo[:memoHot], d.memo[memoHot+n:]...)
	d.gap += uint64(n)
}

func packed(entries []memoEntry) *page {
	p := &page{width: 1}
	stacks, largest := 0, uint64(0)
	for _, e := range entries {
		if kind(e>>memoBits) == kStack {
			stacks++
			largest = max(largest, uint64(e)&(1<<memoBits-1))
		}
	}
	for p.width < 4 && largest>>(8*p.width) != 0 {
		p.width++
	}
	p.ids = make([]byte, 0, stacks*p.width)
	for k, e := range entries {
		if k%64 == 0 {
			p.before[k/64] = uint16(len(p.ids) / p.width)
		}
		switch kind(e >> memoBits) {
		case kStack:
			p.bits[k/64] |= 1 << (k % 64)
			var id [4]byte
			binary.LittleEndian.PutUint32(id[:], uint32(snapshot.StackID(e&(1<<memoBits-1))))
			p.ids = append(p.ids, id[:p.width]...)
		case kEvent:
		default:
			if p.rare == nil {
				p.rare = map[uint16]memoEntry{}
			}
			p.rare[uint16(k)] = e
		}
	}
	return p
}
