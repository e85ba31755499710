package holder

import (
	"fmt"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Choose finds in a recorder's file what was seen at the moment of a snapshot, and joins it.
//
// The recorder says which dump belongs to which snapshot, by name and size. Where it does not,
// the dump is taken whose storages lie best on the snapshot's blocks; a note says so. The first
// dump of the same run is the one that is compared, or the last one of before, if that is not
// nil. The result is nil when the file has no dump of holders; notes then say why.
func Choose(s *snapshot.Snapshot, lines []Line, f, before *sidecar.File) (*Result, []string) {
	notes := damage(f)
	find := newFinder(s, lines)
	var h *sidecar.Holders
	run, dump := f.Snapshot(snapshot.PlainName(s.Name), s.Bytes)
	if run != nil {
		h = run.HoldersOf(dump)
	}
	if h == nil {
		if run, h = find.bestFit(f); h == nil {
			return nil, append(notes, noDump(f))
		}
		notes = append(notes, fmt.Sprintf("%s does not say which dump belongs to this snapshot; %s was chosen because its "+
			"addresses fit best.", f.Name, dumpName(h)))
	}
	return find.findIn(f, before, run, h, notes)
}

func noDump(f *sidecar.File) string {
	return f.Name + " has no dump of who holds memory: call dump() of the recorder where memory matters."
}

// damage says where a file breaks.
func damage(f *sidecar.File) (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if t := f.Truncated; t != nil {
		note("%s breaks off at byte %d, in the middle of a record; the part before it was used.", f.Name, t.Offset)
	}
	if f.Partial != nil {
		note("Only a part of %s could be read: %v.", f.Name, f.Partial)
	}
	for _, g := range f.Gaps {
		note("%s has a torn record at byte %d; a later run continues after it.", f.Name, g.Offset)
	}
	return notes
}

// findIn joins a dump, compared with an earlier one. The notes that there are become those of the result, if there is
// one.
func (find *finder) findIn(f, before *sidecar.File, run *sidecar.Run, h *sidecar.Holders, notes []string) (*Result,
	[]string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	find.now, find.text = h, newText(run.Uses)
	if before != nil {
		for i := range before.Runs {
			if n := len(before.Runs[i].Holders); n > 0 {
				find.before = before.Runs[i].Holders[n-1]
			}
		}
		if find.before == nil {
			note("%s has no dump of who holds memory to compare with.", before.Name)
		}
	} else if first := run.Holders[0]; first != h {
		find.before = first
		if first.Step != nil && h.Step != nil {
			find.steps = *h.Step - *first.Step
		}
	}
	r := find.find()
	r.Dump, r.File = dumpName(h), f.Name
	if find.before != nil {
		r.Earlier = dumpName(find.before)
	}
	r.readFree(run, h)
	var held int64
	for _, d := range r.Devices {
		held += d.Held.Count
	}
	if r.Stray.Count > held {
		note("%s was not used: only %d of its %d storages fit a block, so it belongs to another run or another moment "+
			"than the snapshot.", f.Name, held, held+r.Stray.Count)
		return nil, notes
	}
	r.Notes = append(notes, r.Notes...)
	return r, nil
}

// readFree adds what was free on the devices when the snapshot of a dump was written.
func (r *Result) readFree(run *sidecar.Run, h *sidecar.Holders) {
	for _, d := range run.Snapshots {
		if d.Holders == nil || h.ID == nil || *d.Holders != *h.ID {
			continue
		}
		for i := range r.Devices {
			for _, m := range d.Devices {
				if m.Device != nil && *m.Device == int64(r.Devices[i].Ordinal) {
					r.Devices[i].free = m.Free
				}
			}
		}
	}
}

func dumpName(h *sidecar.Holders) string {
	name := "the dump"
	if h.ID != nil {
		name = fmt.Sprintf("dump %d", *h.ID)
	}
	if h.Step != nil {
		name += fmt.Sprintf(", in step %d", *h.Step)
	}
	return name
}

// bestFit finds the dump whose storages lie in blocks of most bytes, the newest of equal ones.
func (f *finder) bestFit(file *sidecar.File) (run *sidecar.Run, best *sidecar.Holders) {
	most := int64(-1)
	for i := range file.Runs {
		for _, h := range file.Runs[i].Holders {
			var fit int64
			mem, _ := f.join(h)
			for _, m := range mem {
				fit += m.bytes
			}
			if fit >= most {
				run, best, most = &file.Runs[i], h, fit
			}
		}
	}
	return run, best
}
