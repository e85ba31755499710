package holder

import (
	"cmp"
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/ghost"
)

// judge calls a holder a ghost when its memory grows and nothing explains it. A variable of a
// running function has what the current lap made; only when it has most of all laps, as a sum of
// losses with their graphs does, it is one too. Two dumps can acquit: what is no more than some
// laps ago is a buffer that is full. So can the bound of a container: one that is not full is filled.
func (f *finder) judge(h *Holder) {
	// Blocks are counted: one workspace that was made at the same place may outweigh them.
	var all int64 // of the growth, whoever holds it
	if h.growth != nil {
		all = h.growth.Count
	}
	h.Steady = f.in.Steps >= ghost.MinLaps && h.Before.Count >= h.Storage.Count && h.Before.Bytes >= h.Storage.Bytes
	if h.Steady || h.Filling() {
		return
	}
	switch grown := h.GrownBlocks; {
	case h.GrownBlocks < 2 && !f.blind(h):
	case h.Standing == Running && 2*grown >= all && h.growth != nil,
		(h.Standing == Other || h.Standing == Buffer) && h.growth != nil && (2*h.Grown >= h.Bytes || 4*grown >= all),
		h.Standing == Other && f.blind(h) && h.Before.Count > 0 && h.Storage.Count >= h.Before.Count+2 && h.Storage.Bytes > h.Before.Bytes:
		h.Standing = Ghost
	}
}

// blind reports whether there is no trace that could show the memory of a holder growing: then
// two dumps are all that there is.
func (f *finder) blind(h *Holder) bool {
	for _, d := range h.Devices {
		if f.line(d).Trace.Len() > 0 {
			return false
		}
	}
	return true
}

// unproven lists the growths that nothing explains: neither a ghost nor memory that is as it
// should be.
func (f *finder) unproven(holders []Holder) []Unproven {
	behind := map[*ghost.Growth]map[int]int64{} // bytes by holder
	proven := map[*ghost.Growth]int64{}         // blocks behind a ghost, or behind what is known not to be one
	for n := range holders {
		for _, i := range holders[n].rows {
			m := &f.g.memory[i]
			if m.row < 0 {
				continue
			}
			growth := f.growthOf(m)
			if growth == nil {
				continue
			}
			if behind[growth] == nil {
				behind[growth] = map[int]int64{}
			}
			behind[growth][n] += m.bytes
			if h := &holders[n]; h.Standing == Ghost || h.Steady || h.Filling() || h.Standing == Optimizer || h.Standing == Gradient {
				proven[growth]++
			}
		}
	}
	var out []Unproven
	for i := range f.in.Lines {
		l := &f.in.Lines[i]
		for k := range l.Growth {
			growth := &l.Growth[k]
			if 2*proven[growth] >= growth.Count {
				continue
			}
			bytes := behind[growth]
			u := Unproven{Device: l.Device, Growth: growth, Holders: slices.Collect(maps.Keys(bytes))}
			slices.SortFunc(u.Holders, func(a, b int) int { return cmp.Or(cmp.Compare(bytes[b], bytes[a]), cmp.Compare(a, b)) })
			out = append(out, u)
		}
	}
	return out
}
