package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
)

//go:embed fit.tmpl
var fitTemplate string

//go:embed fit.css
var fitStyle string

// WriteFit writes what a program needs at other values as a page that needs no network and has no script. Equal results
// give equal bytes.
func WriteFit(w io.Writer, r *fit.Result) error {
	t, err := template.New("fit").Funcs(funcs(platform.Of(""))).Parse(fragmentsTemplate + fitTemplate)
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newFitPage(r)); err != nil {
		return fmt.Errorf("write the page of a prediction: %w", err)
	}
	_, err = b.WriteTo(w)
	return err
}

// fitDocument is what fit.tmpl shows.
type fitDocument struct {
	*fit.Result
	Policy          string
	Style           template.HTML
	Badge           badge
	Title, Next     string
	Files           string
	Laws            []string
	Parts           []fit.Part // of the last law
	PartsAt         int64
	Rows            []fitRow
	Proof, Unproven []string
	Needs           bool // a setting needs another release of torch
	Chart           fitChart
}

type fitRow struct {
	Values              []int64
	Reserved, Low, High string
	Allocated, Fits     string
	Recorded            bool
}

// fitChart is drawn in units of the picture, from the upper left corner.
type fitChart struct {
	Width, Height, Left, Right, Bottom, Top int
	Across, Up                              []fitTick
	Band, Reserved, Allocated               string // points of lines
	Dots, Recorded                          []fitDot
	Limit                                   *fitTick
	LimitName                               string
}

type fitTick struct {
	At   string
	Text string
}

// fitDot is a value; a prediction has bounds and what is allocated too.
type fitDot struct{ X, Y, Text, Low, High, Allocated string }

func newFitPage(r *fit.Result) *fitDocument {
	p := &fitDocument{Result: r, Style: template.HTML("<style>" + styles() + fitStyle + "</style>"), Title: verdict.Fit(r),
		Policy: fmt.Sprintf("default-src 'none'; style-src-elem '%s'; base-uri 'none'; form-action 'none'",
			hash(styles()+fitStyle)),
		Next: verdict.FitLimit(r), Proof: verdict.FitProof(r), Chart: newFitChart(r)}
	p.Needs = slices.ContainsFunc(r.Tried, func(t fit.Tried) bool { return t.Needs != "" })
	word, tone := verdict.FitWord(r)
	p.Badge = badge{tone.String(), signs[tone], word}
	var files []string
	for _, rec := range r.Recorded {
		files = append(files, text(rec.File))
	}
	p.Files = strings.Join(files, ", ")
	for i := range r.Laws {
		p.Laws = append(p.Laws, verdict.FitLaw(r, &r.Laws[i]))
	}
	if n := len(r.Laws); n > 0 {
		p.Parts, p.PartsAt = r.Laws[n-1].Categories, r.Laws[n-1].To
	}
	for i := range r.Predictions {
		v := &r.Predictions[i]
		row := fitRow{Values: v.Values, Reserved: units.Bytes(v.ReservedPeak), Allocated: units.Bytes(v.AllocatedPeak),
			Recorded: v.Recorded, Fits: verdict.FitAnswer(v)}
		if low, high := units.Bytes(v.ReservedLow), units.Bytes(v.ReservedHigh); low != high {
			row.Low, row.High = low, high
		}
		p.Rows = append(p.Rows, row)
	}
	for i := range r.Unproven {
		if i == mostUnproven {
			p.Unproven = append(p.Unproven, fmt.Sprintf("%s more", units.Plural(len(r.Unproven)-i, "site")))
			break
		}
		p.Unproven = append(p.Unproven, text(verdict.FitUnproven(&r.Unproven[i])))
	}
	return p
}

// mostUnproven is how many sites without a proven law are listed.
const mostUnproven = 12

func newFitChart(r *fit.Result) fitChart {
	peaks := chart.NewFitPeaks(r)
	c := fitChart{Width: 1000, Height: 400, Left: 86, Right: 986, Top: 14, Bottom: 352, LimitName: chart.FitLimit}
	limit := float64(max(peaks.Top, 1)) * 1.08
	x := func(v int64) string {
		return fmt.Sprintf("%.1f", float64(c.Left)+float64(c.Right-c.Left)*float64(v)/float64(peaks.Span))
	}
	y := func(bytes int64) string {
		return fmt.Sprintf("%.1f", float64(c.Bottom)-float64(c.Bottom-c.Top)*float64(bytes)/limit)
	}
	for _, t := range chart.CountTicks(peaks.Span, 12) {
		c.Across = append(c.Across, fitTick{x(t.Value), units.Count(t.Value)})
	}
	for _, t := range chart.ByteTicks(int64(limit), 6) {
		c.Up = append(c.Up, fitTick{y(t.Value), t.Label})
	}
	var low, high, reserved, allocated []string
	for _, p := range peaks.List {
		low, high = append(low, x(p.At)+","+y(p.ReservedLow)), append([]string{x(p.At) + "," + y(p.ReservedHigh)}, high...)
		reserved, allocated = append(reserved, x(p.At)+","+y(p.ReservedPeak)), append(allocated, x(p.At)+","+y(p.AllocatedPeak))
		c.Dots = append(c.Dots, fitDot{X: x(p.At), Y: y(p.ReservedPeak), Low: y(p.ReservedLow), High: y(p.ReservedHigh),
			Allocated: y(p.AllocatedPeak),
			Text:      fmt.Sprintf("%s %s: %s reserved", r.Names[0], units.Count(p.At), units.Bytes(p.ReservedPeak))})
	}
	c.Band = strings.Join(append(low, high...), " ")
	c.Reserved, c.Allocated = strings.Join(reserved, " "), strings.Join(allocated, " ")
	for _, rec := range peaks.Recorded {
		c.Recorded = append(c.Recorded, fitDot{X: x(rec.At), Y: y(rec.ReservedPeak),
			Text: fmt.Sprintf("%s %s: %s, recorded", r.Names[0], units.Count(rec.At), units.Bytes(rec.ReservedPeak))})
	}
	if n := r.Capacity.Reservable; n > 0 {
		c.Limit = &fitTick{y(n), units.Bytes(n)}
	}
	return c
}
