package html

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// table is a table of texts, as the template "table" shows it.
type table struct {
	Class   string
	Columns []column
	Rows    [][]string
	More    string // what the rows leave out
}

// column has the classes of its head and of the cells below.
type column struct{ Head, Class, Cell string }

func words(head string) column   { return column{Head: head} }
func sites(head string) column   { return column{head, "", "path"} }
func numbers(head string) column { return column{head, "n", "n"} }
func strong(head string) column  { return column{head, "n", "n b"} }

func newTable(class string, columns ...column) *table { return &table{Class: class, Columns: columns} }

func (t *table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// site makes a text that names a place in a program, by its end.
func site(s string) string { return chart.ClipLeft(text(s), frameText) }

// uses shows what the active bytes of a moment are for.
type uses struct {
	phase
	Most int64 // active bytes at any moment
	s    *snapshot.Snapshot
}

// Gist names the largest uses.
func (v uses) Gist() string {
	var list []string
	for i := range v.Uses[:min(len(v.Uses), 3)] {
		list = append(list, v.Uses[i].Category.String()+" "+units.Bytes(v.Uses[i].Rounded))
	}
	return v.Title + ": " + strings.Join(list, ", ")
}

// Mostly is where most of a use was allocated, "" where that is not recorded.
func (v uses) Mostly(x *category.Sum) string {
	most, _ := x.Site(v.s)
	return site(most)
}

// trust is the confidence that most of a category's bytes have.
func trust(x *category.Sum) string {
	best := category.None
	for c := range x.Trust {
		if x.Trust[c] > x.Trust[best] {
			best = category.Confidence(c)
		}
	}
	if best == category.None {
		return "-"
	}
	return best.String()
}

// checks lists what was checked, and how often it was wrong.
type checks struct {
	*timeline.Checks
	Rows   []finding.Fault
	Failed int // of Rows
}

func newChecks(c *timeline.Checks) checks {
	v := checks{Checks: c, Rows: append(c.Faults().Kinds, finding.Fault{Count: max(c.Residual, -c.Residual),
		What: "bytes by which the rebuilt end differs from the recorded one"})}
	for _, x := range v.Rows {
		if x.Count != 0 {
			v.Failed++
		}
	}
	return v
}

// turnoverView shows the sites of short-lived allocations.
type turnoverView struct {
	Summary string
	Table   *table
}

const maxTurnoverRows = 8

func newTurnover(r *attribution.Turnover) *turnoverView {
	if r.Short == 0 {
		return nil
	}
	v := &turnoverView{Summary: fmt.Sprintf("%s of %s allocations were freed within %d events: %s in total",
		units.Count(r.Short), units.Count(r.Allocs), attribution.ShortLife, units.Bytes(r.Bytes))}
	if rate, known := r.Rate(); known {
		v.Summary += fmt.Sprintf(", %s per second", units.Bytes(int64(min(rate, 1<<62))))
	}
	v.Summary += "."
	v.Table = newTable("", sites("Allocated at"), numbers("Short-lived"), numbers("of allocations"), numbers("Bytes"),
		numbers("Bytes × lifetime"))
	unit := "·s"
	if r.Micros == 0 {
		unit = "·events"
	}
	for _, x := range r.Sites[:min(len(r.Sites), maxTurnoverRows)] {
		at := cmp.Or(x.Site, (&attribution.Group{Stack: x.Stack}).Name())
		v.Table.add(site(at), units.Count(x.Short), units.Count(x.Allocs), units.Bytes(x.Bytes),
			units.Bytes(int64(min(x.Held, 1<<62)))+unit)
	}
	return v
}

// stepView shows the program's steps: what each reached, and what it left.
type stepView struct {
	Gist    string // in some words
	Summary string
	Bars    []stepBar
	Table   *table
}

// stepBar is one step; heights are percents of the highest peak.
type stepBar struct {
	Title, Peak, End string
	WarmUp           bool
}

const (
	maxStepBars = 200
	maxStepRows = 60
)

func newSteps(r *steps.Result, name func(event int) string) *stepView {
	n := len(r.Steps)
	if n == 0 {
		return nil
	}
	v := &stepView{}
	var most int64
	warm := 0
	var peaks, growths []int64
	for i := range r.Steps {
		s := &r.Steps[i]
		most = max(most, s.Peak)
		if s.WarmUp {
			warm++
			continue
		}
		peaks = append(peaks, s.Peak)
		growths = append(growths, s.Growth)
	}
	v.Gist = units.Plural(n, "step")
	v.Summary = fmt.Sprintf("%s steps, each an %s (%s, %s confidence).", units.Count(int64(n)), text(r.Unit),
		source(r.Source), r.Confidence)
	if r.Source == "annotations" {
		v.Summary = fmt.Sprintf("%s steps, by the program's own scopes %q.", units.Count(int64(n)), text(r.Unit))
	}
	if warm > 0 {
		v.Summary += fmt.Sprintf(" Reserved memory still grew in the first %s: warm-up.", units.Count(int64(warm)))
	}
	if len(peaks) > 0 {
		slices.Sort(growths)
		low, high := units.Bytes(slices.Min(peaks)), units.Bytes(slices.Max(peaks))
		if low != high {
			high = low + " to " + high
		}
		v.Summary += fmt.Sprintf(" The others peak at %s.", high)
		v.Gist += fmt.Sprintf(", with peaks of %s", high)
		if left := growths[len(growths)/2]; left > 0 {
			v.Summary += fmt.Sprintf(" Half of them leave %s or more behind.", units.Bytes(left))
		}
	}
	every := max((n+maxStepBars-1)/maxStepBars, 1)
	for i := 0; i < n; i += every {
		b := stepBar{WarmUp: r.Steps[i].WarmUp}
		var peak, end int64
		for k := i; k < min(i+every, n); k++ {
			peak, end = max(peak, r.Steps[k].Peak), max(end, r.Steps[k].End)
		}
		b.Peak, b.End = width(peak, most), width(end, most)
		b.Title = fmt.Sprintf("step %d: peak %s, end %s", i+1, units.Bytes(peak), units.Bytes(end))
		v.Bars = append(v.Bars, b)
	}
	v.Table = newTable("", numbers("Step"), words("Begins at"), numbers("Peak"), numbers("End"), numbers("Growth"),
		numbers("Kept to the end"), words("Note"))
	for i := range r.Steps {
		if i == maxStepRows {
			v.Table.More = fmt.Sprintf("%d more", n-i)
			break
		}
		s := &r.Steps[i]
		note := ""
		if s.WarmUp {
			note = "warm-up"
		}
		if s.Name != "" {
			note += " " + text(s.Name)
		}
		v.Table.add(strconv.Itoa(i+1), name(s.First), units.Bytes(s.Peak), units.Bytes(s.End), signed(s.Growth),
			units.Bytes(s.Survivors), note)
	}
	return v
}

// phaseView shows the parts of the program that have names.
type phaseView struct {
	Gist  string
	Table *table
	Notes []string
}

const maxPhaseRows = 60

func newPhaseView(d *analyze.Device) *phaseView {
	rows := chart.Phases(d.Phases, true)
	if len(rows) == 0 {
		return nil
	}
	heads := chart.PhaseColumns(false)
	v := &phaseView{
		Gist: units.Plural(len(rows), "part") + " of the program, the highest peaks first",
		Table: newTable("", sites(heads[0]), numbers(heads[1]), numbers(heads[2]), numbers(heads[3]),
			numbers(heads[4]), numbers(heads[5]))}
	for i, r := range rows {
		if i == maxPhaseRows {
			v.Table.More = fmt.Sprintf("%d more", len(rows)-i)
			break
		}
		v.Table.add(append([]string{site(r.Name)}, r.Cells(false)[1:]...)...)
		for _, n := range r.Notes {
			v.Notes = append(v.Notes, text(r.Name)+": "+text(n))
		}
	}
	return v
}

func source(s string) string {
	if s == "both" {
		return "seen in the stacks and in the program's scopes"
	}
	return "seen in the stacks"
}

func signed(n int64) string {
	if n > 0 {
		return "+" + units.Bytes(n)
	}
	return units.Bytes(n)
}
