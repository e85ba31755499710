package html

import (
	"cmp"
	_ "embed"
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
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

// Mostly is where most of a use was allocated, "" where that is not recorded.
func (v uses) Mostly(x *category.Sum) string {
	if len(x.Stacks) == 0 {
		return ""
	}
	return site(attribution.Site(v.s, x.Stacks[0]))
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
		at := cmp.Or(x.Site, "(no frames)")
		v.Table.add(site(at), units.Count(x.Short), units.Count(x.Allocs), units.Bytes(x.Bytes),
			units.Bytes(int64(min(x.Held, 1<<62)))+unit)
	}
	return v
}
