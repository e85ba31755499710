package sample

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Big is a file with n devices of 80 GiB each in 4000 segments, 80 000 live blocks and 3000
// stacks of 60 frames, whose texts are full of markup.
func Big(n int) *analyze.Result {
	r := Result()
	r.Snapshot = snap("big.pickle", n)
	r.Devices = nil
	for i := range n {
		r.Devices = append(r.Devices, bigDevice(r.Snapshot, i))
	}
	return r
}

func bigDevice(s *snapshot.Snapshot, ordinal int) analyze.Device {
	const segments, perSegment, stacks = 4000, 20, 3000
	t := &timeline.Timeline{Device: ordinal, Trace: s.Traces[ordinal]}
	st := &timeline.State{Event: 99}
	groups := make([]attribution.Group, stacks)
	rng := uint64(ordinal + 1)
	random := func(n int64) int64 {
		rng = rng*6364136223846793005 + 1442695040888963407
		return int64(rng>>33) % n
	}
	addr := uint64(0x7f00_0000_0000)
	var frag fragmentation.Report
	for i := range segments {
		seg := timeline.SegmentState{Range: timeline.Range{Addr: addr, Size: 20 * mib, Kind: snapshot.KindLarge}}
		if i%7 != 0 {
			for k := range perSegment {
				size := 512 * (1 + random(mib/512))
				l := timeline.Life{
					Addr: addr + uint64(k*mib), Requested: size - 4, Rounded: size, Born: 1, FreeRequested: -1,
					Freed: -1, Stack: snapshot.StackID(2 + random(stacks)),
				}
				g := &groups[l.Stack-2]
				g.Stack, g.Count = l.Stack, g.Count+1
				g.Rounded += l.Rounded
				g.Requested += l.Requested
				seg.Live = append(seg.Live, int32(len(t.Lives)))
				seg.Active += size
				t.Lives = append(t.Lives, l)
			}
			frag.Split += seg.Size - seg.Active
			frag.PartlyUsed++
			frag.Pins = append(frag.Pins, fragmentation.Pin{Segment: i, Free: seg.Size - seg.Active, Live: seg.Active, Lives: seg.Live})
		} else {
			frag.Releasable += seg.Size
		}
		st.Totals.Active += seg.Active
		st.Totals.Reserved += seg.Size
		st.Segments = append(st.Segments, seg)
		addr += uint64(seg.Size) + 2*mib
	}
	for i := range groups {
		g := &groups[i]
		st.Totals.Requested += g.Requested
		g.Site = stackName(i)
		for k := range 60 {
			g.Frames = append(g.Frames, stackName(i+k))
		}
	}
	st.Totals.Allocated = st.Totals.Active
	frag.Reserved, frag.Active, frag.Segments, frag.LargestFree = st.Totals.Reserved, st.Totals.Active, segments, 20*mib
	frag.Rounding = st.Totals.Active - st.Totals.Requested
	sortGroups(groups)
	sortPins(frag.Pins)

	t.Initial, t.Final = st.Totals, st.Totals
	t.PeakReserved = timeline.Peak{Bytes: st.Totals.Reserved, Event: 98}
	t.PeakActive = timeline.Peak{Bytes: st.Totals.Active, Event: 98}
	for i := range 2048 {
		at := st.Totals
		at.Active = at.Active * (500 + random(500)) / 1000
		at.Allocated = at.Active - random(gib)
		lo := at
		lo.Active -= random(gib)
		t.Curve = append(t.Curve, timeline.Point{First: i * 50, Last: i*50 + 49, Time: start + int64(i)*1000, At: at, Min: lo, Max: at})
	}
	peak := analyze.Moment{Name: "peak", State: st, Live: groups, Frag: frag}
	end := peak
	end.Name = "end"
	return analyze.Device{Timeline: t, Moments: []analyze.Moment{peak, end}}
}

func sortGroups(g []attribution.Group) {
	slices.SortStableFunc(g, func(a, b attribution.Group) int { return cmp.Compare(b.Rounded, a.Rounded) })
}

func sortPins(p []fragmentation.Pin) {
	slices.SortStableFunc(p, func(a, b fragmentation.Pin) int { return cmp.Compare(b.Free, a.Free) })
}
