package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Summary prints facts about a file and its devices, without a judgment, in about 30 lines.
func Summary(w io.Writer, r *analyze.Result, o Options) error {
	if o.Brief {
		return briefSummary(r).doc(o).print(w)
	}
	d, s := newDoc(o), r.Snapshot
	d.margin = 12
	fact := func(name, text string) { d.labeled(name, cells(text)) }

	d.labeled("File", cells(plain.cutLeft(s.Name), ", "+units.Bytes(s.Bytes)))
	fact("Container", cmp.Or(strings.Join(s.Container, " > "), "-"))
	writer := when(s.Writer.Text != "", "torch %s (guessed from the keys in the file)", s.Writer.Text)
	fact("Writer", cmp.Or(writer, "unknown"))
	events := 0
	for _, t := range s.Traces {
		events += t.Len()
	}
	fact("Contents", strings.Join([]string{units.Plural(events, "event"), units.Plural(len(s.Segments), "segment"),
		units.Plural(len(s.Blocks), "block"), units.Plural(s.Stacks.Len(), "stack")}, ", "))
	if words := r.Window(); words != "" {
		fact("Window", words)
	}
	fact("Recorded", when(!s.HasTimes, "no ")+"times, "+when(!s.HasStacks, "no ")+"stacks")
	settings := when(s.Settings.Present, "%s", cmp.Or(s.Settings.Conf, "the defaults"))
	fact("Settings", cmp.Or(settings, "not in the file"))

	most := 3
	if r.Pinned != nil {
		most = 2
	}
	for i := range r.Devices[:min(len(r.Devices), most)] {
		d.gap()
		d.device(r.Devices[i].Timeline)
	}
	if n := len(r.Devices) - most; n > 0 {
		d.line(more(n, "device"))
	}
	if r.Pinned != nil {
		d.gap()
		d.pinnedSums(r.Pinned)
	}
	d.margin = 8
	d.data(notes(r, 4, d.width))
	return d.print(w)
}

// retries counts them in words.
func retries(t *timeline.Timeline) string {
	if n := chart.RetryCount(t); n != "1" {
		return n + " retries"
	}
	return "1 retry"
}

// device adds the sums of a device.
func (d *doc) device(t *timeline.Timeline) {
	name, told := bold.of(chart.DeviceName(t.Device)), t.Recording.Told()
	if t.Trace.Len() == 0 { // only the end is known
		d.line(name, ": no trace")
	} else {
		a := chart.NewAxis(t, true)
		span := when(a.ByTime, " over %s", units.Micros(a.Span))
		failures := units.Plural(len(t.OOMs), "out-of-memory event")
		if told.Failures != timeline.Exact {
			failures = "no out-of-memory event recorded"
		}
		d.line(name, fmt.Sprintf(": %s%s, %s, %s", units.Plural(t.Trace.Len(), "event"), span,
			failures, retries(t)))
	}
	start, end := &t.Initial, &t.Final
	bounds := [2]timeline.Bounds{told.Start, told.Peak}
	d.sums(t.Trace.Len() > 0, &bounds, []string{"reserved", "active", "allocated", "requested"},
		[]int64{start.Reserved, start.Active, start.Allocated, start.Requested},
		[]int64{t.PeakReserved.Bytes, t.PeakActive.Bytes, t.PeakAllocated.Bytes, t.PeakRequested.Bytes},
		[]int64{end.Reserved, end.Active, end.Allocated, end.Requested})
}

// pinnedSums adds the sums of pinned host memory.
func (d *doc) pinnedSums(m *host.Pinned) {
	events := "no trace"
	if n := m.Trace.Len(); n > 0 {
		events = units.Plural(n, "event")
	}
	d.line(bold.of("Pinned host memory"), ": "+events)
	start, end := &m.Initial, &m.Final
	d.sums(m.Trace.Len() > 0, new([2]timeline.Bounds), []string{"reserved", "active", "allocated"},
		[]int64{start.Reserved, start.Active, start.Allocated},
		[]int64{m.PeakReserved.Bytes, m.PeakActive.Bytes, m.PeakAllocated.Bytes},
		[]int64{end.Reserved, end.Active, end.Allocated})
}

// sums adds a table of sums at the start, the peak and the end; without a trace only the end is known. The bounds
// are those of the start and the peak.
func (d *doc) sums(traced bool, bounds *[2]timeline.Bounds, heads []string, rows ...[]int64) {
	cols := []column{left("", 12)}
	for _, h := range heads {
		cols = append(cols, num(h, 12))
	}
	t := d.table(dim, cols...)
	for i, name := range []string{"  start", "  peak", "  end"} {
		if i < 2 && !traced {
			continue
		}
		row := []any{name}
		var b timeline.Bounds
		if i < len(bounds) {
			b = bounds[i]
		}
		of := [...]timeline.Bound{b.Reserved, b.Active, b.Allocated, b.Requested}
		for k, n := range rows[i] {
			row = append(row, of[k].Short(n))
		}
		t.row(row...)
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
		v.labeled("Pinned", texts(plain, []string{words})...)
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
	w += when(m.Registered > 0, ", %s of it registered by other code", units.Bytes(m.Registered))
	if m.Trace.Len() > 0 {
		estimate := when(!m.Checks.Balanced(), ", estimates")
		w += fmt.Sprintf("; peaks%s: %s reserved, %s active", estimate, units.Bytes(m.PeakReserved.Bytes),
			units.Bytes(m.PeakActive.Bytes))
	}
	w += "."
	if m.PeakActive.Bytes >= 2*end.Active {
		w += pinnedBy(" At the peak", m.AtPeak)
	}
	return w + pinnedBy(" Allocated", m.Holders)
}

// pinnedBy names the two stacks that have most.
func pinnedBy(word string, holders []attribution.Group) string {
	var by []string
	sources, _, more := chart.LargestSources(chart.Sources(holders), 2)
	for i, site := range chart.Sites(sources) {
		by = append(by, units.Bytes(sources[i].Rounded)+" by "+site)
	}
	if more > 0 {
		by = append(by, units.Plural(more, "more stack"))
	}
	return when(len(by) > 0, "%s: %s.", word, strings.Join(by, ", "))
}

// notes says in at most n lines how far the figures can be trusted: problems first, then what is
// missing, and last, for which there is always room, what was verified, in one line for several devices.
func notes(r *analyze.Result, n, width int) []string {
	problems, missing, fine := r.Notes()
	if len(r.Devices) > 1 && len(fine) > 1 {
		sound, told := 0, 0
		for i := range r.Devices {
			if t := r.Devices[i].Timeline; t.HasHistory() {
				told++
				if analyze.Verified(t) == analyze.Exactly {
					sound++
				}
			}
		}
		switch {
		case sound > 0:
			fine = []analyze.Note{{Text: fmt.Sprintf("%d of %d GPUs: %s.", sound, len(r.Devices), analyze.Exactly)}}
		case told == 0:
			fine = []analyze.Note{{Text: fmt.Sprintf("%d GPUs: %s.", len(r.Devices), analyze.Agreed)}}
		}
	}
	var end []string
	for _, q := range fine {
		end = append(end, noteLines(q.Text, width)...)
	}
	n -= len(end)
	var out []string
	all := slices.Concat(problems, missing)
	for i, q := range all {
		lines := noteLines(when(i < len(problems), "problem: ")+q.Text, width)
		if left := n - len(out); left < len(lines) || left == len(lines) && i < len(all)-1 {
			out = append(out, more(len(all)-i, "note")+", in the full report")
			break
		}
		out = append(out, lines...)
	}
	return append(out, end...)
}

// noteLines breaks a note into three lines at most.
func noteLines(s string, width int) []string {
	lines := wrap(chart.Plain(s), width-10)
	if len(lines) > 3 {
		lines = append(lines[:2:2], chart.Clip(lines[2], width-11)+"…")
	}
	for k := 1; k < len(lines); k++ {
		lines[k] = "  " + lines[k]
	}
	return lines
}

// data adds the notes.
func (d *doc) data(notes []string) {
	if len(notes) > 0 {
		d.gap()
		d.labeled("Data", texts(plain, notes)...)
	}
}
