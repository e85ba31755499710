package page

import (
	"fmt"
	"sort"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Stretch is a run of addresses of a device. The page counts addresses in numbers that are exact up to 2^53 only, so
// that the data has those of a stretch as At and more, in rising order, and between two stretches a gap.
type Stretch struct {
	At   int64  `json:"at"`
	Addr string `json:"addr"` // the first address, "0x7f0000000000"
}

// unit is the least distance of two stretches, and what divides their first addresses, in bytes.
const (
	unitBits = 40
	unit     = int64(1) << unitBits
)

// stretch is one of Stretches: from its first address to below its end, both counted in units.
type stretch struct {
	first, end uint64
	at         int64
}

// stretches map the addresses of a device.
type stretches []stretch

func newStretches(t *timeline.Timeline) stretches {
	ends := map[uint64]uint64{} // by first, in units
	var first, end uint64       // as the last one
	add := func(addr uint64, size int64) {
		last := addr + uint64(max(size, 1)-1)
		if last < addr {
			last = ^uint64(0)
		}
		if from, to := addr>>unitBits, last>>unitBits+1; from != first || to > end {
			first, end = from, max(to, ends[from])
			ends[from] = end
		}
	}
	for i := range t.Initially {
		add(t.Initially[i].Addr, t.Initially[i].Size)
	}
	for i := range t.Changes {
		add(t.Changes[i].Range.Addr, t.Changes[i].Range.Size)
	}
	for i := range t.Lives {
		add(t.Lives[i].Addr, t.Lives[i].Rounded)
	}
	var all stretches
	for first, end := range ends {
		all = append(all, stretch{first: first, end: end})
	}
	sorting.By(all, func(a, b stretch) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	joined := all[:0]
	for _, s := range all {
		if n := len(joined); n > 0 && s.first <= joined[n-1].end {
			joined[n-1].end = max(joined[n-1].end, s.end)
			continue
		}
		joined = append(joined, s)
	}
	at := int64(0)
	for i := range joined {
		s := &joined[i]
		s.at = at
		at += int64(s.end-s.first+1) << unitBits
	}
	return joined
}

// of is an address as the page counts it.
func (all stretches) of(addr uint64) int64 {
	i := sort.Search(len(all), func(i int) bool { return all[i].first<<unitBits > addr }) - 1
	if i < 0 {
		return -unit // below all, and in none
	}
	s := &all[i]
	if i+1 < len(all) && addr>>unitBits > s.end {
		return s.at + int64(s.end-s.first)<<unitBits
	}
	return s.at + int64(addr-s.first<<unitBits)
}

func (all stretches) list() []Stretch {
	out := []Stretch{}
	for _, s := range all {
		out = append(out, Stretch{s.at, fmt.Sprintf("%#x", s.first<<unitBits)})
	}
	return out
}
