package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
)

// maxLines of a verdict; it fits a screen of 40 together with the line that names the folder.
const maxLines = 38

// Verdict prints the outcome of an analysis: what is wrong, why, what to do next, where the
// memory is and who allocated it. It never takes more than 38 lines.
func Verdict(w io.Writer, r *analyze.Result, o Options) error {
	p := newPrinter(w, o)
	top, rest := lead(&r.Verdict)
	p.head(r, top)
	p.line("")
	if top == nil || top.ID != "growth" { // which says it itself
		p.holder(r)
	}
	if top != nil {
		scratch := newPrinter(io.Discard, o)
		scratch.lines = p.lines + len(top.Fix) + 10 // so many reasons and steps, where there is room
		scratch.below(r, top, rest, 3)
		why, next := plain(top.Why), plain(numbered(top.Next))
		forWhy, forNext := divide(max(maxLines+10-scratch.lines, 4), len(p.sectionLines(why)), len(p.sectionLines(next)))
		p.section("Why", why, forWhy)
		p.section("Next", next, forNext)
		p.code("Fix", top.Fix)
	} else {
		p.section("Next", []string{nextStep(r)}, 4)
	}
	p.below(r, top, rest, 5)
	return p.w.Flush()
}

// below prints what follows the advice, with the most stacks that there is room for.
func (p *printer) below(r *analyze.Result, top *finding.Finding, rest []finding.Finding, most int) {
	p.also(rest)
	if len(r.Devices) == 0 {
		p.pinned(r, false)
		p.data(notes(r, 7, p.width))
		return
	}
	p.line("")
	d := focus(r, top)
	if tells(r, d) {
		p.fits(d.OOM)
		p.line("")
	}
	p.ledger(r.Devices, d)
	p.pinned(r, d.OOM != nil || len(r.Devices) > 2)
	p.line("")
	notes := notes(r, min(max(maxLines-p.lines-8, 4), 7), p.width)
	p.stacks(d, top, max(min(most, maxLines-p.lines-len(notes)-3), 1))
	p.data(notes)
}

// divide shares lines between the reasons and the advice, which would like to have so many each:
// what one does not need the other gets.
func divide(lines, why, next int) (forWhy, forNext int) {
	forNext = min(next, max(lines/2, lines-why))
	return lines - forNext, forNext
}

// tells reports whether a request failed on a device that the verdict has room to tell about.
func tells(r *analyze.Result, d *analyze.Device) bool { return d.OOM != nil && len(r.Devices) <= 2 }

func (p *printer) head(r *analyze.Result, top *finding.Finding) {
	name := chart.ClipLeft(chart.Plain(r.Snapshot.Name), 60)
	p.line(p.paint(dim, fmt.Sprintf("%s, %s", name, units.Bytes(r.Snapshot.Bytes))))
	badge := strings.ToUpper(string(r.Verdict.Status))
	text := chart.Plain(r.Verdict.Headline)
	if top != nil {
		text += " (" + top.Trust() + ")"
	}
	p.headline(badge, r.Verdict.Status.Tone(), text, 3)
	if n, residual := r.Books(); n > 0 || residual > 0 {
		p.line(p.paint(red, analyze.Verified(n, residual)))
	}
}

// holder names the first ghost that was seen in the process, in at most four lines.
func (p *printer) holder(r *analyze.Result) {
	if r.Holders == nil {
		return
	}
	if v := chart.NewHolders(r, 1<<20); len(v.Proven) > 0 {
		p.section("Holder", []string{v.Headline + " (" + v.Trust + ")"}, 4)
	}
}

// lead splits the findings into the one that the verdict rests on, if any, and the others.
func lead(v *verdict.Verdict) (*finding.Finding, []finding.Finding) {
	if top := v.Lead(); top != nil {
		return top, v.Findings[1:]
	}
	return nil, v.Findings
}

// nextStep is what to do when no finding says it.
func nextStep(r *analyze.Result) string {
	events := 0
	for _, t := range r.Snapshot.Traces {
		events += t.Len()
	}
	onHost := slices.IndexFunc(r.Verdict.Findings, func(f finding.Finding) bool { return f.Status == finding.Host && f.Severity == finding.Warning })
	switch {
	case r.Snapshot.Partial != nil:
		return "Get the whole file: copy it again after the program has finished writing it, or record it again."
	case onHost >= 0:
		return r.Verdict.Findings[onHost].Next[0]
	case r.Pinned != nil && len(r.Snapshot.UsedDevices()) == 0:
		return "To judge the GPU's memory too, record without record_cuda=False."
	case len(r.Devices) == 0:
		return "Call torch.cuda.memory._record_memory_history() when the program starts and torch.cuda.memory._dump_snapshot(FILE) after the work, in the process that uses the GPU."
	case events < 2: // the only one may be the dump itself
		return "Record a trace too: call torch.cuda.memory._record_memory_history() when the program starts, then dump the snapshot again."
	}
	return "No fix needed. To use less, start with the largest consumers below."
}

// code prints lines as they are.
func (p *printer) code(label string, lines []string) {
	var out []string
	for _, l := range lines {
		out = append(out, chart.Clip(chart.Plain(l), p.width-10))
	}
	p.labeled(label, out)
}

func numbered(steps []string) []string {
	if len(steps) < 2 {
		return steps
	}
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = fmt.Sprintf("%d. %s", i+1, s)
	}
	return out
}

func plain(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = chart.Plain(s)
	}
	return out
}

// also names the other findings, a line each.
func (p *printer) also(rest []finding.Finding) {
	const most = 3
	var lines []string
	for i, f := range rest {
		if i == most-1 && len(rest) > most {
			lines = append(lines, fmt.Sprintf("... and %d more findings, in the full report", len(rest)-i))
			break
		}
		mark := f.Trust()
		lines = append(lines, chart.Clip(findingTitle(&f), p.width-12-len(mark))+p.paint(dim, "  ("+mark+")"))
	}
	p.labeled("Also", lines)
}

// findingTitle is the title of a finding with the device that it is about.
func findingTitle(f *finding.Finding) string {
	if f.Device >= 0 {
		return chart.DeviceName(f.Device) + ": " + chart.Plain(f.Title)
	}
	return chart.Plain(f.Title)
}

// ledger prints one row per device and moment; with many devices only first and the fullest
// ones.
func (p *printer) ledger(devices []analyze.Device, first *analyze.Device) {
	largest := func(s string) string { // where the line has room for it
		if p.width < 88 {
			return ""
		}
		return right(s, 15)
	}
	p.line(p.paint(bold, pad("Memory", 22)+right("reserved", 11)+" ="+right("active", 11)+" +"+
		right("releasable", 12)+" +"+right("split", 11)) + largest("largest free"))
	shown, moments := devices, []string{"peak", "oom", "end"}
	if len(devices) > 2 {
		moments = []string{"peak"}
		shown = fullest(devices, first, 6)
	}
	for i := range shown {
		d := &shown[i]
		head := chart.DeviceName(d.Timeline.Device)
		for _, name := range moments {
			m := d.Moment(name)
			if failed := d.Moment("oom"); m == nil || name == "end" && failed != nil && failed.State.Totals == m.State.Totals {
				continue // the program ended there
			}
			f := &m.Frag
			p.line(pad(head, 8) + pad(strings.ToLower(chart.MomentName(name)), 14) + right(units.Bytes(f.Reserved), 11) + "  " +
				right(units.Bytes(f.Active), 11) + "  " + right(units.Bytes(f.Releasable), 12) + "  " +
				right(units.Bytes(f.Split), 11) + largest(units.Bytes(f.LargestFree)))
			head = ""
		}
		if m := d.Moment(moments[len(moments)-1]); m != nil && len(devices) <= 2 {
			if note := elsewhere(&m.Frag); note != "" {
				for _, l := range wrap(note, p.width-22) {
					p.line(pad("", 22) + l)
				}
			}
		}
	}
	if n := len(devices) - len(shown); n > 0 {
		p.linef("... and %d more devices with less memory", n)
	}
}

// elsewhere tells what of the memory serves only others.
func elsewhere(f *fragmentation.Report) string {
	var w []string
	if n := f.Classes.Pending; n > 0 {
		w = append(w, units.Bytes(n)+" of the active memory is freed, waiting for another stream")
	}
	if n := f.Private; n > 0 {
		w = append(w, units.Bytes(n)+" free is reserved for private pools")
	}
	if n := f.Classes.Stream - f.Private; n > 0 {
		w = append(w, units.Bytes(n)+" free belongs to another stream")
	}
	return strings.Join(w, "; ")
}

// decisive is the moment that matters: the failure, the end when memory grows or nothing else is
// known, or else the peak.
func decisive(d *analyze.Device, top *finding.Finding) (m *analyze.Moment, when string) {
	if m = d.Moment("oom"); m != nil {
		return m, "when it ran out of memory"
	}
	if top != nil && (top.Status == finding.Ghost || top.Status == finding.Cached) {
		return d.Moment("end"), "at the end"
	}
	if m = d.Moment("peak"); m != nil && d.Timeline.Trace.Len() > 1 {
		return m, "at its peak"
	}
	return d.Moment("end"), "in the dumped state"
}

// stacks prints who allocated most of a device's memory at the moment that matters.
func (p *printer) stacks(d *analyze.Device, top *finding.Finding, most int) {
	m, when := decisive(d, top)
	if m == nil || len(m.Live) == 0 {
		return
	}
	sum := chart.Sum(m.Live)
	p.line(p.paint(bold, fmt.Sprintf("%s in use on %s %s, allocated by", units.Bytes(sum), chart.DeviceName(d.Timeline.Device), when)))
	groups, other, more := chart.Largest(m.Live, most)
	room := p.width - 42 // for names
	row := func(bytes int64, text string) {
		p.line(right(units.Bytes(bytes), 10) + right(units.Percent(bytes, sum), 6) + " " +
			p.paint(cyan, bar(bytes, sum, 10)) + "  " + text)
	}
	for i, site := range chart.Sites(groups) {
		g := &groups[i]
		row(g.Rounded, pad(chart.Clip(chart.ClipLeft(chart.Plain(site), 80), room), room)+right(units.Plural(g.Count, "block"), 13))
	}
	if more > 0 {
		row(other.Rounded, "... and "+units.Plural(more, "more stack"))
	}
}
