package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// device is the section of one device.
type device struct {
	ID, Name string
	Figures  []figure
	Traced   bool // there is a trace
	History  bool // that tells a stretch of the program's life
	Timeline timelineChart
	ByEvent  *timelineChart // the same by event, when Timeline is by time
	Bunched  bool           // most events lie in a small part of the time
	OOMs     *table
	Retries  string
	Failure  *failureView
	Account  *analyze.Account
	Uses     []uses
	Steps    *stepView
	Phases   *phaseView
	Turnover *turnoverView
	WhatIf   *whatIf
	Free     *freeView
	Checks   checks
	Stacks   []stackTable
	Maps     []segmentMap
	Frag     fragments
	Omitted  string // what there is no room for
	Folded   bool   // one of many: shown when asked for
	Opens    opens
	ByUse    bool // stacks have the color of what their memory is for
}

// figure is a key number with where it comes from.
type figure struct {
	Name, Value, Note string
	Alarm             bool
}

// overviewRow is one device in the table of all.
type overviewRow struct {
	*timeline.Timeline
	ID, Name string // ID is "" without a section
	Most     int64  // reserved bytes of the fullest device
}

// phase is a moment, or several that are the same state, with its title.
type phase struct {
	*analyze.Moment
	Title string // "Peak", "Peak and end"
	When  string // "event 60, 1.50 s"
	OOM   bool   // one of the moments is the out-of-memory event
	names []string
}

func (p *document) addDevices(r *analyze.Result) {
	rank := ranking(r)
	shown := rank[:min(len(rank), maxDevices)]
	p.Unshown = len(rank) - len(shown)
	rows := slices.Sorted(slices.Values(shown))
	deep := depths(rank)
	for _, i := range rows {
		d := newDevice(r, &r.Devices[i], deep[i])
		d.Folded = len(rows) > 3 && i != rank[0]
		p.Devices = append(p.Devices, d)
	}
	if len(r.Devices) < 2 {
		return
	}
	var most int64
	for i := range r.Devices {
		most = max(most, r.Devices[i].Timeline.PeakReserved.Bytes)
	}
	for i := range r.Devices {
		if i == maxRows {
			p.MoreDevices = len(r.Devices) - i
			break
		}
		t := r.Devices[i].Timeline
		row := overviewRow{Timeline: t, Name: chart.DeviceName(t.Device), Most: most}
		if _, found := slices.BinarySearch(rows, i); found {
			row.ID = deviceID(t.Device)
		}
		p.Overview = append(p.Overview, row)
	}
}

func deviceID(ordinal int) string { return fmt.Sprintf("gpu%d", ordinal) }

func newDevice(r *analyze.Result, d *analyze.Device, deep depth) device {
	t := d.Timeline
	axis := chart.NewAxis(t, r.Snapshot.HasTimes)
	phases := newPhases(d, axis)
	shown := phases
	if n := deep.moments; n > 0 && len(phases) > n {
		i := max(slices.IndexFunc(phases, func(ph phase) bool { return ph.OOM }), 0)
		shown = phases[i : i+1]
	}
	moments := make([]*analyze.Moment, len(shown))
	for i := range shown {
		moments[i] = shown[i].Moment
	}
	byUse := len(moments) > 0 && chart.Informed(moments[0].Uses)
	colors := newPalette(d, moments, byUse)
	v := device{
		ID: deviceID(t.Device), Name: chart.DeviceName(t.Device), Opens: newOpens(r, t.Device), ByUse: byUse,
		Figures:  figures(t, axis),
		Traced:   t.Trace.Len() > 0,
		History:  t.HasHistory(),
		Timeline: newChart(r.Snapshot, t, axis, deep.points),
		Frag:     newFragments(t, phases, deep.pins),
	}
	if axis.ByTime && deep.points > compact.points {
		c := newChart(r.Snapshot, t, chart.NewAxis(t, false), deep.points)
		v.ByEvent, v.Bunched = &c, axis.Bunched(t)
	}
	v.OOMs = newOOMs(t, axis)
	if n := len(t.Retries); n > 0 {
		var released int64
		for _, x := range t.Retries {
			released += x.Released
		}
		times := "once"
		if n > 1 {
			times = units.Count(int64(n)) + " times"
		}
		v.Retries = platform.Of(r.Snapshot.Writer.Backend).Say(fmt.Sprintf("PyTorch released cached segments %s (%s in "+
			"total), to try again what cudaMalloc had refused.", times, units.Bytes(released)))
	}
	if deep.points > compact.points {
		v.Steps = newSteps(&d.Steps, func(e int) string { return eventName(axis, e) })
		v.Phases = newPhaseView(d)
		v.Free = newFree(d.Free.Get())
		v.Turnover = newTurnover(new(d.Turnover.Get()))
		v.WhatIf = newWhatIf(d.WhatIf)
		v.Failure = newFailure(r.Snapshot, d, axis)
	}
	v.Account, v.Checks = d.Account, newChecks(&t.Checks)
	var mostActive int64
	for i := range phases {
		mostActive = max(mostActive, phases[i].State.Totals.Active)
	}
	if n := len(phases) - len(shown); n > 0 {
		v.Omitted = fmt.Sprintf("This page has no room for what allocated the memory of this device at %s, and for "+
			"its segments then: see its timeline, or snapana state --device %d.",
			units.Plural(n, "other moment"), t.Device)
	}
	for _, ph := range byLive(shown) {
		if len(ph.Uses) > 0 {
			v.Uses = append(v.Uses, uses{ph, mostActive, r.Snapshot})
		}
		v.Stacks = append(v.Stacks, newStackTable(ph, colors, deep, v.History))
	}
	for _, ph := range shown {
		v.Maps = append(v.Maps, newSegmentMap(t, ph, colors, deep))
	}
	return v
}

// newOOMs lists the requests that failed, nil for none.
func newOOMs(t *timeline.Timeline, axis chart.Axis) *table {
	if len(t.OOMs) == 0 {
		return nil
	}
	out := newTable("", words("When"), numbers("Requested"), numbers("Device free"), numbers("Reserved"),
		numbers("Active"))
	for i, o := range t.OOMs {
		if i == maxOOMs {
			out.More = fmt.Sprintf("%d more", len(t.OOMs)-i)
			break
		}
		free := "unknown"
		if o.DeviceFree >= 0 {
			free = units.Bytes(o.DeviceFree)
		}
		out.add(eventName(axis, o.Event), units.Bytes(o.Requested), free, units.Bytes(o.After.Reserved),
			units.Bytes(o.After.Active))
	}
	return out
}

// newPhases lists the moments of a device; moments with the same layout become one.
func newPhases(d *analyze.Device, axis chart.Axis) []phase {
	var out []phase
next:
	for i := range d.Moments {
		m := &d.Moments[i]
		if m.State == nil {
			continue
		}
		ph := phase{Moment: m, OOM: m.Name == "oom", names: []string{chart.MomentName(m.Name)}}
		ph.Title = units.List(ph.names)
		if d.Timeline.Trace.Len() > 0 {
			ph.When = eventName(axis, m.State.Event)
		}
		for k := range out {
			if sameLayout(out[k].State, m.State) {
				out[k].join(&ph)
				continue next
			}
		}
		out = append(out, ph)
	}
	return out
}

// join adds the names of another moment that shows the same: "Peak, out of memory and end".
func (p *phase) join(q *phase) {
	for _, name := range q.names {
		p.names = append(p.names, strings.ToLower(name))
	}
	p.Title = units.List(p.names)
	if q.When != p.When {
		p.When += " and " + q.When
	}
	p.OOM = p.OOM || q.OOM
}

// byLive makes one of moments with the same live blocks, whatever segments were reserved.
func byLive(all []phase) []phase {
	var out []phase
next:
	for i := range all {
		for k := range out {
			if sameLive(out[k].State, all[i].State) {
				out[k].join(&all[i])
				continue next
			}
		}
		out = append(out, all[i])
		out[len(out)-1].names = slices.Clone(all[i].names)
	}
	return out
}

// sameLive reports whether the same blocks live.
func sameLive(a, b *timeline.State) bool {
	return a.Totals.Active == b.Totals.Active && slices.Equal(live(a), live(b))
}

// live are the rows of the blocks that live, in order.
func live(st *timeline.State) []int32 {
	var rows []int32
	for i := range st.Segments {
		rows = append(rows, st.Segments[i].Live...)
	}
	slices.Sort(rows)
	return rows
}

// sameLayout reports whether the same blocks live in the same segments.
func sameLayout(a, b *timeline.State) bool {
	return a == b || a.Totals == b.Totals && slices.EqualFunc(a.Segments, b.Segments,
		func(s, t timeline.SegmentState) bool {
			return s.Range == t.Range && slices.Equal(s.Live, t.Live)
		})
}

// keep joins numbers with their words: lines break after the comma only.
var keep = strings.NewReplacer(", ", ", ", " ", "\u00a0")

// eventName says which event, and when.
func eventName(a chart.Axis, e int) string {
	if e < 0 {
		return "before the trace"
	}
	s := "event " + units.Count(int64(e))
	if a.ByTime {
		s += ", " + units.Micros(a.Event(e))
	}
	return keep.Replace(s)
}

func figures(t *timeline.Timeline, axis chart.Axis) []figure {
	peak := func(name string, p timeline.Peak, b timeline.Bound) figure {
		f := figure{Name: name, Value: chart.PeakBytes(t, p, b)}
		if t.HasHistory() && b != timeline.Unknown {
			f.Note = eventName(axis, p.Event)
		}
		return f
	}
	bounds := t.Recording.Told().Peak
	return merged([]figure{
		peak("Peak reserved", t.PeakReserved, bounds.Reserved),
		peak("Peak active", t.PeakActive, bounds.Active),
		peak("Peak allocated", t.PeakAllocated, bounds.Allocated),
		peak("Peak requested", t.PeakRequested, bounds.Requested),
		{Name: "End reserved", Value: units.Bytes(t.Final.Reserved)},
		{Name: "End active", Value: units.Bytes(t.Final.Active),
			Note: units.Percent(t.Final.Active, t.Final.Reserved) + " of reserved"},
		{Name: "Out of memory", Value: chart.Failures(t), Alarm: len(t.OOMs) > 0},
		{Name: "Retries", Value: chart.RetryCount(t)},
	})
}

// merged makes one of peaks that are of one size and one moment: "Peak active, allocated".
func merged(all []figure) []figure {
	out := all[:1]
	for _, f := range all[1:] {
		last := &out[len(out)-1]
		if what, ok := strings.CutPrefix(f.Name, "Peak "); ok && last.Value == f.Value && last.Note == f.Note && f.Note != "" {
			last.Name += ", " + what
			continue
		}
		out = append(out, f)
	}
	return out
}
