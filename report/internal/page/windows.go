package page

import (
	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/internal/bands"
	"github.com/snapana/snapana/snapshot"
)

// windowLives bounds a window: a browser takes so many in without a pause. A window that has
// more is so long that a column of a picture covers more events than a moment of Rest.
const windowLives = 100_000

// servedLives bounds a page that can ask for more, of a trace that has more than room in any
// case: the page joins its own lives with each window.
const servedLives = 100_000

// Window is what a page that was served leaves out of a part of the trace. It travels as
//
//	length of the header as uint32, little-endian | header | columns
//
// where the header is Window as JSON, and rows of Stacks, Places and Categories are the page's.
type Window struct {
	Version int `json:"version"`
	// All lives after the events First..Last are in the page or in the window when All is
	// true, else the largest of them. -1 is before the trace.
	First int  `json:"first"`
	Last  int  `json:"last"`
	All   bool `json:"all"`
	// AllAt is true when all lives after the event At are.
	At    int   `json:"at"`
	AllAt bool  `json:"all_at"`
	Kinds Kinds `json:"kinds"`
	Lives Lives `json:"lives"` // none of these is in the page
}

// Windows gives what a page leaves out. It is safe for concurrent use. For a trace of which not
// all is in the page it keeps 9 bytes for each life.
type Windows struct {
	devices []windowed
	stacks  *stacks // of all lives: it does not change any more
}

type windowed struct {
	*source
	ranks *bands.Ranks
	place []int32 // by life
}

// PackServed packs like Pack, with all stacks, and gives windows of what is left out.
func PackServed(r *analyze.Result, size int) (*Packed, *Windows, error) {
	v := &Windows{}
	sources := newSources(r)
	m, lives := room, 0
	for i := range sources {
		lives += len(sources[i].Timeline.Lives)
	}
	if lives > m.lives {
		m.lives = servedLives
	}
	p, err := pack(r, size, m, sources, func(s *snapshot.Snapshot) *stacks {
		v.stacks = newStacks(s)
		for i := range sources {
			for k := range sources[i].Timeline.Lives {
				l := &sources[i].Timeline.Lives[k]
				v.stacks.row(l.Stack, l.Born < 0)
			}
		}
		return v.stacks
	})
	if p == nil || err != nil {
		return nil, nil, err
	}
	for i := range sources {
		src := &sources[i]
		w := windowed{source: src}
		if src.kept != nil {
			w.ranks = bands.NewRanks(src.Timeline, src.kept)
			ranges := newReserved(src.Timeline)
			w.place = make([]int32, len(src.Timeline.Lives))
			for k := range w.place {
				l := &src.Timeline.Lives[k]
				ranges.to(int(l.Born))
				w.place[k] = ranges.placeOf(l.Addr)
			}
		}
		v.devices = append(v.devices, w)
	}
	return p, v, nil
}

// Len is the number of devices.
func (v *Windows) Len() int { return len(v.devices) }

// Events is the length of a device's trace.
func (v *Windows) Events(device int) int { return v.devices[device].Timeline.Trace.Len() }

// Pack packs what the page leaves out after the events first..last, and after at. They must be
// events of the device, or -1.
func (v *Windows) Pack(device, first, last, at int) ([]byte, error) {
	d := &v.devices[device]
	h := Window{Version: Version, First: first, Last: last, All: true, At: at, AllAt: true}
	var rows []int32
	if d.ranks != nil {
		rows, h.All, h.AllAt = d.ranks.Within(first, last, at, windowLives)
	}
	list := newLifeList(len(rows))
	for _, row := range rows {
		list.add(&d.Timeline.Lives[row], row, d.kind(int(row), v.stacks, d.place[row]))
	}
	w := &writer{}
	h.Kinds, h.Lives = list.write(w, d.Timeline, d.held)
	before, err := head(h)
	return append(before, w.b...), err
}
