package fit

import (
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// chunks lets the lower bound be as recorded of what code makes that works in parts of so many items, as its names say: from some
// value on it makes more of them, each as large as before. What backward makes of the sizes that only such code has is bounded
// likewise.
func (m *model) chunks() {
	lives := m.Timeline.Lives
	inParts := stacksWith(m.Snapshot, func(file, name string) bool {
		if frames.Base(file) == "pytorch_utils.py" || name == "feed_forward_chunk" || strings.Contains(name, "chunk_cat") {
			return false // apply_chunking_to_forward makes one part unless it is asked for more, and FSDP copies all
		}
		return strings.Contains(strings.ToLower(name), "chunk") || strings.Contains(strings.ToLower(frames.Base(file)), "chunk")
	})
	sizes := map[int64]bool{}
	forward := func(row int, stack snapshot.StackID) bool {
		phase := m.phase(stack)
		return row >= m.warm && (phase == "forward" || phase == "")
	}
	for row := range lives {
		if l := &lives[row]; forward(row, l.Stack) && inParts[l.Stack] && m.grows(row) {
			sizes[l.Requested] = true
		}
	}
	if len(sizes) == 0 {
		return
	}
	for row := range lives {
		if l := &lives[row]; forward(row, l.Stack) && !inParts[l.Stack] {
			delete(sizes, l.Requested)
		}
	}
	bounded := map[int32]int32{} // by law
	for row := m.warm; row < len(lives); row++ {
		l := &lives[row]
		if !m.grows(row) || !inParts[l.Stack] && (!sizes[l.Requested] || !m.backward(row)) {
			continue
		}
		id := m.of[row]
		at, ok := bounded[id]
		if !ok {
			part := *m.laws[id]
			if part.parted = l.Requested; part.low == nil {
				part.low, part.high = m.laws[id], m.laws[id]
			}
			at = int32(len(m.laws))
			bounded[id] = at
			m.laws, m.seen = append(m.laws, &part), append(m.seen, m.seen[id])
		}
		m.of[row], m.doubt = at, true
	}
	m.inParts = len(bounded) > 0
}

// grows reports whether a row grows with the first of the values.
func (m *model) grows(row int) bool {
	l := m.laws[m.of[row]]
	return l.size == nil && l.growsWith(0)
}
