package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// StateOptions choose what is printed of a state.
type StateOptions struct {
	Options
	Top int // rows, or in a tree the calls below each call; 0 is all
}

// State prints what is live at one moment: the totals, whether they can be trusted, and the
// live blocks by what the query groups them by, or by call path.
func State(w io.Writer, a *attribution.Answer, o StateOptions) error {
	p := newPrinter(w, o.Options)
	p.stateHead(a)
	p.line("")
	if a.Tree != nil {
		p.tree(a, o.Top)
	} else {
		p.holders(a, o.Top)
	}
	return p.w.Flush()
}

func (p *printer) stateHead(a *attribution.Answer) {
	t := a.State.Totals
	p.line(p.paint(bold, fmt.Sprintf("reserved %s   active %s   allocated %s   requested %s",
		units.Bytes(t.Reserved), units.Bytes(t.Active), units.Bytes(t.Allocated), units.Bytes(t.Requested))))
	device := chart.DeviceName(a.Timeline.Device)
	if a.Why != "" {
		device += " (" + a.Why + ")"
	}
	head := fmt.Sprintf("%s, %s %s", chart.ClipLeft(chart.Plain(a.Snapshot.Name), 40), device, chart.Plain(a.Moment.Name))
	for _, l := range append(wrap(head, p.width), wrap(when(a), p.width)...) {
		p.line(l)
	}
	c := &a.Timeline.Checks
	tone := green
	if c.Inconsistent() > 0 || c.Residual != 0 {
		tone = red
	}
	p.line(p.paint(tone, analyze.Verified(c.Inconsistent(), c.Residual)))
	if n := len(a.State.Outside); n > 0 {
		p.line(units.Plural(n, "live block") + " in no known segment: the file contradicts itself")
	}
	if a.Snapshot.Partial != nil {
		p.line(chart.Clip("only part of the file was read: "+chart.Plain(a.Snapshot.Partial.Error()), p.width))
	}
}

// when says where in the trace a state lies.
func when(a *attribution.Answer) string {
	t, e := a.Timeline, a.State.Event
	switch {
	case t.Trace.Len() == 0:
		return "the dumped state; the file has no trace of this device"
	case e < 0:
		return "before the first of " + units.Plural(t.Trace.Len(), "event")
	}
	ev := t.Trace.At(e)
	s := fmt.Sprintf("right after event %s of 0 to %s (%s", units.Count(int64(e)), units.Count(int64(t.Trace.Len()-1)), ev.Action)
	if t.Trace.Len() == 1 {
		s = fmt.Sprintf("right after the only event, 0 (%s", ev.Action)
	}
	if ev.Size > 0 {
		s += " of " + units.Bytes(ev.Size)
	}
	s += ")"
	if first := t.Trace.At(0).Time; first > 0 && ev.Time >= first {
		s += ", +" + units.Micros(ev.Time-first)
	}
	return s
}

// holders prints a row per group, and rows that close the sum.
func (p *printer) holders(a *attribution.Answer, top int) {
	h, whole, deep := a.Holders, a.State.Totals.Active, 8
	if a.Query.Internals {
		deep = maxTree
	}
	pre := a.Timeline.Trace.Len() > 0 && h.Kept().PreTrace+h.LeftOut.PreTrace > 0
	columns := func(active, share, requested, blocks, pinned, preTrace string) string {
		s := right(active, 10) + right(share, 7) + right(requested, 11) + right(blocks, 9) + right(pinned, 10)
		if pre {
			s += right(preTrace, 11)
		}
		return s + "  "
	}
	row := func(sum attribution.Sum, pinned, name string) {
		head := columns(units.Bytes(sum.Rounded), units.Percent(sum.Rounded, whole), units.Bytes(sum.Requested),
			units.Count(sum.Count), pinned, units.Bytes(sum.PreTrace))
		indent := len([]rune(head))
		lines := wrap(chart.Plain(name), p.width-indent)
		if n := len(lines); n > 3 {
			lines = []string{lines[0], "…", lines[n-1]}
		}
		for i, l := range lines {
			if i > 0 {
				head = strings.Repeat(" ", indent)
			}
			p.line(head + l)
		}
	}
	p.line(p.paint(bold, columns("active", "share", "requested", "blocks", "pinned", "pre-trace")+string(h.By)))
	shown := h.Rows
	if top > 0 && len(shown) > top {
		shown = shown[:top]
	}
	for i := range shown {
		r := &shown[i]
		row(r.Sum, units.Bytes(r.Pinned), r.Name)
		p.frames(r.Frames, deep)
		p.rowNotes(r.Notes)
	}
	if more := h.Rows[len(shown):]; len(more) > 0 {
		var rest attribution.Sum
		for i := range more {
			rest.Add(more[i].Sum)
		}
		row(rest, "", fmt.Sprintf("... and %s more", units.Count(int64(len(more)))))
	}
	if h.LeftOut.Count > 0 {
		row(h.LeftOut, "", "(left out by --match and --exclude)")
	}
	all := h.Kept()
	all.Add(h.LeftOut)
	row(all, "", "total")
}

// frames prints the inner end of a stack in at most so many lines.
func (p *printer) frames(frames []string, most int) {
	for i, f := range frames {
		if i == most-1 && len(frames) > most {
			p.line(p.paint(dim, fmt.Sprintf("      ... and %s", units.Plural(len(frames)-i, "more outer frame"))))
			return
		}
		p.line("      " + p.paint(dim, chart.ClipLeft(chart.Plain(f), p.width-6)))
	}
}

// noteWords are what people call the kinds of notes.
var noteWords = map[string]string{
	"compile_context": "compiled region", "user_metadata": "metadata", "internal_metadata": "allocator's metadata",
	"category": "profiler's category", "fx_node": "FX node", "forward": "forward call",
}

// rowNotes prints the first of a row's notes.
func (p *printer) rowNotes(notes []attribution.Note) {
	for _, n := range notes[:min(len(notes), 3)] {
		tail := fmt.Sprintf(": %s in %s", units.Bytes(n.Bytes), units.Plural(n.Count, "block"))
		text := noteWords[n.Kind] + " " + strings.Join(strings.Fields(chart.Plain(n.Text)), " ")
		p.line("      " + p.paint(cyan, chart.Clip(text, p.width-6-len([]rune(tail)))) + p.paint(dim, tail))
	}
}
