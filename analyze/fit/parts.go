package fit

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// inChunks lets the lower bound be as recorded of what code makes that works in parts of so many items, as its names say: from some
// value on it makes more of them, each as large as before.
func (m *model) inChunks() {
	rows := m.madeBy(m.grows, func(file, name string) bool {
		if file == "pytorch_utils.py" || name == "feed_forward_chunk" || strings.Contains(name, "chunk_cat") {
			return false // apply_chunking_to_forward makes one part unless it is asked for more, and FSDP copies all
		}
		return strings.Contains(name, "chunk") || strings.Contains(file, "chunk")
	})
	m.chunks = m.bounded(rows, func(l *law, size int64) { l.parted = size })
}

// inWindows lets the lower bound not go with all pairs of what code makes that works in windows, as its names say: as long as all
// items are in one window they are all paired, and from some value on there are more windows. No such law is proven. Batches and the
// sizes of a model are not what windows are of; up to the most that was recorded the law holds.
func (m *model) inWindows(others []*recording, names []string) {
	for i, name := range names {
		v := valueOf(name)
		if v == batch || v == widths {
			continue
		}
		most := m.At[i]
		for _, o := range others {
			most = max(most, o.At[i])
		}
		single := uint8(1) // the power of what is of single items
		if v.isSide() {
			single = 2
		}
		pairs := func(row int) bool {
			l := m.laws[m.of[row]]
			return (m.phase(m.Timeline.Lives[row].Stack) == "forward" || m.backward(row)) && l.size == nil &&
				slices.ContainsFunc(l.parts, func(p part) bool { return p.term[i] > single })
		}
		rows := m.madeBy(pairs, func(file, name string) bool {
			if strings.Contains(name, "mask") || strings.Contains(name, "sliding") {
				return false // of attention to all items
			}
			return strings.Contains(name, "window") || strings.Contains(file, "window") || strings.Contains(file, "swin")
		})
		m.windows[i] = m.bounded(rows, func(l *law, _ int64) {
			all, less := *l, l.lowered(i, single, most)
			l.kind = max(l.kind, exact)
			l.low = &law{size: func(p Point) int64 { return min(all.bound(p, low), less.at(p)) }}
		})
	}
}

// lowered is a law that goes with no higher power of one of the values, and is the same where that is so much.
func (l *law) lowered(value int, power uint8, most int64) *law {
	out := &law{parts: slices.Clone(l.parts)}
	for k := range out.parts {
		p := &out.parts[k]
		for ; p.term[value] > power; p.term[value]-- {
			p.factor *= float64(most)
		}
	}
	return out
}

// madeBy finds the rows of those that are taken that code of some names makes, of files without their folders and functions in lower
// case, and what backward makes of the sizes that only such code has.
func (m *model) madeBy(takes func(row int) bool, is func(file, name string) bool) (rows []int) {
	lives := m.Timeline.Lives
	its := stacksWith(m.Snapshot, func(file, name string) bool {
		return is(strings.ToLower(frames.Base(file)), strings.ToLower(name))
	})
	sizes := map[int64]bool{}
	forward := func(row int, stack snapshot.StackID) bool {
		phase := m.phase(stack)
		return row >= m.warm && (phase == "forward" || phase == "")
	}
	for row := range lives {
		if l := &lives[row]; forward(row, l.Stack) && its[l.Stack] && takes(row) {
			sizes[l.Requested] = true
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	for row := range lives {
		if l := &lives[row]; forward(row, l.Stack) && !its[l.Stack] {
			delete(sizes, l.Requested)
		}
	}
	for row := m.warm; row < len(lives); row++ {
		l := &lives[row]
		if takes(row) && (its[l.Stack] || sizes[l.Requested] && m.backward(row)) {
			rows = append(rows, row)
		}
	}
	return rows
}

// bounded gives rows laws with another lower bound, and reports whether there are any.
func (m *model) bounded(rows []int, bound func(l *law, size int64)) bool {
	made := map[int32]int32{} // by law
	for _, row := range rows {
		m.amend(row, made, func(l *law) {
			if l.low == nil {
				whole := *l
				l.low, l.high = &whole, &whole
			}
			bound(l, m.Timeline.Lives[row].Requested)
		})
		m.doubt = true
	}
	return len(rows) > 0
}

// grows reports whether a row grows with the first of the values.
func (m *model) grows(row int) bool {
	l := m.laws[m.of[row]]
	return l.size == nil && l.growsWith(0)
}
