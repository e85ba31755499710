package text

import (
	"fmt"
	"io"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
)

// Fit prints what a program needs at other values.
func Fit(w io.Writer, r *fit.Result, o Options) error {
	if o.Brief {
		return briefFit(r).doc(o).print(w)
	}
	d := newDoc(o)
	d.predicted(r)
	return d.print(w)
}

// FitMarkdown prints what Fit prints for an issue or a chat.
func FitMarkdown(w io.Writer, r *fit.Result, o Options) error {
	d := newDoc(o)
	d.markdown, d.heads, d.width = true, 2, 1<<20
	d.predicted(r)
	return d.print(w)
}

func (d *doc) predicted(r *fit.Result) {
	d.margin = 10
	word, tone := verdict.FitWord(r)
	d.heading(word, tone, verdict.Fit(r), 0)
	if next := verdict.FitLimit(r); next != "" {
		d.sayings("Next", []string{next})
	}
	var laws []string
	for i := range r.Laws {
		laws = append(laws, verdict.FitLaw(r, &r.Laws[i]))
	}
	d.sayings("Law", laws)
	d.gap()
	d.predictions(r)
	if n := len(r.Laws); n > 0 {
		d.gap()
		d.lawParts(r, &r.Laws[n-1])
	}
	if len(r.Tried) > 0 {
		d.gap()
		d.tried(r)
	}
	d.sayings("Proof", verdict.FitProof(r))
	var unproven []string
	for i := range r.Unproven {
		if i == mostUnproven {
			unproven = append(unproven, more(len(r.Unproven)-i, "site"))
			break
		}
		unproven = append(unproven, verdict.FitUnproven(&r.Unproven[i]))
	}
	d.sayings("Unproven", unproven)
	d.sayings("Mind", r.Notes)
}

// sayings adds texts under a label, behind an empty line.
func (d *doc) sayings(label string, texts []string) {
	if len(texts) > 0 {
		d.gap()
	}
	for len(texts) > 0 {
		n := 1
		if d.markdown { // one list
			n = len(texts)
		}
		d.list(label, texts[:n], 0)
		label, texts = "", texts[n:]
	}
}

// mostUnproven is how many sites without a proven law are listed.
const mostUnproven = 6

// predictions adds a row for each value.
func (d *doc) predictions(r *fit.Result) {
	cols := []column{num(r.Names[0], 9)}
	if len(r.Names) > 1 {
		cols = append(cols, num(r.Names[1], 9))
	}
	cols = append(cols, num("reserved", 10), num("at least", 10).spared(2), num("at most", 10).spared(2),
		num("allocated", 10).spared(1), column{sep: "  ", head: "fits", width: -12}, rest(""))
	t := d.table(plain, cols...)
	for i := range r.Predictions {
		p := &r.Predictions[i]
		var row []any
		for _, v := range p.Values {
			row = append(row, units.Count(v))
		}
		low, high := units.Size(p.ReservedLow).String(), units.Size(p.ReservedHigh).String()
		if low == high {
			low, high = "", ""
		}
		t.row(append(row, units.Size(p.ReservedPeak), low, high, units.Size(p.AllocatedPeak), verdict.FitAnswer(p),
			when(p.Recorded, "recorded"))...)
	}
}

// lawParts adds what the categories add to the last law.
func (d *doc) lawParts(r *fit.Result, s *fit.Stretch) {
	t := d.table(plain, num(fmt.Sprintf("at %s", units.Count(s.To)), 10), column{sep: "  ", head: "of the peak", width: -18},
		rest("law"))
	for i := range s.Categories {
		c := &s.Categories[i]
		t.row(units.Size(c.Bytes), c.Category.String(), c.Law)
	}
}

// tried adds the largest value for each setting.
func (d *doc) tried(r *fit.Result) {
	t := d.table(plain, num("largest", 9), rest("settings"))
	for i := range r.Tried {
		v := &r.Tried[i]
		name := v.Text
		if name == "" {
			name = "the defaults"
		}
		t.row(units.Count(v.Largest), name+when(v.Needs != "", " (torch %s or later)", v.Needs))
	}
}
