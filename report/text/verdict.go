package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/sorting"
)

// maxLines of a verdict; it fits a screen of 40 together with the line that names the folder.
const maxLines = 38

// most is how many lines a verdict may take: where they are narrow, more.
func (d *doc) most() int { return maxLines * 80 / min(d.width, 80) }

// mostSaved bounds the lines on what would lower the peak.
const mostSaved = 10

// Verdict prints the outcome of an analysis: what is wrong, a picture of the run, why, what to do next, where the
// memory is and who allocated it. Without its picture it never takes more
// than 38 lines of 80 columns.
func Verdict(w io.Writer, r *analyze.Result, o Options) error {
	if o.Brief {
		return briefReport(r).doc(o).print(w)
	}
	return outcomeOf(r, newDoc(o)).print(w)
}

// outcomeOf fills a document.
func outcomeOf(r *analyze.Result, d *doc) *outcome {
	v := &outcome{doc: d, r: r, top: r.Verdict.Lead(), rest: r.Verdict.Findings}
	v.title()
	v.picture(focus(r, v.top))
	if v.top == nil {
		v.finding(nil, []string{nextStep(&r.Verdict)}, 0, v.most()-34)
		v.code("Record", plain, r.Verdict.Fix)
		v.savings(mostSaved)
		v.below(5)
		return v
	}
	v.rest = v.rest[1:]
	const least = 10 // lines of advice
	room := func() int {
		rest, empty := *v, *d
		empty.above, empty.lines = v.height()+d.heads+least, nil
		rest.doc = &empty
		rest.savings(mostSaved)
		rest.fix()
		rest.below(3)
		return max(d.most()+least-rest.height(), 4)
	}
	lines := room()
	if need := len(v.wrapped(v.top.Why)) + len(v.wrapped(numbered(v.top.Next))); lines < need {
		v.brief = true
		lines = room()
	}
	// What the reasons do not need the steps get.
	next := min(len(v.wrapped(numbered(v.top.Next))), max(lines/2, lines-len(v.wrapped(v.top.Why))))
	v.finding(v.top.Why, v.top.Next, lines-next, next)
	v.savings(mostSaved)
	v.fix()
	v.below(5)
	return v
}

// outcome is the document on a verdict.
type outcome struct {
	*doc
	r    *analyze.Result
	top  *finding.Finding // that the verdict rests on, if any
	rest []finding.Finding
	// brief says that the advice needs the lines that other findings would take as a second one.
	brief bool
}

// title names the file and the verdict, and the holder where the verdict does not say it itself.
func (v *outcome) title() {
	s, verdict := v.r.Snapshot, &v.r.Verdict
	text := verdict.Headline
	if v.top != nil {
		text += " (" + v.top.Trust() + ")"
	}
	v.line(dim.name(chart.ClipLeft(chart.Plain(s.Name), 60)), dim.of(", "+units.Bytes(s.Bytes)+
		when(s.Window != nil, ", a window: %s", v.r.Window())))
	v.heading(verdict.Status.Word(), verdict.Status.Tone(), text, 4)
	v.gap()
	if v.r.Holders == nil || v.top != nil && v.top.ID == "growth" {
		return
	}
	if h := chart.NewHolders(v.r, 1<<20); len(h.Proven) > 0 {
		v.list("Holder", []string{h.Headline + " (" + h.Trust + ")"}, 4)
	}
}

// savings are what would lower the peak, and last what is largest there, in at most so many lines. What is largest is
// said with the next step where that is all.
func (v *outcome) savings(most int) {
	var list []string
	for _, s := range v.r.Verdict.Savings() {
		list = append(list, s.Text)
	}
	if start := v.r.Verdict.Start(); start != "" && (v.top != nil || len(list) > 0) {
		list = append(list, start)
	}
	v.list("Savings", numbered(list), most)
}

func (v *outcome) fix() { v.code("Fix", plain, v.top.Fix) }

// below adds what follows the advice, with so many stacks at most; they and the notes fill a screen.
func (v *outcome) below(stacks int) {
	r := v.r
	v.also()
	if len(r.Devices) == 0 {
		v.pinned(r, false)
		v.data(notes(r, 7, v.width))
		return
	}
	v.gap()
	d := focus(r, v.top)
	v.failures(d)
	v.ledger(d)
	v.pinned(r, d.OOM != nil || len(r.Devices) > 2)
	v.gap()
	used := v.height()
	said := notes(r, min(max(v.most()-used-8, 4), 7), v.width)
	v.stacks(d, max(min(stacks, v.most()-used-len(said)-3-v.heads), 1))
	v.data(said)
}

// nextStep is what to do when no finding says it.
func nextStep(v *verdict.Verdict) string {
	switch start := v.Start(); {
	case v.Next != verdict.NoFix:
		return v.Next
	case len(v.Savings()) > 0:
		return v.Next + " To use less:"
	case start == "":
		return v.Next + " To use less, start with the largest consumers below."
	default:
		return v.Next + " To use less, start with " + strings.ToLower(start[:1]) + start[1:]
	}
}

// also names the other findings, a line each.
func (v *outcome) also() {
	const most = 3
	var rows [][]cell
	for i, f := range v.rest {
		if i == most-1 && len(v.rest) > most {
			rows = append(rows, cells(more(len(v.rest)-i, "finding")+", in the full report"))
			break
		}
		title := when(f.Device >= 0, "%s: ", chart.DeviceName(f.Device)) + f.Title
		trust := dim.of("  (" + f.Trust() + ")")
		lines := wrap(chart.Plain(title), v.width-v.margin-2)
		if room := v.width - v.margin - chart.Width(title+trust.text); v.markdown || v.brief || room >= 0 || len(lines) == 0 {
			rows = append(rows, cells(plain.cut(title), trust))
			continue
		}
		rows = append(rows, cells(lines[0]), cells("  ", plain.cut(strings.Join(lines[1:], " ")), trust))
	}
	v.labeled("Also", rows...)
}

// failures says whether the requests that failed would have fit elsewhere, of more than two devices in a line each.
func (v *outcome) failures(d *analyze.Device) {
	var failed []*analyze.Device
	for i := range v.r.Devices {
		if o := &v.r.Devices[i]; o.OOM != nil {
			failed = append(failed, o)
		}
	}
	switch {
	case len(failed) == 0:
		return
	case len(v.r.Devices) <= 2 && d.OOM != nil:
		v.fits(d.OOM)
		if len(failed) == 2 {
			v.fit(failed[1-slices.Index(failed, d)])
		}
	default:
		const most = 3
		for _, o := range analyze.Fullest(failed, most, d) {
			if fits, _, _ := underSettings(o.OOM); fits != oom.NotKnown || o == d {
				v.fit(o)
			}
		}
	}
	v.gap()
}

// momentRow is a moment of a device that may get a row.
type momentRow struct {
	device *analyze.Device
	moment *analyze.Moment
	weight int // those that weigh least are left out last
}

// momentRows are those of some devices, in order. A device has one at least, and d more rather than others.
func momentRows(devices []*analyze.Device, d *analyze.Device) []momentRow {
	var out []momentRow
	for _, o := range devices {
		first, failed := true, o.Moment("oom")
		for weight, name := range []string{"peak", "oom", "end"} {
			m := o.Moment(name)
			if m == nil || name == "end" && failed != nil && failed.State.Totals == m.State.Totals {
				continue // the program ended there
			}
			weight = 2 * weight
			if o != d {
				weight++
			}
			if first {
				weight = 0
			}
			first = false
			out = append(out, momentRow{o, m, weight})
		}
	}
	return out
}

// usualDevices is how many devices have two rows at least.
const usualDevices = 4

// belowLedger is how many lines what follows the table of moments takes at least.
const belowLedger = 13

// ledger adds a row per device and moment; of more than two devices that have memory as many as there is room for.
func (v *outcome) ledger(d *analyze.Device) {
	sizes := []column{num("reserved", 11), {head: "active", width: 11, sep: " ="},
		column{head: "releasable", width: 12, sep: " +"}.spared(1), {head: "split", width: 11, sep: " +"},
		num("largest free", 15).spared(2)}
	shown := make([]*analyze.Device, len(v.r.Devices))
	for i := range shown {
		shown[i] = &v.r.Devices[i]
	}
	many := len(shown) > 2
	shown = slices.DeleteFunc(shown, func(o *analyze.Device) bool {
		return o != d && o.Timeline.PeakReserved.Bytes == 0 && o.Timeline.Trace.Len() == 0
	})
	unused := len(v.r.Devices) - len(shown)
	if many {
		most := 6
		if d.OOM != nil && len(shown) > most {
			most = usualDevices
		}
		shown = analyze.Fullest(shown, most, d)
	}
	rows := momentRows(shown, d)
	room := max(v.most()-v.height()-v.heads-belowLedger, len(shown))
	if len(shown) <= usualDevices {
		room = max(room, 2*len(shown))
	}
	if many && len(rows) > room {
		order := slices.Clone(rows)
		sorting.Stable(order, func(a, b momentRow) int { return cmp.Compare(a.weight, b.weight) })
		rows = slices.DeleteFunc(rows, func(r momentRow) bool { return !slices.Contains(order[:room], r) })
	}
	t := v.table(bold, append([]column{left("Memory", 8), left("", 14)}, sizes...)...)
	for i, r := range rows {
		head := chart.DeviceName(r.device.Timeline.Device)
		if i > 0 && rows[i-1].device == r.device {
			head = ""
		}
		f, when := &r.moment.Frag, strings.ToLower(chart.MomentName(r.moment.Name))
		if r.moment.Name == "peak" {
			when = "active peak" // more may be reserved later
		}
		row := []any{head, when, units.Size(f.Reserved), units.Size(f.Active),
			units.Size(f.Releasable), units.Size(f.Split), units.Size(f.LargestFree)}
		t.row(row...)
		if !many && (i == len(rows)-1 || rows[i+1].device != r.device) {
			t.paragraph(plain.of(elsewhere(f)), 22, 0)
		}
	}
	switch n := len(v.r.Devices) - len(shown); {
	case n > 0 && n == unused:
		t.line(more(n, "device") + " without memory of this program")
	case n > 0:
		t.line(more(n, "device") + " with less memory")
	}
}

// elsewhere tells what of the memory serves only others.
func elsewhere(f *fragmentation.Report) string {
	w := ""
	for _, part := range []struct {
		bytes int64
		what  string
	}{
		{f.Classes.Pending, "of the active memory is freed, waiting for another stream"},
		{f.Private, "free is reserved for private pools"},
		{f.Classes.Stream - f.Private, "free belongs to another stream"},
	} {
		w += when(part.bytes > 0, "; %s %s", units.Bytes(part.bytes), part.what)
	}
	return strings.TrimPrefix(w, "; ")
}

// stacks names who allocated most of a device's memory at the moment that matters.
func (v *outcome) stacks(d *analyze.Device, most int) {
	m, when := v.r.Decisive(d)
	if m == nil || len(m.Live) == 0 {
		return
	}
	sum := chart.Sum(m.Live)
	v.line(bold.of(fmt.Sprintf("%s in use on %s %s, allocated by", units.Bytes(sum),
		chart.DeviceName(d.Timeline.Device), when)))
	if lost := sum - m.Frag.Active; lost > 0 { // of a file that contradicts itself
		v.line("  " + units.Bytes(lost) + " of it lies in no known segment")
	}
	site := clipped("")
	site.cut = chart.ClipSite
	t := v.shares(site, num("", 13))
	sources, other, left := chart.LargestSources(chart.Sources(m.Live), most)
	for i, site := range chart.Sites(sources) {
		g := &sources[i]
		site = chart.ClipSite(chart.Plain(site), 80)
		if n := g.Note(); n != "" {
			site += " (" + n + ")"
		}
		t.share(g.Rounded, sum, plain.name(site), units.Plural(g.Count, "block"))
	}
	if left > 0 {
		t.share(other.Rounded, sum, more(left, "stack"), "")
	}
}

// focus is the device that the leading finding is about, or else the one with the highest
// peak of reserved memory.
func focus(r *analyze.Result, top *finding.Finding) *analyze.Device {
	for i := range r.Devices {
		if top != nil && r.Devices[i].Timeline.Device == top.Device {
			return &r.Devices[i]
		}
	}
	return r.Main()
}
