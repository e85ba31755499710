package memstats

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot/internal/plain"
	"github.com/snapana/snapana/snapshot/sorting"
)

// reader is one file on its way to the handler.
type reader struct {
	h      Handler
	info   Info
	keys   keys
	format string
	lines  bool // each record had a line of its own
}

// emit hands a sample on, if there is something in it.
func (r *reader) emit(s *Sample) {
	if s.Complete(); len(s.Stats) == 0 {
		return
	}
	r.info.Samples++
	if r.h.Sample != nil {
		r.h.Sample(s)
	}
}

// emitReading hands a reading on, if there is one with something in it.
func (r *reader) emitReading(g *Reading) {
	if g == nil || g.rows() == 0 {
		return
	}
	r.info.Readings++
	if r.h.Reading != nil {
		r.h.Reading(g)
	}
}

// skip counts a record that cannot be read.
func (r *reader) skip(f *Fault) {
	r.info.Skipped++
	r.info.FirstSkipped = cmp.Or(r.info.FirstSkipped, f)
}

// odd counts a figure that cannot be.
func (r *reader) odd(s *Sample, name string) {
	r.info.Odd++
	if r.info.FirstOdd == nil {
		r.info.FirstOdd = &Fault{Line: s.Line, Offset: -1,
			Msg: fmt.Sprintf("the value of %q is impossible", clip(name, 60))}
	}
}

// value turns one value of a file into samples and counts it when it gives none.
func (r *reader) value(v *plain.Value, line int64) {
	before := r.info.Samples
	r.walk(v, &Sample{Device: -1, Rank: -1, Line: line}, false)
	if r.info.Samples == before && v.Kind != plain.Nil {
		r.info.Foreign++
	}
}

// walk looks for counters in a value and what it holds. What surrounds them (step, device, ...)
// comes down with about. perDevice says that a list has an element for each device.
func (r *reader) walk(v *plain.Value, about *Sample, perDevice bool) {
	switch v.Kind {
	case plain.List:
		for i := range v.Items {
			s := *about
			if perDevice && s.Device < 0 {
				s.Device = i
			}
			r.walk(&v.Items[i], &s, false)
		}
	case plain.Map:
		r.dict(v, about)
	}
}

func (r *reader) dict(v *plain.Value, about *Sample) {
	s := *about
	s.Stats = append([]Stat(nil), about.Stats...)
	own, columns := 0, 0
	split := map[[2]int]*Sample{{-1, -1}: &s} // by device and rank, where keys name them
	for i, key := range v.Keys {
		m, item := r.keys.of(key), &v.Items[i]
		switch m.role {
		case rolePair:
			if item.Kind == plain.List && len(item.Items) == 2 {
				r.add(&s, "device.free", &item.Items[0])
				r.add(&s, "device.total", &item.Items[1])
			}
		case roleStat:
			if item.Kind == plain.List {
				columns = max(columns, len(item.Items))
				continue
			}
			id := [2]int{m.device, m.rank}
			if split[id] == nil {
				split[id] = &Sample{}
			}
			r.add(split[id], m.name, item)
			if !strings.HasPrefix(m.name, "device.") {
				own++
			}
		case roleBase:
			own += r.nested(&s, m.name, item)
		default:
			s.put(m.role, item)
		}
	}
	if columns > 0 {
		r.columns(v, &s, columns)
	}
	if own > 0 {
		r.parts(&s, split)
		s.Stats = nil // what lies deeper is of another moment or device
	}
	r.children(v, &s)
}

// put sets what a key says about the moment or the place of the sample.
func (s *Sample) put(role role, v *plain.Value) {
	switch role {
	case roleStep:
		s.Step = number(v)
	case roleEpoch:
		s.Epoch = number(v)
	case roleDevice:
		s.Device = small(v)
	case roleRank:
		s.Rank = small(v)
	case roleTime:
		s.Time = moment(v)
	case roleLabel:
		if v.Kind == plain.String {
			s.Label = clip(v.Str, 100)
		}
	}
}

// parts hands on a record whose keys may name several devices.
func (r *reader) parts(s *Sample, split map[[2]int]*Sample) {
	ids := sorting.Of(maps.Keys(split), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, id := range ids {
		out := *s
		out.Stats = split[id].Stats
		if id[0] >= 0 {
			out.Device = id[0]
		}
		if id[1] >= 0 {
			out.Rank = id[1]
		}
		r.emit(&out)
	}
}

func (r *reader) add(s *Sample, name string, v *plain.Value) {
	f, odd := figure(name, v)
	if odd {
		r.odd(s, name)
	}
	if f.Known() {
		s.Stats = append(s.Stats, Stat{name, f})
	}
}

// nested adds the figures of a counter in the nested form, and returns how many there were.
func (r *reader) nested(s *Sample, name string, v *plain.Value) int {
	if v.Kind != plain.Map {
		if strings.HasSuffix(name, "_bytes") && v.Kind != plain.List {
			r.add(s, name+".all.current", v)
			return 1
		}
		return 0
	}
	n := 0
	for i, key := range v.Keys {
		path := name + "." + strings.ToLower(key)
		if v.Items[i].Kind == plain.Map && strings.Count(path, ".") < 4 {
			n += r.nested(s, path, &v.Items[i])
			continue
		}
		if full, ok := counter(path, true); ok {
			r.add(s, full, &v.Items[i])
			n++
		}
	}
	return n
}

// columns hands on the samples of a record that has a list for each counter.
func (r *reader) columns(v *plain.Value, about *Sample, n int) {
	for row := range n {
		s := *about
		s.Stats = nil
		for i, key := range v.Keys {
			item := &v.Items[i]
			if item.Kind != plain.List || row >= len(item.Items) {
				continue
			}
			switch m, cell := r.keys.of(key), &item.Items[row]; m.role {
			case roleStat:
				r.add(&s, m.name, cell)
			case roleStep, roleEpoch, roleDevice, roleTime:
				s.put(m.role, cell)
			}
		}
		r.emit(&s)
	}
}

// deviceLists are keys of lists that have an element for each device.
var deviceLists = map[string]bool{"devices": true, "gpus": true, "stats": true, "memory_stats": true, "cuda": true,
	"per_device": true}

// children walks what a record holds beside counters.
func (r *reader) children(v *plain.Value, about *Sample) {
	numbered := 0
	for _, key := range v.Keys {
		if _, ok := plainNumber(key); ok {
			numbered++
		}
	}
	for i, key := range v.Keys {
		item := &v.Items[i]
		if item.Kind != plain.Map && item.Kind != plain.List {
			continue
		}
		if m := r.keys.of(key); m.role != roleNone {
			continue
		}
		s := *about
		lower := strings.ToLower(strings.TrimSpace(key))
		if d := inText(ordinal, lower); d >= 0 {
			s.Device = d
		}
		if k := inText(ranked, lower); k >= 0 {
			s.Rank = k
		}
		if n, ok := plainNumber(key); ok {
			// {0: memory_stats(0), 1: memory_stats(1)} or {step: memory_stats()}: more than a
			// machine has devices are steps.
			if s.Device < 0 && numbered <= 16 && n < 16 {
				s.Device = int(n)
			} else if !s.Step.Known {
				s.Step = Number{n, true}
			}
		}
		r.walk(item, &s, deviceLists[lower])
	}
}

// plainNumber reads a key that is a number.
func plainNumber(key string) (int64, bool) {
	if key == "" || key[0] < '0' || key[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(key, 10, 32)
	return n, err == nil
}
