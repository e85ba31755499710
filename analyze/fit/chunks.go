package fit

import (
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// chunks lets the lower bound be as recorded of what code makes that works in parts of so many items, as its names say: from some
// value on it makes more of them, each as large as before. What backward makes of the sizes that only such code has is bounded
// likewise.
func (m *model) chunks() {
	lives := m.Timeline.Lives
	inParts := stacksWith(m.Snapshot, func(file, name string) bool {
		if strings.HasSuffix(file, "transformers/pytorch_utils.py") || name == "feed_forward_chunk" {
			return false // apply_chunking_to_forward, which makes one part unless it is asked for more
		}
		return strings.Contains(strings.ToLower(name), "chunk") || strings.Contains(file[strings.LastIndexByte(file, '/')+1:], "chunk")
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
