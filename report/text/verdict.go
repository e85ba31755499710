package text

import (
	"fmt"
	"io"
	"strings"

	"snapana/analyze"
	"snapana/analyze/fragmentation"
	"snapana/analyze/units"
	"snapana/analyze/verdict"
	"snapana/report/internal/view"
)

// maxLines of a verdict; it fits a screen of 40 together with the line that names the folder.
const maxLines = 38

// Verdict prints the outcome of an analysis: what is wrong, why, what to do next, where the
// memory is and who holds it. It never takes more than 38 lines.
func Verdict(w io.Writer, r *analyze.Result, o Options) error {
	p := newPrinter(w, o)
	top, rest := lead(&r.Verdict)
	p.headline(r, top)
	p.line("")
	if top != nil {
		why, next := p.room(len(r.Devices), len(rest), len(top.Fix))
		p.section("Why", plain(top.Why), why)
		p.section("Next", plain(numbered(top.Next)), next)
		p.code("Fix", top.Fix)
	} else {
		p.section("Next", []string{nextStep(r)}, 4)
	}
	p.also(rest)
	if len(r.Devices) > 0 {
		p.line("")
		d := focus(r, top)
		p.ledger(r.Devices, d)
		p.line("")
		notes := notes(r, min(max(maxLines-p.lines-8, 4), 7))
		p.stacks(d, top, min(5, maxLines-p.lines-len(notes)-3))
		p.data(notes)
	} else {
		p.data(notes(r, 7))
	}
	return p.w.Flush()
}

// room shares the lines that other parts leave between the reasons and the advice.
func (p *printer) room(devices, findings, fix int) (why, next int) {
	const below = 2 + 10 // the ledger's blank lines and title; stacks and notes at their shortest
	spare := maxLines - p.lines - fix - min(findings, 3) - min(3*devices, 7) - below
	next = min(max(spare-6, 4), 6)
	return max(spare-next, 6), next
}

func (p *printer) headline(r *analyze.Result, top *verdict.Finding) {
	name := view.ClipLeft(view.Plain(r.Snapshot.Name), 60)
	p.line(p.paint(dim, fmt.Sprintf("%s, %s; books balance: %s", name, units.Bytes(r.Snapshot.Bytes), view.Books(r))))
	badge := strings.ToUpper(string(r.Verdict.Status))
	text := view.Plain(r.Verdict.Headline)
	if top != nil {
		text += " (" + mark(top) + ")"
	}
	lines := wrap(text, width-len(badge)-2)
	if len(lines) > 3 {
		lines = append(lines[:2:2], view.Clip(lines[2], width-len(badge)-3)+"…")
	}
	for i, l := range lines {
		head := strings.Repeat(" ", len(badge))
		if i == 0 {
			head = p.paint(bold+";"+statusColor(r.Verdict.Status), badge)
		}
		p.line(head + "  " + p.paint(bold, l))
	}
}

// lead splits the findings into the one that the verdict rests on, if any, and the others.
func lead(v *verdict.Verdict) (*verdict.Finding, []verdict.Finding) {
	if len(v.Findings) == 0 || v.Findings[0].Status != v.Status {
		return nil, v.Findings
	}
	return &v.Findings[0], v.Findings[1:]
}

// mark says how far a finding can be trusted.
func mark(f *verdict.Finding) string {
	s := string(f.Confidence) + " confidence"
	if f.Heuristic {
		s += ", heuristic"
	}
	return s
}

// nextStep is what to do when no finding says it.
func nextStep(r *analyze.Result) string {
	events := 0
	for _, t := range r.Snapshot.Traces {
		events += t.Len()
	}
	switch {
	case r.Snapshot.Partial != nil:
		return "Get the whole file: copy it again once the program that writes it has finished, or record it anew."
	case len(r.Devices) == 0:
		return "Call torch.cuda.memory._record_memory_history() when the program starts and torch.cuda.memory._dump_snapshot(FILE) after the work, in the process that uses the GPU."
	case events < 2: // the only one may be the dump itself
		return "Record a trace too: call torch.cuda.memory._record_memory_history() when the program starts, then dump the snapshot again."
	}
	return "Nothing to fix. If memory was short all the same, see below who holds it."
}

// code prints lines as they are.
func (p *printer) code(label string, lines []string) {
	for i, l := range lines {
		head := ""
		if i == 0 {
			head = label
		}
		p.line(p.paint(bold, pad(head, 8)) + view.Clip(view.Plain(l), width-10))
	}
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
		out[i] = view.Plain(s)
	}
	return out
}

// also names the other findings, a line each.
func (p *printer) also(rest []verdict.Finding) {
	const most = 3
	for i, f := range rest {
		head := ""
		if i == 0 {
			head = "Also"
		}
		if i == most-1 && len(rest) > most {
			p.line(p.paint(bold, pad(head, 8)) + fmt.Sprintf("... and %d more findings, in the full report", len(rest)-i))
			return
		}
		mark := mark(&f)
		title := view.Plain(f.Title)
		if f.Device >= 0 {
			title = view.DeviceName(f.Device) + ": " + title
		}
		p.line(p.paint(bold, pad(head, 8)) + view.Clip(title, width-12-len(mark)) + p.paint(dim, "  ("+mark+")"))
	}
}

// ledger prints one row per device and moment; with many devices only first and the fullest
// ones.
func (p *printer) ledger(devices []analyze.Device, first *analyze.Device) {
	p.line(p.paint(bold, pad("Memory", 22)+right("reserved", 11)+" ="+right("active", 11)+" +"+
		right("releasable", 12)+" +"+right("split", 11)) + right("largest free", 15))
	shown, moments := devices, []string{"peak", "oom", "end"}
	if len(devices) > 2 {
		moments = []string{"peak"}
		shown = fullest(devices, first, 6)
	}
	for i := range shown {
		d := &shown[i]
		head := view.DeviceName(d.Timeline.Device)
		for _, name := range moments {
			m := view.Find(d, name)
			if m == nil {
				continue
			}
			f := &m.Frag
			p.line(pad(head, 8) + pad(strings.ToLower(view.MomentName(name)), 14) + right(units.Bytes(f.Reserved), 11) + "  " +
				right(units.Bytes(f.Active), 11) + "  " + right(units.Bytes(f.Releasable), 12) + "  " +
				right(units.Bytes(f.Split), 11) + right(units.Bytes(f.LargestFree), 15))
			head = ""
		}
		if m := view.Find(d, moments[len(moments)-1]); m != nil && len(devices) <= 2 {
			if note := elsewhere(&m.Frag); note != "" {
				p.line(pad("", 22) + view.Clip(note, width-22))
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
		w = append(w, units.Bytes(n)+" active waits for another stream")
	}
	if n := f.Classes.Stream; n > 0 {
		w = append(w, units.Bytes(n)+" free is another stream's or a private pool's")
	}
	return strings.Join(w, "; ")
}

// stacks prints the most largest holders of a device's memory at the moment that matters: the
// failure, the end when memory grows, or else the peak.
func (p *printer) stacks(d *analyze.Device, top *verdict.Finding, most int) {
	m, when := view.Find(d, "oom"), "when it ran out"
	switch {
	case m != nil:
	case top != nil && (top.Status == verdict.Ghost || top.Status == verdict.Cached):
		m, when = view.Find(d, "end"), "at the end"
	default:
		m, when = view.Find(d, "peak"), "at its peak"
	}
	if m == nil || len(m.Live) == 0 {
		return
	}
	sum := view.Sum(m.Live)
	p.line(p.paint(bold, fmt.Sprintf("Who holds the %s of %s %s", units.Bytes(sum), view.DeviceName(d.Timeline.Device), when)))
	groups, other, more := view.Top(m.Live, most)
	row := func(bytes int64, text string) {
		p.line(right(units.Bytes(bytes), 10) + right(units.Percent(bytes, sum), 6) + " " +
			p.paint(cyan, bar(bytes, sum, 10)) + "  " + text)
	}
	for i, site := range view.Sites(groups) {
		g := &groups[i]
		row(g.Rounded, pad(view.Clip(view.ClipLeft(view.Plain(site), 80), 58), 58)+right(count(int(g.Count), "block"), 13))
	}
	if more > 0 {
		row(other.Rounded, "... and "+count(more, "more stack"))
	}
}
