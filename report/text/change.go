package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
)

// Change prints what changes of the program come to. why says why it is about that device, if anything.
func Change(w io.Writer, a *change.Answer, why string, o Options) error {
	if o.Brief {
		return briefChange(a).doc(o).print(w)
	}
	d := newDoc(o)
	d.margin = 10
	d.changeHead(a, why)
	d.list("Answer", []string{a.Text}, 0)
	d.gap()
	t := d.table(plain, num("allocated", 9), column{head: "change", sep: " ", width: 6},
		column{head: "reserved", sep: " ", width: 9},
		column{head: "change", sep: " ", width: 6}, rest("peaks"))
	b, n := &a.Before, &a.After
	t.row(units.Size(b.AllocatedPeak), "-", units.Size(b.ReservedPeak), "-", "as recorded"+fitText(b))
	t.row(units.Size(n.AllocatedPeak), percent(n.AllocatedPeak, b.AllocatedPeak), units.Size(n.ReservedPeak),
		percent(n.ReservedPeak, b.ReservedPeak), "changed"+fitText(n))
	d.gap()
	d.proof(a)
	for i := range a.Changes {
		d.changed(&a.Changes[i])
	}
	if f := n.First; f != nil {
		d.list("Failure", []string{failedText("With the changes", f)}, 0)
	}
	d.cutNote(a)
	return d.print(w)
}

// proof says how far the figures can be trusted, and why no further.
func (d *doc) proof(a *change.Answer) {
	if text := verdict.ChangeProof(a); text != "" {
		d.list("Proof", []string{text}, 0)
	}
	for i := range a.Doubts {
		d.list("", []string{a.Doubts[i].Text}, 0)
	}
}

// cutNote says that a request failed, so that the recording cannot tell all.
func (d *doc) cutNote(a *change.Answer) {
	if a.Cut {
		d.list("Note", []string{"A request failed in the recording: what would have come behind it is not known, and may " +
			"need more."}, 0)
	}
}

// Search prints which changes make a run fit.
func Search(w io.Writer, f *change.Found, why string, o Options) error {
	if o.Brief {
		return briefSearch(f).doc(o).print(w)
	}
	d := newDoc(o)
	d.margin = 10
	d.changeHead(&f.Answer, why)
	d.list("Answer", []string{f.Text}, 0)
	d.gap()
	b := &f.Before
	t := d.table(plain, num("reserved", 9), column{head: "change", sep: " ", width: 6}, num("slower", 7), rest("changes"))
	t.row(units.Size(b.ReservedPeak), "-", "-", "as recorded"+fitText(b))
	for i := range f.Tried {
		s := &f.Tried[i]
		t.row(units.Size(s.After.ReservedPeak), percent(s.After.ReservedPeak, b.ReservedPeak), slower(s.Time),
			strings.Join(s.Changes, " ")+fitText(&s.After))
	}
	d.gap()
	d.proof(&f.Answer)
	for i := range f.Changes {
		d.changed(&f.Changes[i])
	}
	d.cutNote(&f.Answer)
	d.list("Slower", []string{"is a rough estimate, by what is computed twice, copied or launched more"}, 0)
	label := "Left out"
	for i := range f.Refused {
		d.list(label, []string{f.Refused[i].Text}, 0)
		label = ""
	}
	return d.print(w)
}

// slower is a share of a step's time, to the percent.
func slower(share float64) string {
	if share < 0.005 {
		return "-"
	}
	return fmt.Sprintf("~%.0f%%", 100*share)
}

// changeHead says what was replayed.
func (d *doc) changeHead(a *change.Answer, why string) {
	d.linef("%s, GPU %d: %s events, %s requests", chart.ClipLeft(chart.Plain(a.File), 60), a.Device,
		units.Count(a.Events), units.Count(a.Accuracy.Requests))
	if why != "" {
		d.list("", []string{when(true, "(GPU %d %s)", a.Device, why)}, 0)
	}
	d.list("Replay", []string{accuracyText(&a.Accuracy)}, 0)
	if a.Anew {
		d.list("Start", []string{"what was there before the trace is allocated again, in both replays"}, 0)
	}
	d.list("Device", []string{capacityText(&a.Capacity)}, 0)
	if a.Doubt != "" {
		d.list("Note", []string{a.Doubt}, 0)
	}
}

// changed prints one change, with what it assumes and costs.
func (d *doc) changed(c *change.Applied) {
	d.list("Change", []string{c.Change + ": " + c.Text}, 0)
	label := "Assumes"
	for _, s := range c.Assumptions {
		d.list(label, []string{s.Text}, 0)
		label = ""
	}
	if cost := verdict.SayCost(&c.Cost); cost != "" {
		d.list("Costs", []string{"an estimate: " + cost}, 0)
	}
}

// fitText says whether a replay fits, behind its name.
func fitText(o *change.Outcome) string {
	switch {
	case o.Served == nil:
		return ""
	case !*o.Served && o.Spare >= 0:
		return ", does not fit: a request fails"
	case !*o.Served:
		return ", does not fit: " + units.Bytes(-o.Spare) + " too little"
	case o.Short > 0:
		return ", fits up to the failure, " + units.Bytes(o.Short) + " too little behind it"
	case o.Spare < 0:
		return ", fits when the cache is freed in between"
	}
	return ", fits with " + units.Bytes(o.Spare) + " to spare"
}
