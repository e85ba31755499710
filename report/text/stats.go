package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/memstats"
)

// maxSeries is how many devices get a row.
const maxSeries = 32

// Stats prints what memory counters show: the verdict on the device that matters most with its
// series, then a row for each other device, the host, and the comparison with a snapshot. All shows
// every device in full, and every counter of the comparison.
func Stats(w io.Writer, r *analyze.Stats, o Options) error {
	if o.Brief {
		return briefStats(r).doc(o).print(w)
	}
	d := newDoc(o)
	main, from := r.Main()
	for i := range r.Files {
		if i == maxSeries {
			d.line(dim.of(more(len(r.Files)-i, "file")))
			break
		}
		d.line(dim.cut(statsFile(&r.Files[i])))
	}
	name := func(file string) string { return when(len(r.Files) > 1, "%s", file) }
	if main != nil {
		d.series(main, name(from.Name))
		for i := range r.Files {
			for _, j := range r.Files[i].Series {
				if o.All && j != main {
					d.gap()
					d.series(j, name(r.Files[i].Name))
				}
			}
		}
		d.seriesTable(r)
	}
	for i, j := range r.Hosts {
		if i == maxSeries {
			d.line(more(len(r.Hosts)-i, "process") + ", in --json")
			break
		}
		if main != nil || i > 0 {
			d.gap()
		}
		d.host(j, name(j.File))
	}
	for i := range r.Phases[:min(len(r.Phases), maxSeries)] {
		p := &r.Phases[i]
		d.phases(p.Device, name(p.File), len(r.Phases) > 1, true, p.Phases)
	}
	for i := range r.Files {
		if g := r.Files[i].Reading; g != nil {
			d.reading(g)
		}
	}
	d.statsChecks(r, o.All)
	d.statsData(r, main)
	return d.print(w)
}

// statsFile says in a line what a file is.
func statsFile(f *analyze.StatsFile) string {
	samples := units.Plural(f.Samples, "sample")
	if f.Samples == 0 && f.Readings > 0 {
		samples = units.Plural(f.Readings, "reading")
	}
	s := chart.ClipLeft(chart.Plain(f.Name), 50) + ", " + strings.Join(f.Container, ", ") + ": " + samples
	s += when(len(f.Series) > 1, " of %d series", len(f.Series)) + when(f.Samples == 0 && f.Readings > 0, " of the driver")
	if len(f.Series) > 0 {
		d := f.Series[0].Series
		if a, b := d.First.Step, d.Last.Step; a.Known && b.Known && d.Unit() == "step" {
			s += span("step", a.N, b.N)
		}
		if a, b := d.First.Epoch, d.Last.Epoch; a.Known && b.Known {
			s += span("epoch", a.N, b.N)
		}
	}
	return s
}

func span(what string, from, to int64) string {
	return ", " + what + when(to != from, "s") + " " + units.Count(from) + when(to != from, " to %s", units.Count(to))
}

// outcome adds what a series of a file comes to, which is named unless it is "": a line, and why and what
// to do by the finding that it rests on, if any, then the findings below it, each with its first reason.
// All are that one and the others.
func (d *doc) outcome(prefix string, status finding.Status, headline, file string, lead *finding.Finding,
	all []finding.Finding, steps int,
) {
	if file != "" {
		headline = chart.ClipLeft(chart.Plain(file), 40) + ": " + headline
	}
	if lead != nil {
		headline += " (" + lead.Trust() + ")"
		all = all[1:]
	}
	d.heading(prefix+status.Word(), status.Tone(), headline, 0)
	if lead != nil {
		d.gap()
		d.finding(lead.Why, lead.Next, 12, steps)
	}
	var also []string
	for i := range all {
		also = append(also, fmt.Sprintf("%s (%s) %s", all[i].Title, all[i].Trust(), all[i].Why[0]))
	}
	d.apart("Also", also, 12)
	d.gap()
}

// trendNames are what people call the counters.
var trendNames = map[string]string{
	counters.Allocated: "allocated", counters.Requested: "requested", counters.Active: "active",
	counters.Pending: "waiting for a stream", counters.Reserved: "reserved", counters.Cached: "reserved, not active",
	counters.Split: "inactive split", counters.Blocks: "live blocks", counters.Segments: "segments",
	counters.Pinned: "pinned, on the host", counters.PinnedUses: "pinned blocks in use",
}

// series adds one device in full, with a row for each counter.
func (d *doc) series(j *verdict.Counters, file string) {
	d.outcome("", j.Status, j.Headline, file, j.Lead(), j.Findings, 6)
	s := j.Series
	row := d.trends(seriesName(s), s.Samples == 1)
	for i := range j.Trends {
		t := &j.Trends[i]
		if t.Name == counters.Pending && t.High == 0 {
			continue
		}
		label := cmp.Or(trendNames[t.Name], chart.ClipLeft(chart.Plain(t.Name), 21))
		row(label, t, inBytes(t.Name))
	}
	var facts []string
	for _, f := range []struct{ what, name string }{
		{"peak allocated", "allocated_bytes.all.peak"}, {"peak reserved", "reserved_bytes.all.peak"},
		{"retries", counters.Retries}, {"out of memory", counters.OOMs}, {"free on the device", "device.free"},
	} {
		if v := s.Last.Get(f.name); v.Known() {
			facts = append(facts, f.what+" "+amount(v.Value, inBytes(f.name)))
		}
	}
	if len(facts) > 0 {
		d.paragraph(plain.of("In the last sample: "+strings.Join(facts, ", ")), 0, 2)
	}
}

// seriesName names a device, and its process where the file tells several apart.
func seriesName(d *counters.Series) string {
	return chart.DeviceName(d.Device) + when(d.Rank >= 0, ", rank %d", d.Rank)
}

// inBytes tells counters of bytes from those of blocks and calls.
func inBytes(name string) bool {
	return strings.Contains(name, "_bytes") || strings.Contains(name, " - ") || strings.HasPrefix(name, "device.")
}

// amount prints a value in bytes, or a count.
func amount(n int64, bytes bool) string {
	if bytes {
		return units.Bytes(n)
	}
	return units.Count(n)
}

// seriesTable compares all devices of all files.
func (d *doc) seriesTable(r *analyze.Stats) {
	if r.Count() < 2 {
		return
	}
	d.gap()
	wide, thin := 0, 8
	for i := range r.Files {
		wide = max(wide, chart.Width(r.Files[i].Name)+2)
		for _, j := range r.Files[i].Series {
			thin = max(thin, chart.Width(seriesName(j.Series)))
		}
	}
	thin = min(thin, 20)
	const behind = 9 + 12 + 11 + 11 + 28           // the columns behind
	wide = max(min(wide, d.width-behind-thin), 10) // a narrow terminal has no room for long verdicts
	cols := []column{{head: "file", width: 2 - wide, cut: chart.ClipLeft},
		{head: "series", sep: "  ", width: -thin, cut: chart.Clip},
		num("samples", 9), num("live first", 12), num("last", 11), num("reserved", 11), rest("verdict")}
	if len(r.Files) == 1 {
		cols = cols[1:]
		cols[0].sep = ""
	}
	t := d.table(bold, cols...)
	rows, growing := 0, 0
	for i := range r.Files {
		f := &r.Files[i]
		for _, j := range f.Series {
			if j.Status == finding.Growing {
				growing++
			}
			if rows++; rows > maxSeries {
				t.line(more(r.Count()-maxSeries, "row") + ", in --json")
				return
			}
			first, last, held, how := "-", "-", "-", ""
			if t := j.Trends.Of(j.Live); t != nil {
				first, last = units.Bytes(t.First), units.Bytes(t.Last)
				how = slopeOf(t, inBytes(t.Name))
			}
			if t := j.Trends.Of(counters.Reserved); t != nil {
				held = units.Bytes(t.Last)
			}
			row := []any{f.Name, seriesName(j.Series), units.Count(j.Series.Samples), first, last, held,
				tones[j.Status.Tone()].of(j.Status.Word()), how}
			t.row(row[len(row)-1-len(t.cols):]...)
		}
	}
	if growing > 0 && growing < r.Count() {
		t.linef("%d of %d series grow%s and the others do not: look for what only the growing ones do.", growing,
			r.Count(), when(growing == 1, "s"))
	}
}

// reading adds what the driver's tools said.
func (d *doc) reading(g *memstats.Reading) {
	if g.Driver != "" {
		d.gap()
		d.line(plain.cut("Driver " + g.Driver + ", CUDA " + g.CUDA))
	}
	used, total := num("used", 11), num("total", 11)
	if len(g.Devices) > 0 {
		d.gap()
		t := d.table(bold, column{head: "device", width: -32, cut: chart.Clip}, num("", 2), used, total,
			num("by processes", 14))
		for i := range g.Devices {
			v := &g.Devices[i]
			var sum int64
			known := v.Idle
			for k := range g.Processes {
				if q := &g.Processes[k]; q.GPU == v.Index && q.Used != nil {
					sum, known = sum+*q.Used, true
				}
			}
			by := chart.Unknown
			if known {
				by = units.Bytes(sum)
			}
			t.row(strings.TrimSpace(chart.DeviceName(v.Index)+" "+v.Name), "", sizeOr(v.Used), sizeOr(v.Total), by)
		}
	}
	if len(g.Instances) > 0 {
		d.gap()
		t := d.table(bold, left("MIG instance", 34), used, total)
		for _, m := range g.Instances {
			t.row(fmt.Sprintf("GPU %d, instance %d (GI %d, CI %d)", m.GPU, m.Index, m.GI, m.CI), sizeOr(m.Used),
				sizeOr(m.Total))
		}
	}
	if len(g.Processes) == 0 {
		return
	}
	d.gap()
	t := d.table(bold, num("process", 10), column{head: "device", sep: "  ", width: -22}, used,
		rest("name"))
	for i, q := range g.Processes {
		if i == maxSeries {
			t.line(more(len(g.Processes)-i, "process") + ", in --json")
			break
		}
		where := chart.DeviceName(q.GPU) + when(q.GI >= 0, " GI %d CI %d", q.GI, q.CI)
		kind := map[string]string{"G": " (graphics)", "C+G": " (compute and graphics)"}[q.Type]
		t.row(q.PID, where, sizeOr(q.Used), chart.ClipLeft(chart.Plain(q.Name), 40)+kind)
	}
}

// mainCounters are compared in text even where they are equal.
var mainCounters = []string{
	counters.Allocated, "allocated_bytes.all.peak", "allocated_bytes.all.allocated", "allocated_bytes.all.freed",
	counters.Requested, counters.Active, counters.Reserved, "reserved_bytes.all.peak", counters.Split, counters.Blocks,
	"allocation.all.allocated", counters.Segments, counters.Retries, counters.OOMs, "num_device_alloc",
	"num_device_free",
}

// statsChecks adds samples beside a snapshot.
func (d *doc) statsChecks(r *analyze.Stats, all bool) {
	if r.Snapshot == "" {
		return
	}
	name := chart.ClipLeft(chart.Plain(r.Snapshot), 40)
	if r.Unchecked != "" {
		d.gap()
		d.list("Match", []string{name + ": " + r.Unchecked + "."}, 3)
	}
	for _, c := range r.Checks {
		d.gap()
		same, near, differ := c.Count(counters.Equal), c.Count(counters.Within), c.Count(counters.Differs)
		of, counted := chart.DeviceName(c.Device), "memory_stats"
		if c.Host {
			of, counted = "pinned host memory", "host_memory_stats"
		}
		s := fmt.Sprintf("%s, %s: ", name, of)
		switch {
		case differ == 0 && near == 0:
			s += fmt.Sprintf("all %s are equal.", units.Plural(same, "shared counter"))
		case differ == 0:
			s += fmt.Sprintf("all %s agree, %d of them within the rounding of the printed figures.",
				units.Plural(same+near, "shared counter"), near)
		default:
			s += fmt.Sprintf("%d of %s differ.", differ, units.Plural(len(c.Rows), "shared counter"))
		}
		at := "with the final state"
		if c.Event >= 0 {
			at = fmt.Sprintf("after event %s of the trace", units.Count(c.Event))
		}
		s += fmt.Sprintf(" Compared %s, %s.", at, c.Moment)
		d.list("Match", append([]string{s}, c.Reasons...), 10)
		const figure = 14 // columns that a count of bytes takes
		t := d.table(bold, column{width: 8, narrow: 2}, column{head: "counter", width: -35, narrow: 28, cut: chart.ClipLeft},
			column{head: counted, sep: " ", width: 17, narrow: figure}, column{head: "snapshot", width: 17, narrow: figure},
			num("difference", 13).spared(1))
		left := 0
		for i := range c.Rows {
			row := &c.Rows[i]
			if row.Agreement != counters.Differs && !c.Host && !slices.Contains(mainCounters, row.Name) && !all {
				left++
				continue
			}
			difference := units.Count(row.Residual())
			if row.Agreement == counters.Within {
				difference = "rounding"
			}
			t.row("", row.Name, units.Count(row.Stats), units.Count(row.Snapshot), difference)
			if row.Why != "" {
				t.paragraph(dim.of(row.Why), 10, 2)
			}
		}
		if left > 0 {
			t.linef("        ... and %d more without a difference; --all shows them", left)
		}
	}
}

// statsData says what limits the answer.
func (d *doc) statsData(r *analyze.Stats, main *verdict.Counters) {
	var out []string
	if main != nil {
		out = append(out, main.Notes...)
	}
	for i := range r.Files {
		f := &r.Files[i].Info
		note := func(text string) {
			out = append(out, when(len(r.Files) > 1, "%s: ", chart.ClipLeft(f.Name, 30))+text)
		}
		for _, n := range []struct {
			fault *memstats.Fault
			words string
		}{
			{f.Cut, "The file ends early"},
			{f.FirstSkipped, units.Plural(f.Skipped, "record") + " could not be read, the first"},
			{f.FirstOdd, "Left out: " + units.Plural(f.Odd, "figure") + ", the first"},
		} {
			if n.fault != nil {
				note(n.words + placeOf(n.fault) + ": " + n.fault.Msg + ".")
			}
		}
		if f.Foreign > 0 {
			note("Without counters: " + units.Plural(f.Foreign, "record") + ".")
		}
	}
	d.apart("Data", out, 8)
}

func placeOf(f *memstats.Fault) string {
	switch {
	case f.Line > 0:
		return " on line " + units.Count(f.Line)
	case f.Offset >= 0:
		return " at byte " + units.Count(f.Offset)
	}
	return ""
}
