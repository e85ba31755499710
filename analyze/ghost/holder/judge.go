package holder

import (
	"cmp"
	"maps"
	"slices"
)

// judge calls a holder a ghost when its memory grows and nothing explains it.
func (f *finder) judge(h *Holder) {
	if h.Standing != Other {
		return
	}
	var growth int64 // of all loops whose memory this holds some of
	for i := range f.in.Lines {
		for k := range f.in.Lines[i].Growth {
			if f.in.Lines[i].Growth[k].Loop == h.Loop {
				growth += f.in.Lines[i].Growth[k].Bytes
			}
		}
	}
	switch {
	case h.Grown.Count >= 2 && (2*h.Grown.Bytes >= h.Sum.Bytes || 4*h.Grown.Bytes >= growth):
		h.Standing = Ghost
	case f.blind(h) && h.Before.Count > 0 && h.Storage.Count >= h.Before.Count+2 && h.Storage.Bytes > h.Before.Bytes:
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

// unproven lists the growths that no ghost explains.
func (f *finder) unproven(holders []Holder) []Unproven {
	var out []Unproven
	for i := range f.in.Lines {
		l := &f.in.Lines[i]
		for k := range l.Growth {
			growth := &l.Growth[k]
			var proven int64
			behind := map[int]int64{}
			for n := range holders {
				for _, m := range holders[n].rows {
					mem := &f.g.memory[m]
					if mem.row < 0 || mem.device != l.Device {
						continue
					}
					if life := &l.Lives[mem.row]; life.Born < 0 || !slices.Contains(growth.Stacks, life.Stack) {
						continue
					}
					behind[n] += mem.bytes
					if holders[n].Standing == Ghost {
						proven += mem.bytes
					}
				}
			}
			if 2*proven >= growth.Bytes {
				continue
			}
			u := Unproven{Device: l.Device, Growth: growth, Holders: slices.Collect(maps.Keys(behind))}
			slices.SortFunc(u.Holders, func(a, b int) int { return cmp.Or(cmp.Compare(behind[b], behind[a]), cmp.Compare(a, b)) })
			out = append(out, u)
		}
	}
	return out
}
