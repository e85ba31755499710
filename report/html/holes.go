package html

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// holesView is a histogram of the free pieces of a moment.
type holesView struct {
	When    string
	Rows    []holeRow
	Scatter string
}

type holeRow struct{ From, Count, Bytes, Width string }

// newHoles is nil where nothing is free.
func newHoles(ph *phase) *holesView {
	holes := &ph.Frag.Holes
	first, last, most := len(holes), -1, int64(0)
	for i, h := range holes {
		if h.Count > 0 {
			first, last, most = min(first, i), i, max(most, h.Bytes)
		}
	}
	if last < 0 {
		return nil
	}
	v := &holesView{When: ph.When, Scatter: fmt.Sprintf("%.2f", ph.Frag.Scatter())}
	for i := last; i >= first; i-- {
		if h := holes[i]; h.Count > 0 {
			v.Rows = append(v.Rows, holeRow{units.Bytes(1 << i), units.Count(h.Count), units.Bytes(h.Bytes), percent(chart.Share(h.Bytes, most))})
		}
	}
	return v
}

// groupsView tells the memory of a moment by stream and pool.
type groupsView struct {
	When  string
	Table *table
}

// maxGroups bounds the rows: graphs can have a pool each.
const maxGroups = 12

func newGroups(ph *phase) *groupsView {
	groups := ph.Frag.Groups
	if len(groups) < 2 {
		return nil
	}
	t := newTable("groups", words("Stream, pool"), numbers("Reserved"), numbers("Active"), numbers("Waiting"),
		numbers("Releasable"), numbers("Split"), numbers("Largest piece"))
	shown := min(len(groups), maxGroups)
	for _, g := range groups[:shown] {
		t.add(fmt.Sprintf("stream %d, %s", g.Stream, chart.Pool(snapshot.KindUnknown, g.Pool, 0, false)), units.Bytes(g.Reserved),
			units.Bytes(g.Active), units.Bytes(g.Pending), units.Bytes(g.Releasable), units.Bytes(g.Split), units.Bytes(g.Largest))
	}
	if more := groups[shown:]; len(more) > 0 {
		var bytes int64
		for _, g := range more {
			bytes += g.Reserved
		}
		t.More = fmt.Sprintf("%s more with %s reserved", units.Count(int64(len(more))), units.Bytes(bytes))
	}
	return &groupsView{ph.When, t}
}

type withoutRow struct{ Site, Blocks, Bytes, Hostage, Returned, Segments string }

func newWithout(t *timeline.Timeline, ph *phase) []withoutRow {
	var out []withoutRow
	name := attribution.Names(ph.Live)
	for _, x := range fragmentation.Rank(t, ph.State, &ph.Frag, 5) {
		out = append(out, withoutRow{site(name(x.Stack)), units.Count(x.Blocks), units.Bytes(x.Bytes),
			units.Bytes(x.Hostage), units.Bytes(x.Returned), units.Count(int64(x.Segments))})
	}
	return out
}
