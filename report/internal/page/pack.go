package page

import (
	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
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

// categoryTexts are the texts of all categories, by number.
func categoryTexts(of func(category.Category) string) []string {
	var out []string
	for _, c := range category.All() {
		out = append(out, of(c))
	}
	return out
}

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

func pack(r *analyze.Result, size int, room most, sources []source, tables func(*snapshot.Snapshot) *stacks) (*Packed, error) {
	lives := 0
	for i := range sources {
		lives += len(sources[i].Timeline.Lives)
	}
	scale := 1.0
	for range tries {
		w, st := &writer{}, tables(r.Snapshot)
		held := newHeld(r, room.times(scale).holders)
		color := func(c category.Category) string { return chart.UseSlot(c).Name() }
		d := &Data{Version: Version, Categories: categoryTexts(category.Category.String), Colors: categoryTexts(color),
			Holders: held.all, Devices: []Device{}}
		for i := range sources {
			sources[i].held = held
			m := room.times(scale / float64(len(sources)))
			m.lives = int(float64(min(room.lives, lives)) * scale * float64(len(sources[i].Timeline.Lives)) / float64(max(lives, 1)))
			if scale == 1 && lives <= room.lives {
				m.lives = len(sources[i].Timeline.Lives)
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
