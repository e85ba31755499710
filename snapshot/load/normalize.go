package load

import "github.com/snapana/snapana/snapshot"

// normalize fills in what old or foreign writers leave out and later ones record, so that
// readers of a Snapshot see one schema. The Has bits keep telling what the file itself held.
func normalize(s *snapshot.Snapshot) {
	for i := range s.Segments {
		seg := &s.Segments[i]
		seg.Device = max(seg.Device, 0)
		normalizeBlocks(s, seg)
		if seg.Has&snapshot.SegmentHasTotals != 0 && seg.Has&snapshot.SegmentHasRequested != 0 {
			continue
		}
		var allocated, active, requested int64
		for _, b := range blocksOf(s, seg) {
			if !b.State.Active() {
				continue
			}
			active += b.Size
			requested += b.Requested
			if b.State == snapshot.StateAllocated {
				allocated += b.Size
			}
		}
		if seg.Has&snapshot.SegmentHasTotals == 0 {
			seg.AllocatedSize, seg.ActiveSize = allocated, active
		}
		if seg.Has&snapshot.SegmentHasRequested == 0 {
			seg.RequestedSize = requested
		}
	}
	// A device without a list of its own did nothing that was recorded. Without the whole
	// of device_traces there is no trace at all, which nil keeps apart.
	if s.Traces != nil {
		for n := s.NumDevices(); len(s.Traces) < n; {
			s.Traces = append(s.Traces, snapshot.Trace{})
		}
	}
}

// normalizeBlocks gives the blocks of a segment addresses (absent before torch 2.1: blocks
// tile their segment, CUDACachingAllocator.cpp getBlocks), and live blocks the requested size
// and the stack that torch 1.13 and 2.0 keep in history (the newest allocation comes first,
// torch/cuda/_memory_viz.py _block_extra_legacy).
func normalizeBlocks(s *snapshot.Snapshot, seg *snapshot.Segment) {
	at := seg.Address
	blocks := blocksOf(s, seg)
	for i := range blocks {
		b := &blocks[i]
		if b.Has&snapshot.BlockHasAddress == 0 {
			b.Address = at
		}
		at = b.Address + uint64(max(b.Size, 0))
		if !b.State.Active() {
			continue
		}
		known := b.Has&snapshot.BlockHasRequested != 0
		if h := b.History; h.Len > 0 && int(h.End()) <= len(s.History) {
			newest := s.History[h.Start]
			if !known {
				b.Requested, known = newest.RealSize, true
			}
			if b.Stack == 0 {
				b.Stack = newest.Stack
			}
		}
		if !known {
			b.Requested = b.Size // rounding is not known, so none is shown
		}
	}
}

// blocksOf gives the blocks of a segment.
func blocksOf(s *snapshot.Snapshot, seg *snapshot.Segment) []snapshot.Block {
	r := seg.Blocks
	if r.Start < 0 || r.Len <= 0 || int(r.End()) > len(s.Blocks) {
		return nil
	}
	return s.Blocks[r.Start:r.End()]
}
