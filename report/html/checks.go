package html

import (
	"cmp"
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

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
