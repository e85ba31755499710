package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Summary prints facts about a file and its devices, without a judgment, in about 30 lines.
func Summary(w io.Writer, r *analyze.Result, o Options) error {
	d, s := newDoc(o), r.Snapshot
	fact := func(name, text string) { d.line(bold.of(pad(name, 12)), plain.cut(text)) }

	fact("File", fmt.Sprintf("%s, %s", s.Name, units.Bytes(s.Bytes)))
	fact("Container", cmp.Or(strings.Join(s.Container, " > "), "-"))
	writer := "unknown"
	if s.Writer.Text != "" {
		writer = "torch " + s.Writer.Text + " (guessed from the keys in the file)"
	}
	fact("Writer", writer)
	events := 0
	for _, t := range s.Traces {
		events += t.Len()
	}
	fact("Contents", strings.Join([]string{units.Plural(events, "event"), units.Plural(len(s.Segments), "segment"),
		units.Plural(len(s.Blocks), "block"), units.Plural(s.Stacks.Len(), "stack")}, ", "))
	fact("Recorded", when(!s.HasTimes, "no ")+"times, "+when(!s.HasStacks, "no ")+"stacks")
	settings := "not in the file"
	if s.Settings.Present {
		settings = cmp.Or(s.Settings.Conf, "the defaults")
	}
	fact("Settings", settings)

	most := 3
	if r.Pinned != nil {
		most = 2
	}
	for i := range r.Devices[:min(len(r.Devices), most)] {
		d.gap()
		d.device(r.Devices[i].Timeline)
	}
	if n := len(r.Devices) - most; n > 0 {
		d.line("... and " + units.Plural(n, "more device"))
	}
	if r.Pinned != nil {
		d.gap()
		d.pinnedSums(r.Pinned)
	}
	d.data(notes(r, 4, d.width))
	return d.print(w)
}

// device adds the sums of a device.
func (d *doc) device(t *timeline.Timeline) {
	name := bold.of(chart.DeviceName(t.Device))
	if t.Trace.Len() == 0 { // only the end is known
		d.line(name, ": no trace")
	} else {
		a := chart.NewAxis(t, true)
		span := when(a.ByTime, " over %s", units.Micros(a.Span))
		d.line(name, fmt.Sprintf(": %s%s, %s, %s", units.Plural(t.Trace.Len(), "event"), span,
			units.Plural(len(t.OOMs), "out-of-memory event"), units.Plural(len(t.Retries), "retry")))
	}
	sums := d.sums("reserved", "active", "allocated", "requested")
	if t.Trace.Len() > 0 {
		sums("start", t.Initial.Reserved, t.Initial.Active, t.Initial.Allocated, t.Initial.Requested)
		sums("peak", t.PeakReserved.Bytes, t.PeakActive.Bytes, t.PeakAllocated.Bytes, t.PeakRequested.Bytes)
	}
	sums("end", t.Final.Reserved, t.Final.Active, t.Final.Allocated, t.Final.Requested)
}

// pinnedSums adds the sums of pinned host memory.
func (d *doc) pinnedSums(m *host.Pinned) {
	events := "no trace"
	if n := m.Trace.Len(); n > 0 {
		events = units.Plural(n, "event")
	}
	d.line(bold.of("Pinned host memory"), ": "+events)
	sums := d.sums("reserved", "active", "allocated")
	if m.Trace.Len() > 0 {
		sums("start", m.Initial.Reserved, m.Initial.Active, m.Initial.Allocated)
		sums("peak", m.PeakReserved.Bytes, m.PeakActive.Bytes, m.PeakAllocated.Bytes)
	}
	sums("end", m.Final.Reserved, m.Final.Active, m.Final.Allocated)
}

// sums adds a table of sums, which the function returned gives a row.
func (d *doc) sums(heads ...string) func(name string, bytes ...int64) {
	cols := []column{left("", 12)}
	for _, h := range heads {
		cols = append(cols, num(h, 12))
	}
	t := d.table(dim, cols...)
	return func(name string, bytes ...int64) {
		r := []any{"  " + name}
		for _, n := range bytes {
			r = append(r, units.Size(n))
		}
		t.row(r...)
	}
}

// pinned says in at most three lines what pinned host memory there is and who allocated it, or in
// one line where the screen is full.
func (v *outcome) pinned(r *analyze.Result, full bool) {
	if r.Pinned == nil {
		return
	}
	words := pinnedWords(r.Pinned)
	if full {
		v.labeled("Pinned", texts(plain, []string{words}, v.width-10)...)
		return
	}
	v.gap()
	v.list("Pinned", []string{words}, 3)
}

// pinnedWords describes pinned host memory in a sentence or two.
func pinnedWords(m *host.Pinned) string {
	end := &m.Final
	w := fmt.Sprintf("Host memory at the end: %s reserved = %s active + %s cached", units.Bytes(end.Reserved),
		units.Bytes(end.Active), units.Bytes(end.Reserved-end.Active-m.Unknown))
	w += when(m.Unknown > 0, " + %s active or cached, not recorded which", units.Bytes(m.Unknown))
	w += when(m.Trace.Len() > 0, "; peak: %s reserved, %s active", units.Bytes(m.PeakReserved.Bytes),
		units.Bytes(m.PeakActive.Bytes))
	w += when(m.Registered > 0, "; %s more registered by other code", units.Bytes(m.Registered)) + "."
	var by []string
	groups, _, more := chart.Largest(m.Holders, 2)
	for i, site := range chart.Sites(groups) {
		by = append(by, units.Bytes(groups[i].Rounded)+" by "+site)
	}
	if more > 0 {
		by = append(by, units.Plural(more, "more stack"))
	}
	return w + when(len(by) > 0, " Allocated: %s.", strings.Join(by, ", "))
}
