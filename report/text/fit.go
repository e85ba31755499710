package text

import (
	"fmt"
	"io"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
)

// Fit prints what a program needs at other values.
func Fit(w io.Writer, r *fit.Result, o Options) error {
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
	word, tone := "Predicted", finding.Neutral
	switch {
	case r.Limit == nil:
	case r.Largest == nil:
		word, tone = "Full", finding.Bad
	default:
		word, tone = "Fits", finding.Good
	}
	d.heading(word, tone, verdict.Fit(r), 0)
	if next := verdict.FitLimit(r); next != "" {
		d.sayings("Next", []string{next})
	}
	var laws []string
	for i := range r.Laws {
		s := &r.Laws[i]
		text := "peak = " + s.Law
		if len(r.Laws) > 1 {
			to := when(s.To > s.From, " to %s", units.Count(s.To))
			text = fmt.Sprintf("%s %s%s: %s", r.Names[0], units.Count(s.From), to, text)
		}
		laws = append(laws, text+", "+verdict.FitPlace(&s.Peak))
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
		u := &r.Unproven[i]
		unproven = append(unproven, fmt.Sprintf("%s (%s to %s) at %s: %s", units.Bytes(u.Bytes), units.Bytes(u.Low),
			units.Bytes(u.High), u.Site, u.Why))
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
		fits := ""
		if p.Fits != nil {
			fits = map[bool]string{true: "yes", false: "no"}[*p.Fits]
			if !p.Sure {
				fits = map[bool]string{true: "probably", false: "probably not"}[*p.Fits]
			}
		}
		t.row(append(row, units.Size(p.ReservedPeak), low, high, units.Size(p.AllocatedPeak), fits,
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
