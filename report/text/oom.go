package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// maxMessages is how many other messages get a row.
const maxMessages = 20

// OOM prints the out-of-memory messages of a log: the main one in at most 40 lines with its
// figures, the split of the device's memory, the cause and what to do, then the others, of which All
// explains each.
func OOM(w io.Writer, l *oom.Log, o Options) error {
	if o.Brief {
		return briefOOM(l).doc(o).print(w)
	}
	d := newDoc(o)
	d.line(dim.of(chart.ClipLeft(chart.Plain(l.Name), 60) + ": " + units.Plural(l.Messages, "out-of-memory message") +
		when(int64(len(l.Groups)) != l.Messages, ", %d different", len(l.Groups))))
	d.oomMessage(l, &l.Groups[l.Main])
	d.oomMatch(l)
	if l.Failure != nil {
		d.gap()
		d.fits(l.Failure)
	}
	if o.All {
		for i := range l.Groups {
			if i != l.Main {
				d.gap()
				d.oomMessage(l, &l.Groups[i])
			}
		}
	} else {
		d.oomOthers(l)
	}
	if l.Dropped > 0 {
		d.line(more(l.Dropped, "message") + ", not listed: too many different ones")
	}
	return d.print(w)
}

func (d *doc) oomMessage(l *oom.Log, g *oom.Group) {
	f := verdict.Message(l, g)
	d.heading(f.Status.Word(), f.Status.Tone(), f.Title, 0)
	d.gap()
	d.list("Where", []string{oomPlace(g)}, 3)
	d.list("Says", []string{strings.Join(oomFields(g), "; ") + "."}, 5)
	if g.Ledger != nil {
		name := "the device"
		switch {
		case g.Device >= 0 && g.Backend == "npu":
			name = fmt.Sprintf("NPU %d", g.Device) // as the message calls it
		case g.Device >= 0:
			name = chart.DeviceName(g.Device)
		}
		d.gap()
		d.deviceLedger(name, g.Ledger, platform.Of(g.Backend))
		d.gap()
	}
	if f.Wants == finding.WantSnapshot {
		f.Next = append(f.Next, record(l, g))
	}
	d.finding(f.Why, f.Next, 10, 8)
}

// record says how to see more than figures.
func record(l *oom.Log, g *oom.Group) string {
	const see = "To see the tensors behind these figures, "
	if g == &l.Groups[l.Main] && l.Match != nil && l.Match.Same {
		return see + "run `snapana report` on " + l.Snapshot + "."
	}
	return platform.Of(g.Backend).Say(see + "call torch.cuda.memory._record_memory_history() at the start and " +
		"_dump_snapshot(FILE) on failure; then run `snapana report FILE`, and add --snapshot FILE here.")
}

// oomPlace says where a message stands, how often and who wrote it.
func oomPlace(g *oom.Group) string {
	s := fmt.Sprintf("line %s, byte %s", units.Count(g.Line), units.Count(g.Offset))
	s += when(g.Count > 1, "; %s times, last on line %s", units.Count(g.Count), units.Count(g.LastLine))
	s += when(len(g.Ranks) > 0, "; %s", rankWords(g.Ranks))
	s += when(g.Class != "", "; %s", chart.Clip(chart.Plain(g.Class), 60))
	if g.Family == oomlog.Unknown {
		s += "; unknown format"
	} else {
		s += fmt.Sprintf("; format %s, %s", g.Family, g.Family.Writer())
	}
	return s + when(g.Cut, "; truncated")
}

// rankWords lists ranks.
func rankWords(ranks []int) string {
	return "rank" + when(len(ranks) > 1, "s") + " " + chart.Ranges(ranks, nil)
}

// oomFields lists what a message prints, in its order.
func oomFields(m *oom.Group) []string {
	var out []string
	add := func(name string, s oomlog.Size) {
		if s.Known() && !s.Derived {
			out = append(out, name+" "+units.Bytes(s.Bytes))
		}
	}
	if m.Device >= 0 {
		out = append(out, strings.ToUpper(m.Backend)+" device "+fmt.Sprint(m.Device))
	}
	add("tried to allocate", m.Tried)
	add("total", m.Total)
	add("free", m.Free)
	const most = 6
	for i, p := range m.Processes {
		name := "this process"
		if p.PID != 0 {
			name = fmt.Sprintf("process %d", p.PID)
		}
		switch {
		case i == most:
			out = append(out, fmt.Sprintf("and %d more processes", len(m.Processes)-most))
		case i > most:
		case p.Unavailable:
			out = append(out, name+" not available")
		default:
			add(name, p.Used)
		}
	}
	add("allowed", m.Allowed)
	add("allocated", m.Allocated)
	add("active", m.Active)
	add("in private pools", m.PrivatePools)
	add("unallocated", m.Unallocated)
	add("reserved", m.Reserved)
	add("other allocations", m.Other)
	if m.Hint != "" {
		out = append(out, "hint "+m.Hint)
	}
	if len(out) == 0 {
		return []string{"no figures"}
	}
	return out
}

// oomMatch shows the main message beside the snapshot's event.
func (d *doc) oomMatch(l *oom.Log) {
	if l.Snapshot == "" {
		return
	}
	d.gap()
	name := chart.ClipLeft(chart.Plain(l.Snapshot), 40)
	if l.Match == nil {
		d.list("Match", []string{name + " has no out-of-memory event: its trace ends before the failure, " +
			"or it is from another run."}, 3)
		return
	}
	e := &l.Match.Event
	verb := "recorded the same request"
	if !l.Match.Same {
		verb = "did not record this request; the nearest event"
	}
	site := when(e.Site != "", ", %s", chart.Clip(chart.Plain(e.Site), 80))
	d.list("Match", []string{fmt.Sprintf("%s %s: %s, event %s%s.", name, verb, chart.DeviceName(e.Device),
		units.Count(e.Index), site)}, 3)
	t := d.table(bold, num("", 8), left("", 12), num("message", 11),
		num("snapshot", 11), num("difference", 12).spared(1), rest(""))
	for i := range l.Match.Figures {
		f := &l.Match.Figures[i]
		t.row("", f.Name, units.Size(f.Message.Bytes), units.Size(f.Snapshot), units.Size(f.Difference()),
			when(f.Agree, "within rounding"))
	}
}

// oomOthers gives the messages beside the main one a row each.
func (d *doc) oomOthers(l *oom.Log) {
	n := len(l.Groups) - 1
	if n < 1 {
		return
	}
	d.gap()
	t := d.table(bold, num("line", 9), num("times", 8), num("tried", 11),
		num("free", 11), num("allocated", 11), num("unalloc.", 11),
		clipped("format, cause"))
	size := func(s oomlog.Size) string { return cmp.Or(when(s.Known(), "%s", units.Bytes(s.Bytes)), "-") }
	shown := 0
	for i, g := range l.Groups {
		if i == l.Main {
			continue
		}
		if shown++; shown > maxMessages {
			t.line(more(n-maxMessages, "different message") + "; --all explains each, --json lists them")
			return
		}
		words := string(g.Family) + " " + string(g.Cause) + when(len(g.Ranks) > 0, ", %s", rankWords(g.Ranks))
		t.row(units.Count(g.Line), units.Count(g.Count), size(g.Tried), size(g.Free), size(g.Allocated),
			size(g.Unallocated), words)
	}
}

// Accounts prints where the memory of each device is, from its total to PyTorch's blocks, or why
// that cannot be said.
func Accounts(w io.Writer, r *analyze.Result, o Options) error {
	d := newDoc(o)
	for i := range r.Devices {
		a, name := r.Devices[i].Account, chart.DeviceName(r.Devices[i].Timeline.Device)
		if a == nil {
			continue
		}
		d.gap()
		l := a.Ledger
		if l == nil {
			d.paragraph(plain.of(name+" has no ledger: "+a.Why), 0, 0)
			continue
		}
		d.deviceLedger(name+", as the driver reports it", &l.Ledger, platform.Of("cuda"))
		switch {
		case l.Guessed != 0:
			d.linef("          Assumed to be process %d: no other is large enough.", l.Guessed)
		case l.PID != 0:
			d.linef("          This is process %d.", l.PID)
		}
		if l.Untold > 0 {
			d.linef("          The driver does not report how much %s.",
				units.Plural(l.Untold, "other process uses", "other processes use"))
		}
	}
	return d.print(w)
}

// deviceLedger adds the parts of a device's memory; they add up to its total.
func (d *doc) deviceLedger(name string, l *oom.Ledger, p *platform.Platform) {
	d.line(bold.of(fmt.Sprintf("%10s  total of %s", units.Size(l.Total), name)))
	t := d.shares(rest(""))
	for _, r := range l.Rows {
		words := p.Say(chart.LedgerWords[r.Row])
		switch {
		case r.Row == oom.RowForeign && r.Bytes < 0 && -l.Slack <= r.Bytes:
			words = "within the rounding of the message"
		case r.Row != oom.RowResidual && r.Bytes < 0:
			words = "below 0: not all that PyTorch reserved can be on the device"
		case r.Row != oom.RowResidual || r.Bytes == 0 && l.Slack == 0:
		case -l.Slack <= r.Bytes && r.Bytes <= l.Slack:
			words = "residual, within the rounding of the message"
		default:
			words = "unaccounted for"
		}
		t.share(r.Bytes, l.Total, words)
	}
}

// fits answers in a table in which circumstances the request that failed would have been served.
// Settings are one line: `snapana whatif` has a row for each. That no piece was large enough, and
// the device had too little, stands in the reasons already, and what the run has nothing of needs no line.
func (d *doc) fits(r *oom.Report) {
	d.line(bold.of(fmt.Sprintf("Would %v have fit?", r.Requested)))
	t := d.table(bold, column{sep: "  ", width: -5}, num("", 9), rest(""))
	answers := map[oom.Fits]cell{oom.Yes: green.of("yes"), oom.No: red.of("no"), oom.NotKnown: dim.of("?")}
	answer := func(fits oom.Fits, what string, bytes int64, note string) {
		size := when(bytes != oom.Unknown, "%s", units.Bytes(bytes))
		if !d.markdown && len(note) > len("replayed") && 18+chart.Width(what+": "+note) > d.width {
			t.row(answers[fits], size, what+":")
			d.paragraph(dim.of(note), 20, 0)
			return
		}
		t.row(answers[fits], size, what, dim.cut(when(note != "", ": %s", note)))
	}
	for _, a := range r.Answers {
		if (a.ID == "piece" || a.ID == "segment") && a.Fits != oom.Yes || a.Fits == oom.None || a.ID == "setting" {
			continue
		}
		answer(a.Fits, a.What, a.Bytes, chart.AnswerNote(&a))
	}
	fits, what, note := underSettings(r)
	answer(fits, what, oom.Unknown, note)
}

// underSettings sums up the answers on settings.
func underSettings(r *oom.Report) (fits oom.Fits, what, note string) {
	tried, open := 0, ""
	for _, a := range r.Answers {
		if a.ID != "setting" || a.Fits == oom.None {
			continue
		}
		tried++
		if a.Fits == oom.Yes {
			return oom.Yes, a.What, "replayed"
		}
		if a.Fits == oom.NotKnown && open == "" {
			open = a.Note
		}
	}
	if open != "" {
		return oom.NotKnown, "under other allocator settings", open
	}
	if tried == 0 {
		return oom.NotKnown, "under other allocator settings", "the run cannot be replayed"
	}
	return oom.No, fmt.Sprintf("under any of %d allocator settings", tried), "replayed"
}

// fit answers in a line for the failure of one device of several.
func (d *doc) fit(o *analyze.Device) {
	fits, what, note := underSettings(o.OOM)
	word := map[oom.Fits]string{oom.Yes: "yes, ", oom.No: "no, not ", oom.NotKnown: "not known "}[fits]
	asked := fmt.Sprintf("Would %v have fit on %s?", o.OOM.Requested, chart.DeviceName(o.Timeline.Device))
	answer := " " + word + what + ": " + note
	if chart.Width(asked+answer) > d.width && fits != oom.NotKnown {
		answer = " " + word + what
	}
	d.line(bold.of(asked), plain.cut(answer))
}
