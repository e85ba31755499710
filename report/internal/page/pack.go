package page

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/gzip"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
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
		sources[i] = source{Device: &r.Devices[i], s: r.Snapshot}
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
func (w *writer) pack(d *Data) ([]byte, error) {
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
