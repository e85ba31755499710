package chart

import (
	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
)

// Largest splits groups into the first n and one that sums the others, so that totals close.
// more is the number of groups in the sum.
func Largest(groups []attribution.Group, n int) (top []attribution.Group, other attribution.Group, more int) {
	if len(groups) <= n {
		return groups, other, 0
	}
	for _, g := range groups[n:] {
		other.Add(g.Sum)
	}
	return groups[:n], other, len(groups) - n
}

// Sum is the rounded bytes of all groups. It is the active bytes of their moment unless the
// file contradicts itself.
func Sum(groups []attribution.Group) int64 {
	var n int64
	for i := range groups {
		n += groups[i].Rounded
	}
	return n
}

// Pin is a segment that cannot be released and the largest thing that keeps it.
type Pin struct {
	Segment timeline.Range
	Row     int   // of State.Segments
	Free    int64 // bytes that wait
	Live    int64 // bytes that hold them
	Blocks  int
	Largest int64  // rounded bytes of the largest live block
	Block   string // its name, as memory_viz has it
	Site    string // of the largest live block
	Age     string // "from before the trace" or "" when the trace saw its birth
}

// Pins describes the first n pins of a moment. more is the number of the rest.
func Pins(t *timeline.Timeline, m *analyze.Moment, n int) (pins []Pin, more int) {
	site := attribution.Names(m.Live)
	all := m.Frag.Pins
	if len(all) > n {
		all, more = all[:n], len(all)-n
	}
	var largest []int32
	for _, p := range all {
		if p.Segment < 0 || p.Segment >= len(m.State.Segments) {
			continue
		}
		v := Pin{Segment: m.State.Segments[p.Segment].Range, Row: p.Segment, Free: p.Free, Live: p.Live,
			Blocks: len(p.Lives)}
		largest = append(largest, p.Lives[0])
		for _, row := range p.Lives {
			l := &t.Lives[row]
			if l.Rounded <= v.Largest {
				continue
			}
			largest[len(largest)-1] = row
			v.Largest, v.Age = l.Rounded, ""
			if l.Born < 0 && t.HasHistory() {
				v.Age = "from before the trace"
			}
			v.Site = site(l.Stack)
		}
		pins = append(pins, v)
	}
	for i, name := range t.Names(largest) {
		pins[i].Block = name.String()
	}
	return pins, more
}
