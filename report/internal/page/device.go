package page

import (
	"cmp"
	"math"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/internal/bands"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// most bounds what one device has in the page.
type most struct {
	lives, ranges int
	spans         int // moments of Rest
	free          int // moments of Free
	knots         int // rows of the clock
	marks         int // steps as well
	holders       int
}

// room is what a page has at best: a browser draws so much at once without a pause.
var room = most{lives: 500_000, ranges: 50_000, spans: 1 << 17, free: 1 << 8, knots: 1 << 17, marks: 5000, holders: 500}

// times shrinks the room. Sums shrink less: they keep the picture right.
func (m most) times(f float64) most {
	by := func(n int) int { return int(float64(n) * f) }
	slowly := func(n int) int { return max(int(float64(n)*math.Sqrt(f)), 16) }
	return most{
		by(m.lives), by(m.ranges), slowly(m.spans), slowly(m.free), max(by(m.knots), 16), by(m.marks),
		max(by(m.holders), 32),
	}
}

// source is a device with what is found out once, however often it is packed.
type source struct {
	*analyze.Device
	s     *snapshot.Snapshot
	index *bands.Index // made when something must be left out
	kept  []bool       // the lives that stayed, nil for all
	fails []Failure    // nil until they were asked for
	held  *held
	at    stretches
}

func (src *source) write(w *writer, st *stacks, m most) Device {
	t := src.Timeline
	d := Device{
		Ordinal: t.Device, Events: t.Trace.Len(), Initial: t.Initial, Final: t.Final,
		Rest: Rest{Bytes: []Column{}}, LeftOut: LeftOut{Of: len(t.Lives)}, Stretches: src.at.list(),
	}
	// Each looks at millions of lives or events, and needs nothing of what is written meanwhile.
	keeps, rests := make(chan []bool, 1), make(chan rest, 1)
	go func() {
		keep := src.choose(m.lives)
		keeps <- keep
		rests <- src.sum(keep, m.spans)
	}()
	d.Marks = src.marks(m.marks)
	src.steps(w, &d, m.marks)
	src.clock(w, &d, m.knots)
	keep := <-keeps
	src.kept = keep
	r := newReserved(t)
	src.lives(w, &d, st, r, keep, m.lives)
	d.Held, d.Growth = src.held.write(w, t), src.growth(st)
	r.write(w, &d, src.at, m.ranges)
	(<-rests).write(w, &d)
	src.free(w, &d, m.free)
	src.whatIf(w, &d)
	c := &t.Conf
	d.Rules = Rules{Expandable: c.Expandable, MaxSplit: c.MaxSplit, MaxRound: c.MaxNonSplitRounding}
	if src.fails == nil {
		src.fails = src.failures()
	}
	d.Failures = src.fails
	return d
}

// mostFailures bounds the requests that failed of which the page says what would serve them.
const mostFailures = 64

// failures lists the last requests that failed, and never gives nil.
func (src *source) failures() []Failure {
	t := src.Timeline
	c := &t.Conf
	out := []Failure{}
	ooms := t.OOMs[max(len(t.OOMs)-mostFailures, 0):]
	if t.Recording.BlocksUnknown() {
		ooms = nil // what was live is not known
	}
	for i := range ooms {
		o := &ooms[i]
		if o.Requested <= 0 || o.Requested > allocator.MaxRequest || o.Event < 0 || o.Event >= t.Trace.Len() {
			continue
		}
		small := c.Small(o.Requested)
		req := fragmentation.Request{Rounded: o.Requested, Stream: t.Trace.At(o.Event).Stream, DeviceFree: o.DeviceFree}
		out = append(out, Failure{Event: o.Event, Rounded: o.Requested, Stream: int(req.Stream), Small: small,
			Free: o.DeviceFree, Segment: c.SegmentSize(o.Requested), Granule: c.Granule(small),
			Way: string(fragmentation.Serve(t, t.StateAt(o.Event), req).Way)})
	}
	return out
}

// marks lists what the page offers to jump to.
func (src *source) marks(n int) []Mark {
	t := src.Timeline
	out := []Mark{}
	last := t.Trace.Len() - 1
	add := func(kind string, event int, text string, stream snapshot.StreamID) {
		if len(out) < n && event >= -1 && event <= last {
			out = append(out, Mark{Kind: kind, Event: event, Text: text, Stream: int(stream)})
		}
	}
	if last >= 0 {
		add("peak", t.PeakActive.Event, "peak of active memory, "+units.Bytes(t.PeakActive.Bytes), 0)
	}
	for i := range t.OOMs {
		var stream snapshot.StreamID
		if e := t.OOMs[i].Event; e >= 0 && e <= last {
			stream = t.Trace.At(e).Stream
		}
		add("oom", t.OOMs[i].Event, "out of memory: "+units.Bytes(t.OOMs[i].Requested)+" requested", stream)
	}
	for i := range t.Retries {
		x := &t.Retries[i]
		add("retry", x.FirstEvent, "device refused memory: "+units.Bytes(x.Released)+" of cache released", 0)
	}
	for _, a := range attribution.Annotations(src.s, t) {
		if len(out) < n {
			e := t.Trace.At(a.Event)
			out = append(out, Mark{Kind: "annotation", Event: a.Event, Text: clean(src.s.Strings.Get(a.Text)), Addr: src.at.of(e.Addr)})
		}
	}
	sorting.Stable(out, func(a, b Mark) int { return cmp.Compare(a.Event, b.Event) })
	return out
}

func (src *source) steps(w *writer, d *Device, n int) {
	all := src.Steps.Steps
	d.Steps.Names = []string{}
	if len(all) > n {
		all = nil // a part of them would look like all
	}
	for i := range all {
		d.Steps.Names = append(d.Steps.Names, clean(all[i].Name))
	}
	d.Steps.Unit = clean(src.Steps.Unit)
	d.Steps.First = w.column(deltas, len(all), func(i int) int64 { return int64(all[i].First) })
	d.Steps.Last = w.column(deltas, len(all), func(i int) int64 { return int64(all[i].Last) })
}

// clock keeps the time of every event, or of about n of them.
func (src *source) clock(w *writer, d *Device, n int) {
	trace := src.Timeline.Trace
	events, stride := trace.Len(), 1
	if events > n {
		stride = (events + n - 1) / n
	}
	var at, micros []int64
	start, now := int64(0), int64(0)
	for e := range events {
		us := trace.At(e).Time
		if start == 0 {
			start = us
		}
		now = max(now, us-start)
		if e%stride == 0 || e == events-1 {
			at, micros = append(at, int64(e)), append(micros, now)
		}
	}
	d.Clock.Exact = stride == 1
	if !src.s.HasTimes || now == 0 {
		at, micros = nil, nil
	}
	d.Clock.Event = column(w, deltas, at)
	d.Clock.Micros = column(w, deltas, micros)
}

// choose says which lives stay, nil for all.
func (src *source) choose(n int) []bool {
	if len(src.Timeline.Lives) <= n {
		return nil
	}
	if src.index == nil {
		src.index = bands.New(src.Timeline)
	}
	var must []int
	for i := range src.Moments {
		if st := src.Moments[i].State; st != nil {
			must = append(must, st.Event)
		}
	}
	return src.index.Choose(n, must)
}

func (src *source) lives(w *writer, d *Device, st *stacks, r *reserved, keep []bool, n int) {
	t := src.Timeline
	list := newLifeList(max(min(n, len(t.Lives)), 0), src.at) // a page that is full already has room for less than 0
	for i := range t.Lives {
		if keep != nil && !keep[i] {
			d.LeftOut.Lives++
			continue
		}
		l := &t.Lives[i]
		r.to(int(l.Born))
		list.add(l, int32(i), src.kind(i, st, r.placeOf(l.Addr)))
	}
	d.Kinds, d.Lives = list.write(w, t, src.held)
}

func (src *source) kind(i int, st *stacks, place int32) kind {
	l := &src.Timeline.Lives[i]
	k := kind{rounded: l.Rounded, requested: l.Requested, stack: st.row(l.Stack, l.Born < 0), place: place}
	k.label = st.labelOf(src.Timeline, l)
	if src.Categories != nil {
		c, trust := src.Categories.Of(int32(i))
		k.category, k.trust = uint8(c), uint8(trust)
	}
	return k
}

// rest is what Rest is made of: nothing where nothing is left out.
type rest struct {
	edges   []int
	columns []bands.Column
	sums    [][]int64 // by category
}

// sum adds up the lives that are not kept, in so many spans.
func (src *source) sum(keep []bool, spans int) (r rest) {
	events := src.Timeline.Trace.Len()
	if keep == nil || events == 0 {
		return r
	}
	r.edges = bands.Even(0, events, spans)
	groups, group := 1, func(int32) int { return 0 }
	if src.Categories != nil {
		groups, group = len(category.All()), func(row int32) int { c, _ := src.Categories.Of(row); return int(c) }
	}
	r.columns = src.index.Columns(r.edges)
	r.sums = src.index.Rest(r.columns, keep, groups, group)
	return r
}

func (r rest) write(w *writer, d *Device) {
	if r.edges == nil {
		return
	}
	d.Rest.Edge = column(w, deltas, r.edges)
	d.Rest.Event = w.column(deltas, len(r.columns), func(i int) int64 { return int64(r.columns[i].Event) })
	for _, sums := range r.sums {
		d.Rest.Bytes = append(d.Rest.Bytes, column(w, deltas, sums))
	}
}

// free writes at most n of the moments at which free memory was measured, where the page cannot
// tell it by itself.
func (src *source) free(w *writer, d *Device, n int) {
	var samples []fragmentation.Sample
	if d.LeftOut.Lives > 0 || d.LeftOut.Ranges > 0 {
		free := src.Free.Get()
		n = min(n, len(free))
		for i := range n {
			samples = append(samples, free[(i+1)*len(free)/n-1])
		}
	}
	d.Free.Event = w.column(deltas, len(samples), func(i int) int64 { return int64(samples[i].Event) })
	for _, k := range chart.FreeKinds {
		c := w.column(deltas, len(samples), func(i int) int64 { return k.Bytes(&samples[i].Classes) })
		d.Free.Bytes = append(d.Free.Bytes, c)
	}
}

// whatIf writes the curves of all settings that were replayed.
func (src *source) whatIf(w *writer, d *Device) {
	d.WhatIf = WhatIf{Best: -1, Replay: []Replay{}}
	a := src.WhatIf
	if a == nil || !a.Accuracy.Trusted || len(a.Rows) == 0 || len(a.Rows[0].Outcome.Curve) == 0 {
		d.WhatIf.Last = column[int](w, plain, nil)
		return
	}
	d.WhatIf.Best, d.WhatIf.Limit = a.Best, a.Capacity.Reservable
	ends := a.Rows[0].Outcome.Curve
	d.WhatIf.Last = w.column(deltas, len(ends), func(i int) int64 { return int64(ends[i].Last) })
	for i := range a.Rows {
		r := &a.Rows[i]
		v := Replay{Name: clean(chart.Setting(r)), Peak: r.ReservedPeak, Failures: r.Failures, Failed: -1,
			About: r.Assumed != nil}
		if r.First != nil {
			v.Failed, v.Asked = r.First.Event, r.First.Requested
		}
		curve := r.Outcome.Curve
		if len(curve) != len(ends) {
			curve = nil // it did not even start
		}
		v.Reserved = w.column(deltas, len(curve), func(i int) int64 { return curve[i].Reserved })
		v.Ladder = ladder(w, r.Ladder)
		d.WhatIf.Replay = append(d.WhatIf.Replay, v)
	}
}

func ladder(w *writer, l *whatif.Ladder) Ladder {
	if l == nil {
		l = &whatif.Ladder{}
	}
	out := Ladder{Rungs: []Rung{}, Safe: l.Safe != nil, SafeTo: l.SafeTo}
	for i := range l.Rungs {
		out.Rungs = append(out.Rungs, Rung(l.Rungs[i]))
	}
	bounds := func(all []whatif.Bound) (event, bytes Column) {
		return w.column(deltas, len(all), func(i int) int64 { return int64(all[i].Event) }),
			w.column(deltas, len(all), func(i int) int64 { return all[i].Bytes })
	}
	out.SafeEvent, out.SafeBytes = bounds(l.Safe)
	out.SureEvent, out.SureBytes = bounds(l.Sure)
	return out
}
