package text

import (
	"fmt"
	"io"
	"math"
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
	p := newPrinter(w, o)
	main, from := r.Main()
	for i := range r.Files {
		f := &r.Files[i]
		if len(r.Files) > maxSeries && i >= maxSeries {
			p.line(p.paint(dim, fmt.Sprintf("... and %d more files", len(r.Files)-i)))
			break
		}
		p.line(p.paint(dim, chart.Clip(statsFile(f), p.width)))
	}
	name := func(file string) string {
		if len(r.Files) > 1 {
			return file
		}
		return ""
	}
	if main != nil {
		p.series(main, name(from.Name))
		for i := range r.Files {
			for _, j := range r.Files[i].Series {
				if o.All && j != main {
					p.line("")
					p.series(j, name(r.Files[i].Name))
				}
			}
		}
		p.seriesTable(r)
	}
	for i, j := range r.Hosts {
		if i == maxSeries {
			p.line(fmt.Sprintf("... and %d more processes, in --json", len(r.Hosts)-i))
			break
		}
		if main != nil || i > 0 {
			p.line("")
		}
		p.host(j, name(j.File))
	}
	for i := range r.Files {
		p.reading(r.Files[i].Reading)
	}
	p.statsChecks(r, o.All)
	p.statsData(r, main)
	return p.w.Flush()
}

// statsFile says in a line what a file is.
func statsFile(f *analyze.StatsFile) string {
	samples := units.Plural(f.Samples, "sample")
	if f.Samples == 0 {
		samples = units.Plural(f.Readings, "reading")
	}
	s := chart.ClipLeft(chart.Plain(f.Name), 50) + ", " + strings.Join(f.Container, ", ") + ": " + samples
	if n := len(f.Series); n > 1 {
		s += fmt.Sprintf(" of %d series", n)
	}
	if f.Samples == 0 {
		s += " of the driver"
	}
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
	if from == to {
		return ", " + what + " " + units.Count(from)
	}
	return fmt.Sprintf(", %ss %s to %s", what, units.Count(from), units.Count(to))
}

// series prints one device in full.
func (p *printer) series(j *verdict.Counters, file string) {
	p.outcome("", j.Status, j.Headline, file, j.Lead(), j.Findings, 6)
	p.trends(j)
}

// outcome prints what a series of a file comes to, which is named unless it is "": a line, and why and what
// to do by the finding that it rests on, if any. All are that one and the others.
func (p *printer) outcome(prefix string, status finding.Status, headline, file string, lead *finding.Finding,
	all []finding.Finding, steps int,
) {
	title := chart.Plain(headline)
	if file != "" {
		title = chart.ClipLeft(chart.Plain(file), 40) + ": " + title
	}
	if lead != nil {
		title += " (" + lead.Trust() + ")"
		all = all[1:]
	}
	p.headline(prefix+strings.ToUpper(string(status)), status.Tone(), title, math.MaxInt)
	if lead != nil {
		p.line("")
		p.section("Why", plain(lead.Why), 12)
		p.section("Next", plain(numbered(lead.Next)), steps)
	}
	p.others(all)
	p.line("")
}

// others prints the findings below the first, each with its first reason.
func (p *printer) others(rest []finding.Finding) {
	var also []string
	for i := range rest {
		also = append(also, fmt.Sprintf("%s (%s) %s", rest[i].Title, rest[i].Trust(), rest[i].Why[0]))
	}
	if len(also) > 0 {
		p.line("")
		p.section("Also", plain(also), 12)
	}
}

// trendNames are what people call the counters.
var trendNames = map[string]string{counters.Allocated: "allocated", counters.Requested: "requested", counters.Active: "active",
	counters.Pending: "waiting for a stream", counters.Reserved: "reserved", counters.Cached: "reserved, not active", counters.Split: "inactive split",
	counters.Blocks: "live blocks", counters.Segments: "segments", counters.Pinned: "pinned, on the host"}

// trends prints a row for each counter of a device.
func (p *printer) trends(j *verdict.Counters) {
	d := j.Series
	name := seriesName(d)
	if d.Samples == 1 {
		p.line(p.paint(bold, pad(name, 22)+right("then", 11)))
	} else {
		p.line(p.paint(bold, trendHead(name)))
	}
	for i := range j.Trends {
		t := &j.Trends[i]
		if t.Name == counters.Pending && t.High == 0 {
			continue
		}
		label, ok := trendNames[t.Name]
		if !ok {
			label = chart.ClipLeft(chart.Plain(t.Name), 21)
		}
		if d.Samples == 1 {
			p.line(pad(label, 22) + right(valueOf(t.Name)(t.Last), 11))
			continue
		}
		p.trendRow(label, t, inBytes(t.Name) || strings.HasPrefix(t.Name, "device."), inBytes(t.Name))
	}
	var facts []string
	figure := func(what, name string) {
		if f := d.Last.Get(name); f.Known() {
			facts = append(facts, what+" "+valueOf(name)(f.Value))
		}
	}
	figure("peak allocated", "allocated_bytes.all.peak")
	figure("peak reserved", "reserved_bytes.all.peak")
	figure("retries", counters.Retries)
	figure("out of memory", counters.OOMs)
	figure("free on the device", "device.free")
	if len(facts) > 0 {
		p.line(chart.Clip("In the last sample: "+strings.Join(facts, ", "), p.width))
	}
}

// seriesName names a device, and its process where the file tells several apart.
func seriesName(d *counters.Series) string {
	s := chart.DeviceName(d.Device)
	if d.Rank >= 0 {
		s += fmt.Sprintf(", rank %d", d.Rank)
	}
	return s
}

// inBytes tells counters of bytes from those of blocks and calls.
func inBytes(name string) bool {
	return strings.Contains(name, "_bytes") || strings.Contains(name, " - ")
}

// valueOf prints values of a counter: bytes or counts.
func valueOf(name string) func(int64) string {
	if inBytes(name) || strings.HasPrefix(name, "device.") {
		return units.Bytes
	}
	return units.Count
}

// seriesTable compares all devices of all files.
func (p *printer) seriesTable(r *analyze.Stats) {
	if r.Count() < 2 {
		return
	}
	p.line("")
	wide, thin := 0, 8
	for i := range r.Files {
		wide = max(wide, len([]rune(r.Files[i].Name))+2)
		for _, j := range r.Files[i].Series {
			thin = max(thin, len(seriesName(j.Series)))
		}
	}
	thin = min(thin, 20)
	const rest = 9 + 12 + 11 + 11 + 28 // the columns behind
	if wide = min(wide, p.width-rest-thin); len(r.Files) == 1 {
		wide = 0
	}
	p.line(p.paint(bold, pad("file", wide)[:wide]+pad("series", thin)+right("samples", 9)+right("live first", 12)+right("last", 11)+right("reserved", 11)+"  verdict"))
	rows, growing := 0, 0
	for i := range r.Files {
		f := &r.Files[i]
		for _, j := range f.Series {
			if j.Status == finding.Growing {
				growing++
			}
			if rows++; rows > maxSeries {
				p.line(fmt.Sprintf("... and %s more series, in --json", units.Count(int64(r.Count()-maxSeries))))
				return
			}
			file := ""
			if wide > 0 {
				file = pad(chart.ClipLeft(chart.Plain(f.Name), wide-2), wide)
			}
			first, last, held, how := "-", "-", "-", ""
			if t := j.Trends.Of(j.Live); t != nil {
				first, last = units.Bytes(t.First), units.Bytes(t.Last)
				if t.Shape == counters.Growing {
					how = ", " + slopeOf(t, inBytes(t.Name))
				}
			}
			if t := j.Trends.Of(counters.Reserved); t != nil {
				held = units.Bytes(t.Last)
			}
			p.line(file + pad(chart.Clip(seriesName(j.Series), thin), thin) + right(units.Count(j.Series.Samples), 9) + right(first, 12) + right(last, 11) + right(held, 11) + "  " +
				p.paint(tones[j.Status.Tone()], string(j.Status)) + how)
		}
	}
	if growing > 0 && growing < r.Count() {
		p.linef("%d of %d series grow and the others do not: look for what only the growing ones do.", growing, r.Count())
	}
}

// reading prints what the driver's tools said.
func (p *printer) reading(g *memstats.Reading) {
	if g == nil {
		return
	}
	if g.Driver != "" {
		p.line("")
		p.line(chart.Clip(chart.Plain("Driver "+g.Driver+", CUDA "+g.CUDA), p.width))
	}
	if len(g.Devices) > 0 {
		p.line("")
		p.line(p.paint(bold, pad("device", 34)+right("used", 11)+right("total", 11)+right("by processes", 14)))
	}
	for i := range g.Devices {
		d := &g.Devices[i]
		var sum int64
		known := d.Idle
		for k := range g.Processes {
			if q := &g.Processes[k]; q.GPU == d.Index && q.Used != nil {
				sum, known = sum+*q.Used, true
			}
		}
		by := chart.Unknown
		if known {
			by = units.Bytes(sum)
		}
		p.line(pad(chart.Clip(chart.Plain(strings.TrimSpace(chart.DeviceName(d.Index)+" "+d.Name)), 32), 34) + right(sizeOr(d.Used), 11) + right(sizeOr(d.Total), 11) + right(by, 14))
	}
	if len(g.Instances) > 0 {
		p.line("")
		p.line(p.paint(bold, pad("MIG instance", 34)+right("used", 11)+right("total", 11)))
	}
	for _, m := range g.Instances {
		p.line(pad(fmt.Sprintf("GPU %d, instance %d (GI %d, CI %d)", m.GPU, m.Index, m.GI, m.CI), 34) + right(sizeOr(m.Used), 11) + right(sizeOr(m.Total), 11))
	}
	if len(g.Processes) > 0 {
		p.line("")
		p.line(p.paint(bold, right("process", 10)+"  "+pad("device", 22)+right("used", 11)+"  name"))
	}
	for i, q := range g.Processes {
		if i == maxSeries {
			p.line(fmt.Sprintf("... and %s more processes, in --json", units.Count(int64(len(g.Processes)-i))))
			break
		}
		where := chart.DeviceName(q.GPU)
		if q.GI >= 0 {
			where += fmt.Sprintf(" GI %d CI %d", q.GI, q.CI)
		}
		kind := map[string]string{"G": " (graphics)", "C+G": " (compute and graphics)"}[q.Type]
		p.line(right(fmt.Sprint(q.PID), 10) + "  " + pad(where, 22) + right(sizeOr(q.Used), 11) + "  " + chart.ClipLeft(chart.Plain(q.Name), 40) + kind)
	}
}

// mainCounters are compared in text even where they are equal.
var mainCounters = map[string]bool{counters.Allocated: true, "allocated_bytes.all.peak": true, "allocated_bytes.all.allocated": true,
	"allocated_bytes.all.freed": true, counters.Requested: true, counters.Active: true, counters.Reserved: true, "reserved_bytes.all.peak": true, counters.Split: true,
	counters.Blocks: true, "allocation.all.allocated": true, counters.Segments: true, counters.Retries: true, counters.OOMs: true,
	"num_device_alloc": true, "num_device_free": true}

// statsChecks prints samples beside a snapshot.
func (p *printer) statsChecks(r *analyze.Stats, all bool) {
	if r.Snapshot == "" {
		return
	}
	name := chart.ClipLeft(chart.Plain(r.Snapshot), 40)
	if r.Unchecked != "" {
		p.line("")
		p.section("Match", []string{name + ": " + r.Unchecked + "."}, 3)
	}
	for _, c := range r.Checks {
		p.line("")
		same, near, differ := c.Count(counters.Equal), c.Count(counters.Within), c.Count(counters.Differs)
		s := fmt.Sprintf("%s, %s: ", name, chart.DeviceName(c.Device))
		switch {
		case differ == 0 && near == 0:
			s += fmt.Sprintf("all %s are equal.", units.Plural(same, "shared counter"))
		case differ == 0:
			s += fmt.Sprintf("all %s agree, %d of them within the rounding of the printed figures.", units.Plural(same+near, "shared counter"), near)
		default:
			s += fmt.Sprintf("%d of %s differ.", differ, units.Plural(len(c.Rows), "shared counter"))
		}
		s += fmt.Sprintf(" Compared after event %s of the trace, %s.", units.Count(int64(c.Event)), c.Moment)
		p.section("Match", append([]string{s}, plain(c.Reasons)...), 10)
		p.line(p.paint(bold, pad("", 8)+pad("counter", 36)+right("memory_stats", 17)+right("snapshot", 17)+right("difference", 13)))
		left := 0
		for i := range c.Rows {
			row := &c.Rows[i]
			if row.Agreement != counters.Differs && !mainCounters[row.Name] && !all {
				left++
				continue
			}
			l := pad("", 8) + pad(chart.ClipLeft(chart.Plain(row.Name), 35), 36) + right(units.Count(row.Stats), 17) + right(units.Count(row.Snapshot), 17)
			switch row.Agreement {
			case counters.Within:
				l += right("rounding", 13)
			default:
				l += right(units.Count(row.Residual()), 13)
			}
			p.line(l)
			if row.Why != "" {
				p.line(pad("", 10) + p.paint(dim, chart.Clip(row.Why, p.width-10)))
			}
		}
		if left > 0 {
			p.line(fmt.Sprintf("        ... and %d more without a difference; --all shows them", left))
		}
	}
}

// statsData says what limits the answer.
func (p *printer) statsData(r *analyze.Stats, main *verdict.Counters) {
	var out []string
	if main != nil {
		out = append(out, main.Notes...)
	}
	for i := range r.Files {
		f := &r.Files[i].Info
		pre := ""
		if len(r.Files) > 1 {
			pre = chart.ClipLeft(f.Name, 30) + ": "
		}
		if f.Cut != nil {
			out = append(out, pre+"The file ends early"+placeOf(f.Cut)+": "+f.Cut.Msg+".")
		}
		if f.Skipped > 0 {
			out = append(out, fmt.Sprintf("%s%s could not be read, the first%s: %s.", pre, units.Plural(f.Skipped, "record"), placeOf(f.FirstSkipped), f.FirstSkipped.Msg))
		}
		if f.Odd > 0 {
			out = append(out, fmt.Sprintf("%sLeft out: %s, the first%s: %s.", pre, units.Plural(f.Odd, "figure"), placeOf(f.FirstOdd), f.FirstOdd.Msg))
		}
		if f.Foreign > 0 {
			out = append(out, fmt.Sprintf("%sWithout counters: %s.", pre, units.Plural(f.Foreign, "record")))
		}
	}
	if len(out) > 0 {
		p.line("")
		p.section("Data", plain(out), 8)
	}
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
