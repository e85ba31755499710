package html

import (
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

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
