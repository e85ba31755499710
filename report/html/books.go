package html

import (
	"cmp"
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// books lists what was checked, and how often it was wrong.
type books struct {
	Summary string
	Rows    []checkRow
}

type checkRow struct {
	Name, Count string
	Bad         bool
}

func newBooks(t *timeline.Timeline) books {
	v := books{Summary: "Checks: all good"}
	bad := 0
	for _, c := range chart.Checks(t) {
		if c.Count != 0 {
			bad++
		}
		v.Rows = append(v.Rows, checkRow{c.Name, units.Count(c.Count), c.Count != 0})
	}
	if bad > 0 {
		v.Summary = fmt.Sprintf("Checks: %d of %d found something", bad, len(v.Rows))
	}
	v.Rows = append(v.Rows,
		checkRow{Name: "pre-trace blocks, which is no fault: the trace begins after them", Count: units.Count(t.Checks.PreTraceBlocks)},
		checkRow{Name: "earlier dumps that were compared", Count: units.Count(t.Checks.Markers)},
		checkRow{Name: "events of an action that snapana does not know, left out", Count: units.Count(t.Checks.UnknownActions)})
	return v
}

// turnoverView shows the sites whose memory came and went at once.
type turnoverView struct {
	Summary string
	Table   *table
}

const maxTurnoverRows = 8

func newTurnover(r *attribution.Turnover) *turnoverView {
	if r.Short == 0 {
		return nil
	}
	v := &turnoverView{Summary: fmt.Sprintf("%s of %s allocations were freed within %d events: %s in all",
		units.Count(r.Short), units.Count(r.Allocs), attribution.ShortLife, units.Bytes(r.Bytes))}
	if rate, known := r.Rate(); known {
		v.Summary += fmt.Sprintf(", %s a second", units.Bytes(int64(min(rate, 1<<62))))
	}
	v.Summary += "."
	v.Table = newTable("", sites("Allocated at"), numbers("Freed at once"), numbers("of allocations"), numbers("Bytes"), numbers("Bytes × time held"))
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
