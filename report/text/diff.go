package text

import (
	"fmt"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
)

// Diff prints what two sides differ in, with a table by a kind: o.Top rows of it, 0 for all.
func Diff(w io.Writer, r *diff.Result, by attribution.Kind, o Options) error {
	if o.Brief {
		return briefDiff(r).doc(o).print(w)
	}
	d := newDoc(o)
	d.diff(r, by, o)
	return d.print(w)
}

// DiffMarkdown prints what Diff prints for an issue or a chat.
func DiffMarkdown(w io.Writer, r *diff.Result, by attribution.Kind, o Options) error {
	d := newDoc(o)
	d.markdown, d.heads, d.width = true, 2, 1<<20
	d.diff(r, by, o)
	return d.print(w)
}

func (d *doc) diff(r *diff.Result, by attribution.Kind, o Options) {
	word, tone := verdict.Changed(r)
	d.heading(word, tone, verdict.Difference(r), 0)
	if why := verdict.WhyDifferent(r, o.All); len(why) > 0 {
		d.apart("Why", why, 0)
	}
	var notes []string
	for i := range r.Guards {
		notes = append(notes, verdict.GuardOf(&r.Guards[i]))
	}
	d.apart("Mind", notes, 0)

	d.gap()
	d.sides(r)
	d.gap()
	d.changes(r, by, o)
	if steps := r.Steps(); steps > 0 {
		d.gap()
		d.steps(r, steps, o)
	}
	d.gap()
	d.labeled("Matched", cells(matched(r)))
}

// sides are the two sides and their totals.
func (d *doc) sides(r *diff.Result) {
	for i, f := range []*footprint.Footprint{r.A, r.B} {
		words := verdict.SideOf(f, []*diff.Spread{r.SpreadA, r.SpreadB}[i])
		d.labeled("AB"[i:i+1], cells(plain.name(f.Name), ", "+words))
	}
	d.gap()
	t := d.table(bold, left("", 10), num("A", 11), num("B", 11), num("B - A", 12))
	row := func(name string, a, b int64) {
		t.row(name, units.Size(a), units.Size(b), signed(a, b))
	}
	a, b := &r.A.Totals, &r.B.Totals
	row("reserved", a.Reserved, b.Reserved)
	row("active", a.Active, b.Active)
	row("allocated", a.Allocated, b.Allocated)
	row("requested", a.Requested, b.Requested)
}

// signed is a difference, in the color of what it means.
func signed(a, b int64) cell {
	switch {
	case a == b:
		return dim.of("=")
	case b > a:
		return yellow.of(units.Signed(b - a))
	}
	return green.of(units.Signed(b - a))
}

// changes is the table of what differs, and a row for what does not.
func (d *doc) changes(r *diff.Result, by attribution.Kind, o Options) {
	t := d.table(bold, num("A", 10), num("B", 10), num("B - A", 12), column{head: "", sep: " ", width: -6},
		column{head: string(by), sep: "  ", wrap: 3})
	all := r.Table(by)
	var same, rest, total diff.Row
	shown := 0
	for i := range all {
		v := &all[i]
		total.A, total.B = total.A+v.A, total.B+v.B
		switch {
		case v.State == diff.Same && !o.All:
			same.A, same.B = same.A+v.A, same.B+v.B
			continue
		case o.Top > 0 && shown == o.Top && !o.All:
			rest.A, rest.B = rest.A+v.A, rest.B+v.B
			continue
		}
		shown++
		d.change(t, v, v.Name)
	}
	if rest.A != 0 || rest.B != 0 {
		d.change(t, &rest, "(others)")
	}
	if same.A != 0 || same.B != 0 {
		d.change(t, &same, "(the same on both sides)")
	}
	d.change(t, &total, "total")
}

func (d *doc) change(t *table, v *diff.Row, name string) {
	state := dim.of("")
	switch v.State {
	case diff.Came, diff.Left:
		state = cyan.of(string(v.State))
	}
	if v.Noise {
		state = dim.of("~")
	}
	t.row(sizeOrDash(v.A), sizeOrDash(v.B), signed(v.A, v.B), state, name)
}

func sizeOrDash(n int64) cell {
	if n == 0 {
		return dim.of("-")
	}
	return plain.of(units.Bytes(n))
}

// steps compares the peaks of steps, by their number.
func (d *doc) steps(r *diff.Result, n int, o Options) {
	var differs []int
	for i := range n {
		if r.A.Steps[i].Peak != r.B.Steps[i].Peak {
			differs = append(differs, i)
		}
	}
	if len(differs) == 0 {
		d.labeled("Steps", cells(fmt.Sprintf("the peaks of %s are equal", units.Plural(n, "step"))))
		return
	}
	const most = 8
	shown := differs
	if len(shown) > most && !o.All {
		shown = slices.Concat(differs[:most/2], differs[len(differs)-most/2:])
	}
	t := d.table(bold, num("step", 8), num("peak of A", 11), num("peak of B", 11), num("B - A", 12))
	for at, i := range shown {
		if at > 0 && at == most/2 && len(shown) < len(differs) {
			t.line(dim.of(more(len(differs)-len(shown), "step")))
		}
		t.row(units.Count(i), units.Size(r.A.Steps[i].Peak), units.Size(r.B.Steps[i].Peak),
			signed(r.A.Steps[i].Peak, r.B.Steps[i].Peak))
	}
}

// matched says by what code of one side was known on the other.
func matched(r *diff.Result) string {
	if exact := r.Matched[diff.Exact]; exact.A == r.A.Totals.Active && exact.B == r.B.Totals.Active {
		return "all of both sides by the same lines"
	}
	s := ""
	for h := diff.Exact; ; h-- {
		m := r.Matched[h]
		if m.A != 0 || m.B != 0 {
			if s != "" {
				s += "; "
			}
			if s += units.Bytes(m.A); m.A != m.B {
				s += " and " + units.Bytes(m.B)
			}
			s += " " + verdict.HowOf(h)
		}
		if h == diff.Alone {
			return s
		}
	}
}
