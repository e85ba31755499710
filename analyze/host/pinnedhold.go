package host

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// hold says who holds what at the end, and what is cached.
func (m *Pinned) hold(s *snapshot.Snapshot) {
	last := m.Trace.Len() - 1
	st := &timeline.State{Event: last}
	used := map[uint64]bool{}
	for i := range m.Lives {
		l := &m.Lives[i]
		if !l.LiveAfter(last) {
			continue
		}
		used[l.Addr] = true
		st.Outside = append(st.Outside, int32(i))
		if bits.OnesCount64(uint64(l.Rounded)) == 1 {
			m.AtMostRounding += max(l.Rounded/2-1, 0)
		}
	}
	m.Holders = attribution.Live(s, &timeline.Timeline{Lives: m.Lives}, st)

	classes := map[int64]*Class{}
	reserved := map[int64]int64{}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Gone >= 0 {
			continue
		}
		reserved[b.Size] += b.Size
		if used[b.Addr] {
			continue
		}
		if b.unsure {
			m.Unknown += b.Size
			continue
		}
		c := classes[b.Size]
		if c == nil {
			c = &Class{Size: b.Size, Spare: none}
			classes[b.Size] = c
		}
		c.Blocks++
		c.Bytes += b.Size
	}
	if last >= 0 {
		late := m.lateUse()
		for size, c := range classes {
			c.Spare = min(max(reserved[size]-late[size], 0), c.Bytes)
		}
	}
	for _, c := range classes {
		m.Cached = append(m.Cached, *c)
	}
	slices.SortFunc(m.Cached, func(a, b Class) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Size, a.Size)) })
}

// lateUse is the most of each size that was active at a time in the second half of the trace.
func (m *Pinned) lateUse() map[int64]int64 {
	from := int32(m.Trace.Len() / 2)
	type edge struct {
		at   int32
		size int64 // below zero for an end
	}
	var edges []edge
	for i := range m.Lives {
		l := &m.Lives[i]
		if l.Freed >= 0 && l.Freed <= from {
			continue
		}
		edges = append(edges, edge{max(l.Born, from), l.Rounded})
		if l.Freed >= 0 {
			edges = append(edges, edge{l.Freed, -l.Rounded})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	now, most := map[int64]int64{}, map[int64]int64{}
	for _, e := range edges {
		size := max(e.size, -e.size)
		now[size] += e.size
		most[size] = max(most[size], now[size])
	}
	return most
}
