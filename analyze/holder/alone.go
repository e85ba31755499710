package holder

import (
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Host is the ordinal of host memory among devices, as in the recorder's dumps.
const Host = -1

// Alone says who holds the tensors of a recorder's file without a snapshot, on devices and in host memory. The dump
// is taken that has most memory, the newest of equal ones, and compared as Choose does. Each storage stands for a
// block of its own: the snapshot and the lines are of these. The result is nil when the file has no dump of
// holders; notes then say why.
func Alone(f, before *sidecar.File) (*snapshot.Snapshot, []Line, *Result, []string) {
	notes := damage(f)
	var run *sidecar.Run
	var h *sidecar.Holders
	most := int64(-1)
	for i := range f.Runs {
		for _, x := range f.Runs[i].Holders {
			var bytes int64
			for k, b := range x.Storages.Bytes {
				bytes += b * x.Every(k)
			}
			if bytes >= most {
				run, h, most = &f.Runs[i], x, bytes
			}
		}
	}
	if h == nil {
		return nil, nil, nil, append(notes, noDump(f))
	}
	s := blocksOf(f.Name, h)
	var lines []Line
	for i := range s.Segments {
		d := int(s.Segments[i].Device)
		known := false
		for k := range lines {
			known = known || lines[k].Device == d
		}
		if !known {
			lines = append(lines, Line{Timeline: timeline.Build(s, d)})
		}
	}
	r, notes := newFinder(s, lines).findIn(f, before, run, h, notes)
	if r != nil {
		r.Alone = true
	}
	return s, lines, r, notes
}

// blocksOf makes the final state of which a dump tells: a segment with one block for each storage.
func blocksOf(name string, h *sidecar.Holders) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Name: name, Recorded: snapshot.RecordedNoKey}
	for i, address := range h.Storages.Address {
		n := h.Storages.Bytes[i]
		s.Segments = append(s.Segments, snapshot.Segment{Address: address, TotalSize: n, AllocatedSize: n, ActiveSize: n,
			Device: h.Storages.Device[i], Blocks: snapshot.Range{Start: int32(i), Len: 1}})
		s.Blocks = append(s.Blocks, snapshot.Block{Address: address, Size: n, Requested: n, State: snapshot.StateAllocated,
			Has: snapshot.BlockHasAddress | snapshot.BlockHasRequested})
	}
	return s
}
