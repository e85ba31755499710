package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/address"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// At prints who lives at an address: what it is at the moment, what lies beside it, and its owners in order.
func At(w io.Writer, a *address.Answer, o Options) error {
	if o.Brief {
		return briefAt(a).doc(o).print(w)
	}
	return at(a, newDoc(o)).print(w)
}

// AtMarkdown prints what At prints for an issue or a chat.
func AtMarkdown(w io.Writer, a *address.Answer) error {
	d := newDoc(Options{})
	d.markdown, d.width = true, 1<<20
	return at(a, d).print(w)
}

func at(a *address.Answer, d *doc) *doc {
	d.margin = 9
	d.paragraph(bold.of(a.Headline), 0, 0)
	name := chart.ClipLeft(chart.Plain(a.File), 40)
	d.paragraph(plain.of(fmt.Sprintf("%s, %s %s", name, chart.DeviceName(a.Device)+when(a.Why != "", " (%s)", a.Why),
		a.Moment)), 0, 0)
	d.window(a.Timeline)
	switch {
	case a.Events == 0:
		d.line("the dumped state; the file has no trace of this device, so that other owners are not known")
	case !a.Balanced:
		d.line(red.of("the file contradicts itself"))
	default:
		d.paragraph(green.of(analyze.Verified(a.Timeline)), 0, 0)
	}
	if a.Partial != "" {
		d.line(plain.of("only part of the file was read: " + a.Partial))
	}
	d.apart("Why", a.Reasons, 0)
	d.gap()
	if s := a.Segment; s != nil {
		d.labeled("Segment", cells(plain.of(segmentWords(s)+": byte "+units.Count(a.Into())+" of it")),
			cells(dim.of(lasts(s))))
	}
	d.neighbor("Below", a.Below, "ends", "below")
	d.neighbor("Above", a.Above, "begins", "above")
	d.gap()
	switch n := a.OwnersN; {
	case n == 0:
		d.line(bold.of("No block of the file ever had this address."))
	case n == len(a.Owners):
		d.line(bold.of(units.Plural(n, "block") + " of the file had this address"))
	default:
		d.line(bold.of(fmt.Sprintf("%s of the file had this address; these are nearest to the moment",
			units.Plural(n, "block"))))
	}
	for i := range a.Owners {
		d.owner(a, &a.Owners[i])
	}
	if n := len(a.Segments); n > 1 || n == 1 && a.Segment == nil {
		d.gap()
		var lines [][]cell
		for i := range a.Segments {
			s := &a.Segments[i]
			lines = append(lines, cells(plain.of(segmentWords(s)), dim.of(", "+lasts(s))))
		}
		d.labeled("Segments", lines...)
	}
	return d
}

func segmentWords(s *address.Segment) string {
	return fmt.Sprintf("%s, %s, stream %s, %s", s.Address, units.Bytes(s.Size), s.Stream, s.Pool) +
		when(s.Kind != "unknown", ", %s requests", s.Kind) + when(s.Expandable, ", expandable")
}

func lasts(s *address.Segment) string {
	from := "since event " + units.Count(s.From)
	if s.From < 0 {
		from = "from before the trace"
	}
	if s.To == nil {
		return from
	}
	return from + " until event " + units.Count(*s.To)
}

func (d *doc) neighbor(label string, n *address.Neighbor, verb, side string) {
	if n != nil {
		d.labeled(label, cells(plain.of(fmt.Sprintf("%s, %s, %s", n.Name, units.Bytes(n.Rounded), chart.Plain(n.Site))),
			fmt.Sprintf(": %s %s bytes %s", verb, units.Count(n.Distance), side)))
	}
}

// owner adds one block that had the address: where it was, when and by whom it was allocated and freed.
func (d *doc) owner(a *address.Answer, o *address.Owner) {
	lines := [][]cell{cells(bold.of(fmt.Sprintf("%s, %s", o.Name, units.Bytes(o.Rounded))),
		when(o.Requested != o.Rounded, " (%s bytes requested)", units.Count(o.Requested))+
			when(o.Segment == "", ", in no known segment")+
			when(o.Segment != "", ", stream %s, %s", o.Stream, o.Pool)+when(o.Category != "", ", %s", o.Category))}
	add := func(word, text string) { lines = append(lines, cells(plain.of(pad(word+" ", 10)+text))) }
	if a.Events > 0 || o.Site != "" {
		add("allocated", when(a.Events > 0, "%s by ", a.At(o.Born, o.BornTime))+o.Site)
	}
	switch {
	case o.FreeRequested != nil && o.Freed != nil && *o.FreeRequested == *o.Freed:
		add("freed", a.At(*o.Freed, o.FreedTime)+when(o.FreeSite != "", " by %s", o.FreeSite))
	case o.FreeRequested != nil:
		add("freed", a.At(*o.FreeRequested, o.FreeRequestedTime)+when(o.FreeSite != "", " by %s", o.FreeSite))
		if o.Freed != nil {
			add("completed", a.At(*o.Freed, o.FreedTime))
		} else {
			add("completed", "not yet: it waits for another stream")
		}
	case o.Freed != nil:
		add("completed", a.At(*o.Freed, o.FreedTime))
	case a.Events > 0:
		add("freed", "never in this trace")
	}
	add("address", fmt.Sprintf("byte %s of it", units.Count(o.Offset))+when(o.Beyond, ", behind the requested bytes"))
	for _, n := range o.Notes {
		add(noteWords[n.Kind], strings.Join(strings.Fields(n.Text), " "))
	}
	for _, n := range o.Annotations {
		add("annotated", a.At(n.Event, 0)+": "+strings.Join(strings.Fields(n.Text), " "))
	}
	if o.When == "now" || o.Asked {
		for _, f := range o.Frames[:min(len(o.Frames), 8)] {
			frame := dim.cutLeft(f)
			frame.name = true
			lines = append(lines, cells("  ", frame))
		}
	}
	d.labeled(o.When, lines...)
}
