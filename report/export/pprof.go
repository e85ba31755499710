package export

import (
	"compress/gzip"
	"context"
	"io"
	"strconv"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
)

// profile writes the format of pprof (google/pprof, proto/profile.proto; the fields have its names and numbers) piece by
// piece: samples as they are summed up, and at the end the tables that they refer to. The library for it keeps all
// samples, of which a hostile file makes more than it may have memory for.
type profile struct {
	out       io.Writer
	buf       message
	strings   map[string]int32
	texts     []string
	functions map[function]int32
	locations map[location]int32
	err       error
}

type function struct{ name, file int32 }

type location struct{ function, line int32 }

// writeProfile writes the moments as types of samples, in rounded bytes and blocks: the bytes of the peak sum up to the
// active bytes of all devices, each at its own peak.
func writeProfile(ctx context.Context, w io.Writer, r *analyze.Result, _ Moment) error {
	z := gzip.NewWriter(w)
	p := &profile{out: z, strings: map[string]int32{}, functions: map[function]int32{}, locations: map[location]int32{}}
	p.id("") // is always the first
	for _, m := range Moments() {
		for _, unit := range [][2]string{{"space", "bytes"}, {"objects", "count"}} {
			var t message
			t.number(1, p.id(word(m)+"_"+unit[0]))
			t.number(2, p.id(unit[1]))
			p.buf.message(1, t) // sample_type
		}
	}
	var begin, end int64
	history := false
	for i := range r.Devices {
		d := newDevice(r.Snapshot, &r.Devices[i])
		if first := timeOf(d.Timeline.Trace, 0); first != nil && (begin == 0 || *first < begin) {
			begin = *first
		}
		if last := timeOf(d.Timeline.Trace, d.Timeline.Trace.Len()-1); last != nil {
			end = max(end, *last)
		}
		history = history || d.history
		if err := d.groups(ctx, func(g *group) error { return p.sample(d, g) }); err != nil {
			return err
		}
	}
	p.tables()
	p.buf.number(9, uint64(begin)*1000) // time_nanos
	p.buf.number(10, uint64(max(end-begin, 0))*1000)
	usual := Peak
	if !history {
		usual = End
	}
	p.buf.number(14, p.id(word(usual)+"_space")) // default_sample_type
	for _, s := range p.texts {
		p.buf.text(6, s) // string_table
	}
	p.flush(0)
	if p.err == nil {
		p.err = z.Close()
	}
	return p.err
}

func word(m Moment) string {
	if m == Allocated {
		return "alloc" // as Go's own profiles call it
	}
	return string(m)
}

func (p *profile) id(s string) uint64 {
	var id int32
	id, p.texts = intern(p.strings, p.texts, s)
	return uint64(id)
}

// sample writes one group.
func (p *profile) sample(d *device, g *group) error {
	var s message
	var list []uint64
	for _, f := range d.calls(g.code) {
		list = append(list, p.location(f))
	}
	s.packed(1, list)
	list = list[:0]
	for _, sum := range g.sums {
		list = append(list, uint64(sum.Rounded), uint64(sum.Count))
	}
	s.packed(2, list)
	label := func(key, text string) {
		var l message
		l.number(1, p.id(key))
		l.number(2, p.id(text))
		s.message(3, l)
	}
	label("category", g.use.String())
	label("device", strconv.Itoa(d.Timeline.Device)) // texts all: readers take the number 0 for none
	if g.home.known {
		label("pool", g.home.pool.String())
		label("stream", strconv.Itoa(int(g.home.stream)))
	}
	if g.step >= 0 {
		label("step", strconv.Itoa(g.step))
	}
	p.buf.message(2, s)
	return p.flush(1 << 16)
}

// location gives the number of a call, from 1 on.
func (p *profile) location(f attribution.Frame) uint64 {
	fn := function{int32(p.id(f.Name)), int32(p.id(f.File))}
	if _, ok := p.functions[fn]; !ok {
		p.functions[fn] = int32(len(p.functions) + 1)
	}
	at := location{p.functions[fn], f.Line}
	if _, ok := p.locations[at]; !ok {
		p.locations[at] = int32(len(p.locations) + 1)
	}
	return uint64(p.locations[at])
}

// tables writes locations and functions, by number.
func (p *profile) tables() {
	places := make([]location, len(p.locations))
	for at, id := range p.locations {
		places[id-1] = at
	}
	for i, at := range places {
		var l, line message
		l.number(1, uint64(i+1))
		line.number(1, uint64(at.function))
		line.number(2, uint64(max(at.line, 0)))
		l.message(4, line)
		p.buf.message(4, l)
		p.flush(1 << 16)
	}
	names := make([]function, len(p.functions))
	for f, id := range p.functions {
		names[id-1] = f
	}
	for i, f := range names {
		var fn message
		fn.number(1, uint64(i+1))
		fn.number(2, uint64(f.name))
		fn.number(3, uint64(f.name))
		fn.number(4, uint64(f.file))
		p.buf.message(5, fn)
		p.flush(1 << 16)
	}
}

// flush passes on what is more than a size.
func (p *profile) flush(over int) error {
	if p.err == nil && len(p.buf) > over {
		_, p.err = p.out.Write(p.buf)
		p.buf = p.buf[:0]
	}
	return p.err
}
