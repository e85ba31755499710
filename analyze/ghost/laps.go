package ghost

import (
	"snapana/analyze/timeline"
	"snapana/snapshot"
)

// lapFinder answers whether the program began a new lap of an outer loop between two events.
type lapFinder struct {
	s       *snapshot.Snapshot
	t       *timeline.Timeline
	allocs  []int32                        // rows of Lives with a stack, by birth
	common  []uint16                       // common[i]: outer frames shared by allocs[i] and allocs[i+1]
	blocks  []uint16                       // minima of common over blocks of blockLen
	atEvent []int32                        // births of allocs, for binary search
	byStack map[snapshot.StackID][]int32   // rows of Lives by stack
	kinds   map[snapshot.FrameID]frameKind // cache of frameKind
}

const blockLen = 64

func newLapFinder(s *snapshot.Snapshot, t *timeline.Timeline) *lapFinder {
	lf := &lapFinder{s: s, t: t, byStack: map[snapshot.StackID][]int32{}, kinds: map[snapshot.FrameID]frameKind{}}
	for i := range t.Lives {
		if l := &t.Lives[i]; l.Born >= 0 && l.Stack > snapshot.EmptyStack {
			lf.allocs = append(lf.allocs, int32(i))
			lf.atEvent = append(lf.atEvent, l.Born)
			lf.byStack[l.Stack] = append(lf.byStack[l.Stack], int32(i))
		}
	}
	type pair struct{ a, b snapshot.StackID }
	seen := map[pair]uint16{}
	for i := 0; i+1 < len(lf.allocs); i++ {
		p := pair{t.Lives[lf.allocs[i]].Stack, t.Lives[lf.allocs[i+1]].Stack}
		n, ok := seen[p]
		if !ok {
			n = lf.sharedOuter(p.a, p.b)
			seen[p] = n
		}
		lf.common = append(lf.common, n)
		if i%blockLen == 0 {
			lf.blocks = append(lf.blocks, n)
		} else {
			lf.blocks[len(lf.blocks)-1] = min(lf.blocks[len(lf.blocks)-1], n)
		}
	}
	return lf
}

// sharedOuter counts the outermost frames that two stacks share. The last one counted may
// differ in its line: then the two went different ways inside that function.
func (lf *lapFinder) sharedOuter(a, b snapshot.StackID) uint16 {
	x, y := lf.s.Stacks.Get(a), lf.s.Stacks.Get(b)
	n := 0
	for n < len(x) && n < len(y) && n < 1<<16-1 {
		fx, fy := x[len(x)-1-n], y[len(y)-1-n]
		if fx == fy {
			n++
			continue
		}
		f, g := lf.s.Frames.Get(fx), lf.s.Frames.Get(fy)
		if f.File == g.File && f.Name == g.Name {
			n++
		}
		break
	}
	return uint16(n)
}

// lapBetween reports whether a new lap of an outer loop began between two births, and the
// frame of the function that runs the loop.
func (lf *lapFinder) lapBetween(from, to int32) (snapshot.FrameID, bool) {
	i, j := lf.find(from), lf.find(to)
	if i >= j {
		return 0, false
	}
	n := lf.least(i, j)
	stack := lf.s.Stacks.Get(lf.t.Lives[lf.allocs[j]].Stack)
	if n == 0 || int(n) > len(stack) {
		return 0, false
	}
	outer := stack[len(stack)-int(n):]
	for _, f := range outer {
		if lf.frameKind(f) != plain {
			return 0, false
		}
	}
	return outer[0], true
}

// find is the place of the birth at event e in allocs.
func (lf *lapFinder) find(e int32) int {
	lo, hi := 0, len(lf.atEvent)
	for lo < hi {
		if mid := (lo + hi) / 2; lf.atEvent[mid] < e {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// least is the minimum of common[i:j].
func (lf *lapFinder) least(i, j int) uint16 {
	m := uint16(1<<16 - 1)
	for i < j {
		if i%blockLen == 0 && i+blockLen <= j {
			m = min(m, lf.blocks[i/blockLen])
			i += blockLen
			continue
		}
		m = min(m, lf.common[i])
		i++
	}
	return m
}
