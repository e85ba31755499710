package export

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/sorting"
)

// What a trace shows of a device at most.
const (
	mostValues = 100_000 // of each counter; of a longer trace the highest and the last of each stretch
	mostSlices = 5_000   // allocations, the largest first
)

// Kinds of events on a track (perfetto/protos/perfetto/trace/track_event/track_event.proto, TrackEvent.Type).
const (
	sliceBegin = 1
	sliceEnd   = 2
	instant    = 3
	counter    = 4
)

// trace writes Perfetto's format: a packet for each event of a track. Numbers of fields are those of
// perfetto/protos/perfetto/trace.
type trace struct {
	out    io.Writer
	buf    message
	tracks uint64
	ended  map[uint64]uint64 // when the last slice of a track did
	d      *device
	err    error
}

// writeTrace writes, for each device, counters of reserved, active and allocated bytes, the largest allocations as slices
// on as few tracks as they fit on, steps and phases, and failures as instants. Time is that of the trace; of one without
// times a microsecond for each event.
func writeTrace(ctx context.Context, w io.Writer, r *analyze.Result, _ Moment) error {
	t := &trace{out: w, ended: map[uint64]uint64{}}
	for i := range r.Devices {
		t.d = newDevice(r.Snapshot, &r.Devices[i])
		if t.d.Timeline.Trace.Len() == 0 {
			continue
		}
		top := t.track(0, fmt.Sprintf("%s, %s", chart.DeviceName(t.d.Timeline.Device), r.Snapshot.Name), false)
		t.counters(top)
		t.program(top)
		t.failures(top)
		t.largest(ctx, top)
		if err := cmp.Or(ctx.Err(), t.err); err != nil {
			return err
		}
	}
	if t.d == nil || t.tracks == 0 {
		return failure.Mark(failure.NoHistory, fmt.Errorf("%s has no events to draw a timeline of", r.Snapshot.Name))
	}
	return t.flush(0)
}

// time is that of an event in nanoseconds.
func (t *trace) time(event int) uint64 {
	tr := t.d.Timeline.Trace
	event = min(max(event, 0), tr.Len()-1)
	if !t.d.s.HasTimes {
		return uint64(event) * 1000
	}
	return uint64(max(tr.Time(event), 0)) * 1000
}

// packet writes one. All are of one sequence, which depends on nothing before it.
func (t *trace) packet(field protowire.Number, body message, at uint64) {
	var p message
	p.always(8, at) // timestamp
	p.number(10, 1) // trusted_packet_sequence_id
	if t.tracks == 1 && len(t.buf) == 0 {
		p.number(13, 1) // sequence_flags: SEQ_INCREMENTAL_STATE_CLEARED
	}
	p.message(field, body)
	t.buf.message(1, p)
	t.err = cmp.Or(t.err, t.flush(1<<16))
}

// track declares a track below another, 0 for none.
func (t *trace) track(parent uint64, name string, counts bool) uint64 {
	t.tracks++
	var d message
	d.number(1, t.tracks)
	d.text(2, name)
	d.number(5, parent)
	if counts {
		var c message
		c.number(3, 3) // unit: UNIT_SIZE_BYTES
		d.message(8, c)
	}
	t.packet(60, d, 0)
	return t.tracks
}

// event writes one of a track.
func (t *trace) event(track uint64, kind uint64, at uint64, name string, notes ...string) {
	var e message
	e.number(9, kind)
	e.number(11, track)
	if name != "" {
		e.text(23, name)
	}
	for i := 0; i+1 < len(notes); i += 2 {
		if notes[i+1] == "" {
			continue
		}
		var n message // DebugAnnotation
		n.text(10, notes[i])
		n.text(6, notes[i+1])
		e.message(4, n)
	}
	t.packet(11, e, at)
}

func (t *trace) count(track uint64, event int, bytes int64) {
	var e message
	e.number(9, counter)
	e.number(11, track)
	e.always(30, uint64(bytes))
	t.packet(11, e, t.time(event))
}

// counters writes what was reserved, active and allocated.
func (t *trace) counters(top uint64) {
	tl := t.d.Timeline
	track := t.track(top, "reserved", true)
	var bytes int64
	for i := range tl.Initially {
		bytes += tl.Initially[i].Size
	}
	t.count(track, 0, bytes)
	for i := range tl.Changes {
		c := &tl.Changes[i]
		if c.Add {
			bytes += c.Range.Size
		} else {
			bytes -= c.Range.Size
		}
		if i+1 == len(tl.Changes) || tl.Changes[i+1].Event != c.Event {
			t.count(track, c.Event, bytes)
		}
	}
	t.levels(t.track(top, "active", true), tl.ActiveLevels())
	t.levels(t.track(top, "allocated", true), tl.AllocatedLevels())
}

func (t *trace) levels(track uint64, l *timeline.Levels) {
	n := t.d.Timeline.Trace.Len()
	wide := max((n+mostValues-1)/mostValues, 1)
	last := int64(-1)
	put := func(event int, bytes int64) {
		if bytes != last {
			t.count(track, event, bytes)
		}
		last = bytes
	}
	for first := 0; first < n; first += wide {
		end := min(first+wide, n) - 1
		if bytes, event := l.Highest(first, end); event < end {
			put(event, bytes)
		}
		put(end, l.At(end))
	}
}

// program writes the steps and the phases.
func (t *trace) program(top uint64) {
	if list := t.d.Steps.Steps; len(list) > 0 {
		track := t.track(top, "steps", false)
		for i, s := range list {
			name := s.Name
			if name == "" {
				name = fmt.Sprintf("step %d", i)
			}
			t.slice(track, s.First, s.Last, name, "peak of active bytes", units.Bytes(s.Peak))
		}
	}
	for i := range t.d.Phases {
		p := &t.d.Phases[i]
		track := uint64(0)
		before := -1
		for _, lap := range p.List {
			if lap.First < 0 || lap.First <= before || lap.Last < lap.First {
				continue // not in the trace, without an event, or within another lap
			}
			if track == 0 {
				track = t.track(top, "phase "+p.Name, false)
			}
			before = lap.Last
			t.slice(track, lap.First, lap.Last, p.Name)
		}
	}
}

// slice is one of the events first to last. Times may go back; slices of a track do not.
func (t *trace) slice(track uint64, first, last int, name string, notes ...string) {
	from := max(t.time(first), t.ended[track])
	t.ended[track] = max(from, t.time(last))
	t.event(track, sliceBegin, from, name, notes...)
	t.event(track, sliceEnd, t.ended[track], "")
}

func (t *trace) failures(top uint64) {
	if len(t.d.Timeline.OOMs) == 0 {
		return
	}
	track := t.track(top, "out of memory", false)
	for _, o := range t.d.Timeline.OOMs {
		t.event(track, instant, t.time(o.Event), "out of memory: "+units.Bytes(o.Requested),
			"asked for", exactly(o.Requested), "where", attribution.Site(t.d.s, o.Stack))
	}
}

// largest writes the largest allocations, each on the first track that is free by then.
func (t *trace) largest(ctx context.Context, top uint64) {
	tl := t.d.Timeline
	rows := make([]int32, len(tl.Lives))
	for i := range rows {
		rows[i] = int32(i)
	}
	sorting.By(rows, func(a, b int32) int {
		return cmp.Or(cmp.Compare(tl.Lives[b].Rounded, tl.Lives[a].Rounded), cmp.Compare(a, b))
	})
	rows = slices.Clone(rows[:min(len(rows), mostSlices)])
	slices.Sort(rows) // by birth
	if len(rows) == 0 || ctx.Err() != nil {
		return
	}
	group := t.track(top, "largest allocations", false)
	var tracks []uint64
	var free []int // from which event on each is
	for _, row := range rows {
		l := &tl.Lives[row]
		first, last := max(int(l.Born), 0), int(l.Freed)
		if last < 0 {
			last = tl.Trace.Len()
		}
		k := slices.IndexFunc(free, func(from int) bool { return from <= first })
		if k < 0 {
			k = len(free)
			free = append(free, 0)
			tracks = append(tracks, t.track(group, fmt.Sprintf("allocations %d", k+1), false))
		}
		free[k] = last
		site, _, _ := t.d.codes.Names(t.d.codes.Of(row))
		use, _ := t.d.Categories.Of(row)
		t.slice(tracks[k], first, last, units.Bytes(l.Rounded)+" "+site, "rounded", exactly(l.Rounded), "requested",
			exactly(l.Requested), "category", use.String(), "address", attribution.Hex(l.Addr))
	}
}

func (t *trace) flush(over int) (err error) {
	if len(t.buf) > over {
		_, err = t.out.Write(t.buf)
		t.buf = t.buf[:0]
	}
	return err
}

// exactly is a size to the byte.
func exactly(n int64) string { return units.Count(n) + " B" }
