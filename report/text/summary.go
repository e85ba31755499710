package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Summary prints facts about a file and its devices, without a judgement, in about 30 lines.
func Summary(w io.Writer, r *analyze.Result, o Options) error {
	p := newPrinter(w, o)
	s := r.Snapshot
	fact := func(name, text string) {
		p.line(p.paint(bold, pad(name, 12)) + chart.Clip(chart.Plain(text), p.width-12))
	}

	fact("File", fmt.Sprintf("%s, %s", s.Name, units.Bytes(s.Bytes)))
	fact("Container", orDash(strings.Join(s.Container, " > ")))
	fact("Writer", writer(s.Writer.Text))
	events := 0
	for _, t := range s.Traces {
		events += t.Len()
	}
	fact("Contents", fmt.Sprintf("%s, %s, %s, %s", units.Plural(events, "event"), units.Plural(len(s.Segments), "segment"),
		units.Plural(len(s.Blocks), "block"), units.Plural(s.Stacks.Len(), "stack")))
	fact("Recorded", recorded(s.HasTimes, s.HasStacks))
	fact("Settings", settings(r))

	most := 3
	if r.Pinned != nil {
		most = 2
	}
	for i := range r.Devices[:min(len(r.Devices), most)] {
		p.line("")
		p.device(r.Devices[i].Timeline)
	}
	if n := len(r.Devices) - most; n > 0 {
		p.linef("... and %s", units.Plural(n, "more device"))
	}
	if r.Pinned != nil {
		p.line("")
		p.pinnedSums(r.Pinned)
	}
	p.data(notes(r, 4, p.width))
	return p.w.Flush()
}

func (p *printer) device(t *timeline.Timeline) {
	span := ""
	if a := chart.NewAxis(t, true); a.ByTime {
		span = " over " + units.Micros(a.Span)
	}
	if t.Trace.Len() == 0 {
		p.line(p.paint(bold, chart.DeviceName(t.Device)) + ": no trace")
	} else {
		p.linef("%s: %s%s, %s, %s", p.paint(bold, chart.DeviceName(t.Device)), units.Plural(t.Trace.Len(), "event"), span,
			units.Plural(len(t.OOMs), "out-of-memory event"), units.Plural(len(t.Retries), "retry"))
	}
	p.totals("", "reserved", "active", "allocated", "requested")
	row := func(name string, v ...int64) { p.totals(name, eachBytes(v)...) }
	if t.Trace.Len() > 0 { // else only the end is known
		row("start", t.Initial.Reserved, t.Initial.Active, t.Initial.Allocated, t.Initial.Requested)
		row("peak", t.PeakReserved.Bytes, t.PeakActive.Bytes, t.PeakAllocated.Bytes, t.PeakRequested.Bytes)
	}
	row("end", t.Final.Reserved, t.Final.Active, t.Final.Allocated, t.Final.Requested)
}

// totals prints a row of sums; the one without a name is the head.
func (p *printer) totals(name string, cells ...string) {
	line := pad("  "+name, 12)
	for _, c := range cells {
		line += right(c, 12)
	}
	if name == "" {
		line = p.paint(dim, line)
	}
	p.line(line)
}

func eachBytes(v []int64) []string {
	var out []string
	for _, n := range v {
		out = append(out, units.Bytes(n))
	}
	return out
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func writer(guess string) string {
	if guess == "" {
		return "unknown"
	}
	return "torch " + guess + " (guessed from the keys in the file)"
}

func recorded(times, stacks bool) string {
	yes := func(ok bool, what string) string {
		if ok {
			return what
		}
		return "no " + what
	}
	return yes(times, "times") + ", " + yes(stacks, "stacks")
}

func settings(r *analyze.Result) string {
	s := &r.Snapshot.Settings
	switch {
	case !s.Present:
		return "not in the file"
	case s.Conf == "":
		return "the defaults"
	}
	return s.Conf
}
