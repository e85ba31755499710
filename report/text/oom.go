package text

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
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
	p := newPrinter(w, o)
	head := chart.ClipLeft(chart.Plain(l.Name), 60) + ": " + units.Plural(l.Messages, "out-of-memory message")
	if n := len(l.Groups); int64(n) != l.Messages {
		head += fmt.Sprintf(", %d different", n)
	}
	p.line(p.paint(dim, head))
	p.oomMessage(l, &l.Groups[l.Main])
	p.oomMatch(l)
	if l.Failure != nil {
		p.line("")
		p.fits(l.Failure)
	}
	if o.All {
		for i := range l.Groups {
			if i != l.Main {
				p.line("")
				p.oomMessage(l, &l.Groups[i])
			}
		}
	} else {
		p.oomOthers(l)
	}
	if l.Dropped > 0 {
		p.line("... and " + units.Plural(l.Dropped, "more message") + ", not listed: too many different ones")
	}
	return p.w.Flush()
}

func (p *printer) oomMessage(l *oom.Log, g *oom.Group) {
	f := verdict.Message(l, g)
	badge := strings.ToUpper(string(f.Status))
	p.headline(badge, f.Status.Tone(), chart.Plain(f.Title), math.MaxInt)
	p.line("")
	p.section("Where", []string{oomPlace(g)}, 3)
	p.section("Says", []string{strings.Join(oomFields(g), "; ") + "."}, 5)
	if g.Ledger != nil {
		p.line("")
		name := "the device"
		if g.Device >= 0 {
			name = chart.DeviceName(g.Device)
		}
		p.deviceLedger(name, g.Ledger)
		p.line("")
	}
	p.section("Why", plain(f.Why), 10)
	if f.Wants == finding.WantSnapshot {
		f.Next = append(f.Next, record(l, g))
	}
	p.section("Next", plain(numbered(f.Next)), 8)
}

// record says how to see more than figures.
func record(l *oom.Log, g *oom.Group) string {
	const see = "To see the tensors behind these figures, "
	if g == &l.Groups[l.Main] && l.Match != nil && l.Match.Same {
		return see + "run `snapana report` on " + l.Snapshot + "."
	}
	return see + "call torch.cuda.memory._record_memory_history() at the start and _dump_snapshot(FILE) on failure; " +
		"then run `snapana report FILE`, and add --snapshot FILE here."
}

// oomPlace says where a message stands, how often and who wrote it.
func oomPlace(g *oom.Group) string {
	s := fmt.Sprintf("line %s, byte %s", units.Count(g.Line), units.Count(g.Offset))
	if g.Count > 1 {
		s += fmt.Sprintf("; %s times, last on line %s", units.Count(g.Count), units.Count(g.LastLine))
	}
	if len(g.Ranks) > 0 {
		s += "; " + rankWords(g.Ranks)
	}
	if g.Class != "" {
		s += "; " + chart.Clip(chart.Plain(g.Class), 60)
	}
	if g.Family == oomlog.Unknown {
		s += "; unknown format"
	} else {
		s += fmt.Sprintf("; format %s, %s", g.Family, g.Family.Writer())
	}
	if g.Cut {
		s += "; truncated"
	}
	return s
}

// rankWords lists ranks as ranges.
func rankWords(ranks []int) string {
	const most = 12
	var parts []string
	for i := 0; i < len(ranks); {
		k := i
		for k+1 < len(ranks) && ranks[k+1] == ranks[k]+1 {
			k++
		}
		part := fmt.Sprint(ranks[i])
		if k > i {
			part += fmt.Sprintf("-%d", ranks[k])
		}
		if parts = append(parts, part); len(parts) == most && k+1 < len(ranks) {
			parts = append(parts, fmt.Sprintf("... (%d in total)", len(ranks)))
			break
		}
		i = k + 1
	}
	if len(ranks) == 1 {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ", ")
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
func (p *printer) oomMatch(l *oom.Log) {
	if l.Snapshot == "" {
		return
	}
	p.line("")
	name := chart.ClipLeft(chart.Plain(l.Snapshot), 40)
	if l.Match == nil {
		p.section("Match", []string{name + " has no out-of-memory event: its trace ends before the failure, or it is from another run."}, 3)
		return
	}
	e := &l.Match.Event
	verb := "recorded the same request"
	if !l.Match.Same {
		verb = "did not record this request; the nearest event"
	}
	site := ""
	if e.Site != "" {
		site = ", " + chart.Clip(chart.Plain(e.Site), 80)
	}
	p.section("Match", []string{fmt.Sprintf("%s %s: %s, event %s%s.", name, verb, chart.DeviceName(e.Device), units.Count(int64(e.Index)), site)}, 3)
	p.line(p.paint(bold, pad("", 8)+pad("", 12)+right("message", 11)+right("snapshot", 11)+right("difference", 12)))
	for i := range l.Match.Figures {
		f := &l.Match.Figures[i]
		note := ""
		if f.Agree {
			note = "  within rounding"
		}
		p.line(pad("", 8) + pad(f.Name, 12) + right(units.Bytes(f.Message.Bytes), 11) + right(units.Bytes(f.Snapshot), 11) +
			right(units.Bytes(f.Difference()), 12) + note)
	}
}

// oomOthers gives the messages beside the main one a row each.
func (p *printer) oomOthers(l *oom.Log) {
	n := len(l.Groups) - 1
	if n < 1 {
		return
	}
	p.line("")
	p.line(p.paint(bold, right("line", 9)+right("times", 8)+right("tried", 11)+right("free", 11)+right("allocated", 11)+right("unalloc.", 11)+"  format, cause"))
	size := func(s oomlog.Size) string {
		if !s.Known() {
			return "-"
		}
		return units.Bytes(s.Bytes)
	}
	shown := 0
	for i, g := range l.Groups {
		if i == l.Main {
			continue
		}
		if shown++; shown > maxMessages {
			p.linef("... and %d more different messages; --all explains each, --json lists them", n-maxMessages)
			return
		}
		words := string(g.Family) + " " + string(g.Cause)
		if len(g.Ranks) > 0 {
			words += ", " + rankWords(g.Ranks)
		}
		p.line(right(units.Count(g.Line), 9) + right(units.Count(g.Count), 8) + right(size(g.Tried), 11) + right(size(g.Free), 11) +
			right(size(g.Allocated), 11) + right(size(g.Unallocated), 11) + "  " + chart.Clip(words, p.width-63))
	}
}
