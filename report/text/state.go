package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// State prints what is live at one moment: the totals, whether they can be trusted, and the
// live blocks by what the query groups them by, or by call path.
func State(w io.Writer, a *attribution.Answer, o Options) error {
	if o.Brief {
		return briefState(a).doc(o).print(w)
	}
	d := newDoc(o)
	d.stateHead(a)
	d.gap()
	if a.Tree != nil {
		d.tree(a, o.Top)
	} else {
		d.groups(a, o.Top)
	}
	return d.print(w)
}

func (d *doc) stateHead(a *attribution.Answer) {
	told := a.Timeline.Recording.Told()
	t, b := a.State.Totals, told.At(a.State.Event)
	d.line(bold.of(fmt.Sprintf("reserved %s   active %s   allocated %s   requested %s",
		b.Reserved.Short(t.Reserved), b.Active.Short(t.Active), b.Allocated.Short(t.Allocated),
		b.Requested.Short(t.Requested))))
	device := chart.DeviceName(a.Timeline.Device) + when(a.Why != "", " (%s)", a.Why)
	name := chart.ClipLeft(chart.Plain(a.Snapshot.Name), 40)
	d.paragraph(plain.of(fmt.Sprintf("%s, %s %s", name, device, a.Moment.Name)), 0, 0)
	d.paragraph(plain.of(place(a)), 0, 0)
	d.window(a.Timeline)
	c := &a.Timeline.Checks
	tone := green
	switch {
	case c.Inconsistent() > 0 || c.Residual != 0:
		tone = red
	case a.Timeline.Recording.LeftOut() != 0:
		tone = dim
	}
	d.paragraph(tone.of(analyze.Verified(a.Timeline)), 0, 0)
	if n := len(a.State.Outside); n > 0 {
		d.line(units.Plural(n, "live block") + " in no known segment: the file contradicts itself")
	}
	if a.Snapshot.Partial != nil {
		d.line(plain.cut("only part of the file was read: " + a.Snapshot.Partial.Error()))
	}
}

// window says which part of the trace was read, if not all.
func (d *doc) window(t *timeline.Timeline) {
	if w := t.Window(); w != nil {
		d.paragraph(plain.of("a window: "+timeline.WindowWords(w)+" of the file; the first of it counts as 0 here"), 0, 0)
	}
}

// place says where in the trace a state lies.
func place(a *attribution.Answer) string {
	t, e := a.Timeline, a.State.Event
	switch {
	case t.Trace.Len() == 0:
		return "the dumped state; the file has no trace of this device"
	case e < 0:
		return "before the first of " + units.Plural(t.Trace.Len(), "event")
	}
	ev := t.Trace.At(e)
	s := fmt.Sprintf("right after event %s of 0 to %s (%s", units.Count(e), units.Count(t.Trace.Len()-1), ev.Action)
	if t.Trace.Len() == 1 {
		s = fmt.Sprintf("right after the only event, 0 (%s", ev.Action)
	}
	first := t.Trace.Time(0)
	return s + when(ev.Size > 0, " of %s", units.Bytes(ev.Size)) + ")" +
		when(first > 0 && ev.Time >= first, ", +%s", units.Micros(ev.Time-first))
}

// groups adds a row per group, and rows that close the sum.
func (d *doc) groups(a *attribution.Answer, top int) {
	h, deep := a.Holders, 8
	if a.Query.Internals {
		deep = maxTree
	}
	cols := []column{num("active", 10), num("share", 7), num("requested", 11).spared(2), num("blocks", 9), num("pinned", 10).spared(1)}
	pre := a.Timeline.Trace.Len() > 0 && h.Kept().PreTrace+h.LeftOut.PreTrace > 0
	if pre {
		cols = append(cols, num("pre-trace", 11).spared(3))
	}
	t := d.table(bold, append(cols, column{head: string(h.By), sep: "  ", wrap: 3})...)
	row := func(sum attribution.Sum, pinned, name string) {
		c := []any{units.Size(sum.Rounded), units.Percent(sum.Rounded, a.State.Totals.Active),
			units.Size(sum.Requested), units.Count(sum.Count), pinned}
		if pre {
			c = append(c, units.Size(sum.PreTrace))
		}
		t.row(append(c, name)...)
	}
	shown := h.Rows
	if top > 0 && len(shown) > top {
		shown = shown[:top]
	}
	for i := range shown {
		r := &shown[i]
		row(r.Sum, units.Bytes(r.Pinned), r.Name)
		switch {
		case r.Count == 1:
			t.line("      ", dim.cut(r.Largest.Where(a.Timeline.Trace.Len() > 0)))
		case h.By == attribution.ByStack:
			t.line("      ", dim.cut("largest: "+units.Bytes(r.Largest.Rounded)+", "+r.Largest.Place()))
		}
		for i, f := range r.Frames { // the inner end of the stack
			if i == deep-1 && len(r.Frames) > deep {
				t.line(dim.of("      " + more(len(r.Frames)-i, "outer frame")))
				break
			}
			t.line("      ", dim.cutLeft(f))
		}
		for _, n := range r.Notes[:min(len(r.Notes), 3)] {
			if n.Text == r.Name {
				continue
			}
			text := noteWords[n.Kind] + " " + strings.Join(strings.Fields(chart.Plain(n.Text)), " ")
			t.line("      ", cyan.cut(text), dim.of(": "+units.Bytes(n.Bytes)+" in "+units.Plural(n.Count, "block")))
		}
	}
	if left := h.Rows[len(shown):]; len(left) > 0 {
		var rest attribution.Sum
		for i := range left {
			rest.Add(left[i].Sum)
		}
		row(rest, "", fmt.Sprintf("... and %s more", units.Count(len(left))))
	}
	if h.LeftOut.Count > 0 {
		row(h.LeftOut, "", "(left out by --match and --exclude)")
	}
	all := h.Kept()
	all.Add(h.LeftOut)
	row(all, "", "total")
}

// noteWords are what people call the kinds of notes.
var noteWords = map[string]string{
	"compile_context": "compiled region", "user_metadata": "metadata", "internal_metadata": "allocator's metadata",
	"category": "profiler's category", "annotation": "annotation", "fx_node": "FX node", "fx_trace": "traced from",
	"forward": "forward call",
}

const (
	leastShare = 100  // calls below a hundredth of the whole are summed up
	maxTree    = 1000 // lines of a tree
	maxIndent  = 40
)

// tree prints live memory by call path like a flame graph from above. Calls that made only one
// call and allocated nothing themselves are joined with it.
func (d *doc) tree(a *attribution.Answer, top int) {
	by := map[bool]string{true: "modules", false: "calls"}[a.Holders.By == attribution.ByModule]
	table := d.table(bold, num("active", 10), num("share", 7), clipped(by+", outermost first"))
	out := a.Holders.LeftOut
	t := &tree{table, a.State.Totals.Active, top, d.height() + maxTree}
	t.below(a.Tree, 0)
	if out.Count > 0 {
		t.node(out.Rounded, 0, "(left out by --match and --exclude)")
	}
	t.node(a.Tree.Rounded+out.Rounded, 0, "total")
}

type tree struct {
	*table
	whole int64
	top   int
	end   int // of the lines
}

func (t *tree) node(bytes int64, depth int, text string) {
	t.row(units.Size(bytes), units.Percent(bytes, t.whole), strings.Repeat(" ", min(2*depth, maxIndent))+text)
}

// below prints what a node consists of.
func (t *tree) below(n *attribution.Node, depth int) {
	self, small, hidden := n.Self(), attribution.Sum{}, 0
	if self.Rounded > 0 && depth > 0 {
		t.node(self.Rounded, depth, "(allocated here)")
	}
	for i := range n.Children {
		c := &n.Children[i]
		if c.Rounded*leastShare < t.whole || t.top > 0 && i >= t.top || t.height() >= t.end {
			small.Add(c.Sum)
			hidden++
			continue
		}
		chain := []string{c.Name}
		for len(c.Children) == 1 && c.Self().Count == 0 {
			c = &c.Children[0]
			chain = append(chain, c.Name)
		}
		t.node(c.Rounded, depth, join(chain, t.width-19-min(2*depth, maxIndent)))
		if len(c.Children) > 0 {
			t.below(c, depth+1)
		}
	}
	if hidden > 0 {
		t.node(small.Rounded, depth, "... and "+units.Plural(hidden, "smaller call"))
	}
}

// join writes a chain of calls in n columns: the outermost one, and as many of the innermost
// ones as fit.
func join(chain []string, n int) string {
	short := make([]string, len(chain))
	for i, c := range chain {
		short[i] = frames.Bare(chart.Plain(c))
	}
	const sep = " > "
	if s := strings.Join(short, sep); chart.Width(s) <= n || len(chain) < 2 {
		return s
	}
	for from := 2; from < len(short); from++ {
		s := fmt.Sprintf("%s%s(%d more)%s%s", short[0], sep, from-1, sep, strings.Join(short[from:], sep))
		if chart.Width(s) <= n {
			return s
		}
	}
	last := len(short) - 1
	return fmt.Sprintf("(%d more)%s%s", last, sep, short[last])
}
