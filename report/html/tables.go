package html

import (
	"cmp"
	_ "embed"
	"fmt"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
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
	Title, When string
	Total       string
	Parts       []part
	Rows        []useRow
}

type useRow struct {
	Class, Name, Bytes, Share, Blocks, Trust, Site string
}

func newUses(s *snapshot.Snapshot, ph *phase, most int64) uses {
	v := uses{Title: ph.Title, When: ph.When, Total: units.Bytes(ph.State.Totals.Active)}
	for _, x := range ph.Uses {
		class := chart.UseSlot(x.Category).Class()
		name := x.Category.String()
		v.Parts = append(v.Parts, part{class, name, units.Bytes(x.Rounded), units.Percent(x.Rounded, ph.State.Totals.Active), percent(chart.Share(x.Rounded, most)), ""})
		row := useRow{Class: class, Name: name, Bytes: units.Bytes(x.Rounded), Share: units.Percent(x.Rounded, ph.State.Totals.Active), Blocks: units.Count(x.Count), Trust: trust(&x)}
		for i, stack := range x.Stacks {
			if i > 0 {
				break
			}
			row.Site = site(attribution.Site(s, stack))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
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
	Summary string
	Rows    []checkRow
}

type checkRow struct {
	Name, Count string
	Bad         bool
}

func newChecks(t *timeline.Timeline) checks {
	v := checks{Summary: "Integrity checks: all passed"}
	bad := 0
	for _, c := range chart.Checks(t) {
		if c.Count != 0 {
			bad++
		}
		v.Rows = append(v.Rows, checkRow{c.Name, units.Count(c.Count), c.Count != 0})
	}
	if bad > 0 {
		v.Summary = fmt.Sprintf("Integrity checks: %d of %d failed", bad, len(v.Rows))
	}
	v.Rows = append(v.Rows,
		checkRow{Name: "pre-trace blocks (no error: the trace begins after them)", Count: units.Count(t.Checks.PreTraceBlocks)},
		checkRow{Name: "earlier dumps compared", Count: units.Count(t.Checks.Markers)},
		checkRow{Name: "events with an unknown action, left out", Count: units.Count(t.Checks.UnknownActions)})
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
	v.Table = newTable("", sites("Allocated at"), numbers("Short-lived"), numbers("of allocations"), numbers("Bytes"), numbers("Bytes × lifetime"))
	unit := "·s"
	if r.Micros == 0 {
		unit = "·events"
	}
	for _, x := range r.Sites[:min(len(r.Sites), maxTurnoverRows)] {
		at := cmp.Or(x.Site, "(no frames)")
		v.Table.add(site(at), units.Count(x.Short), units.Count(x.Allocs), units.Bytes(x.Bytes), units.Bytes(int64(min(x.Held, 1<<62)))+unit)
	}
	return v
}

//go:embed ledger.tmpl
var ledgerTemplate string

// accountView is where all of a device's memory is, or why that cannot be said.
type accountView struct {
	Why   string
	Table *table
}

func newAccount(a *analyze.Account) *accountView {
	if a == nil {
		return nil
	}
	v := &accountView{Why: text(a.Why)}
	if l := a.Ledger; l != nil {
		v.Table = newTable("ledger", words(units.Bytes(l.Total)+" in total"), numbers("Bytes"), numbers("Share"))
		for _, r := range l.Rows {
			v.Table.add(chart.LedgerWords[r.Row], units.Bytes(r.Bytes), units.Percent(r.Bytes, l.Total))
		}
	}
	return v
}
