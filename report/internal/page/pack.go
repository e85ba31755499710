package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/report/internal/bands"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// Packed is the data of a page.
type Packed struct {
	Text []byte // for the page, see the package's comment
	Data *Data
}

// tries bounds how often less is packed because it was too much.
const tries = 16

// Pack packs the devices of r in at most size bytes of text. It gives nil when nothing fits.
func Pack(r *analyze.Result, size int) (*Packed, error) {
	return pack(r, size, room, newSources(r), newStacks)
}

func newSources(r *analyze.Result) []source {
	sources := make([]source, len(r.Devices))
	for i := range sources {
		d := &r.Devices[i]
		sources[i] = source{Device: d, s: r.Snapshot, at: newStretches(d.Timeline)}
	}
	return sources
}

func pack(
	r *analyze.Result, size int, room most, sources []source, tables func(*snapshot.Snapshot) *stacks,
) (*Packed, error) {
	lives := 0
	for i := range sources {
		lives += len(sources[i].Timeline.Lives)
	}
	scale := 1.0
	for range tries {
		w, st := &writer{}, tables(r.Snapshot)
		held := newHeld(r, room.times(scale).holders)
		d := &Data{Version: Version, Holders: held.all, Devices: []Device{}}
		for _, c := range category.All() {
			d.Categories, d.Colors = append(d.Categories, c.String()), append(d.Colors, chart.UseSlot(c).Name())
		}
		for _, k := range chart.FreeKinds {
			d.Free = append(d.Free, Class{k.Name, k.Means, k.Property()})
		}
		for i := range sources {
			sources[i].held = held
			m := room.times(scale / float64(len(sources)))
			own := len(sources[i].Timeline.Lives)
			m.lives = int(float64(min(room.lives, lives)) * scale * float64(own) / float64(max(lives, 1)))
			if scale == 1 && lives <= room.lives {
				m.lives = own
			}
			d.Devices = append(d.Devices, sources[i].write(w, st, m))
		}
		st.write(w, d)
		d.Source = st.source(w, r.Source, sourceRoom(size))
		text, err := w.pack(d)
		if err != nil {
			return nil, err
		}
		if len(text) <= size {
			return &Packed{text, d}, nil
		}
		scale *= min(0.95*float64(size)/float64(len(text)), 0.9)
	}
	return nil, nil
}

// LeftOut adds up what did not fit on any device.
func (p *Packed) LeftOut() LeftOut {
	var sum LeftOut
	for i := range p.Data.Devices {
		o := &p.Data.Devices[i].LeftOut
		sum.Lives += o.Lives
		sum.Of += o.Of
		sum.Ranges += o.Ranges
	}
	return sum
}

// table numbers keys in the order in which they come.
type table[K comparable] struct {
	all   []K
	index map[K]int32
}

// row is the row of a key, which is added when it is new.
func (t *table[K]) row(k K) (row int32, added bool) {
	row, ok := t.index[k]
	if !ok {
		if t.index == nil {
			t.index = map[K]int32{}
		}
		row = int32(len(t.all))
		t.index[k] = row
		t.all = append(t.all, k)
	}
	return row, !ok
}

// writer collects columns.
type writer struct{ b []byte }

// The modes of a column, as Column.Mode has them.
const (
	plain  = 'u'
	zigzag = 'z'
	deltas = 'd'
)

// column writes numbers. Plain ones must not be negative.
func (w *writer) column(mode byte, n int, at func(int) int64) Column {
	c := Column{At: len(w.b), Len: n, Mode: string(mode)}
	before := int64(0)
	for i := range n {
		v := at(i)
		switch mode {
		case plain:
			w.b = binary.AppendUvarint(w.b, uint64(max(v, 0)))
		case zigzag:
			w.b = binary.AppendVarint(w.b, v)
		case deltas:
			w.b = binary.AppendVarint(w.b, v-before)
			before = v
		}
	}
	return c
}

// column writes a list of numbers.
func column[T int | int32 | int64 | frames.Origin](w *writer, mode byte, all []T) Column {
	return w.column(mode, len(all), func(i int) int64 { return int64(all[i]) })
}

// head is what comes before the columns: the length of the header, and the header.
func head(header any) ([]byte, error) {
	text, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("pack the details of the page: %w", err)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...), nil
}

// pack joins the header and the columns, as text.
func (w *writer) pack(d any) ([]byte, error) {
	before, err := head(d)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &out)
	z := gzip.NewWriter(text)
	_, err = z.Write(before)
	_, other := z.Write(w.b)
	if err = errors.Join(err, other, z.Close(), text.Close()); err != nil {
		return nil, fmt.Errorf("pack the details of the page: %w", err)
	}
	return out.Bytes(), nil
}

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
				v.stacks.labelOf(sources[i].Timeline, l)
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
	list := newLifeList(len(rows), d.at)
	for _, row := range rows {
		list.add(&d.Timeline.Lives[row], row, d.kind(int(row), v.stacks, d.place[row]))
	}
	w := &writer{}
	h.Kinds, h.Lives = list.write(w, d.Timeline, d.held)
	before, err := head(h)
	return append(before, w.b...), err
}

// Settings is the number of settings that were replayed on a device, as the page has them.
func (v *Windows) Settings(device int) int {
	if a := v.devices[device].WhatIf; a != nil && a.Accuracy.Trusted {
		return len(a.Rows)
	}
	return 0
}

// Limit replays one of these settings with a limit in bytes.
func (v *Windows) Limit(ctx context.Context, device, setting int, limit int64) ([]byte, error) {
	x, err := v.devices[device].WhatIf.At(ctx, setting, limit)
	if err != nil {
		return nil, err
	}
	return json.Marshal(Rung(x))
}
