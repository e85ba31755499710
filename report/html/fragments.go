package html

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// fragments shows the ledger reserved = active + releasable + split of each moment, and what
// keeps segments at the one that matters most.
type fragments struct {
	Ledgers  []ledger
	PinTitle string
	Pins     []chart.Pin
	MorePins int
	Holes    *holesView  // of the moment that matters most, as are the next two
	Groups   *groupsView // nil where there is one stream and one pool
	Without  *table      // what to free, nil for nothing
}

// ledger is one bar; the widths are percents of the most that is reserved at any moment.
type ledger struct {
	*phase
	Parts   []part
	Classes []part // of what is not allocated
}

// part is a part of a bar; its share is of the bar, its width of the longest one.
type part struct {
	Class, Name, Bytes, Share, Width, Meaning string
}

func newPart(class, name string, bytes, all, most int64, meaning string) part {
	return part{class, name, units.Bytes(bytes), units.Percent(bytes, all), width(bytes, most), meaning}
}

func newFragments(t *timeline.Timeline, phases []phase, pins int) fragments {
	var v fragments
	var most int64
	for _, ph := range phases {
		most = max(most, ph.Frag.Reserved)
	}
	var worst *phase
	for i := range phases {
		ph := &phases[i]
		v.Ledgers = append(v.Ledgers, newLedger(ph, most))
		if worst == nil || ph.Frag.Split > worst.Frag.Split {
			worst = ph
		}
	}
	for i := range phases {
		if phases[i].OOM && len(phases[i].Frag.Pins) > 0 {
			worst = &phases[i]
		}
	}
	if worst == nil {
		return v
	}
	v.Holes, v.Groups = newHoles(worst), newGroups(worst)
	v.Without = newWithout(t, worst)
	v.Pins, v.MorePins = chart.Pins(t, worst.Moment, pins)
	v.PinTitle = strings.ToLower(worst.Title)
	if worst.When != "" {
		v.PinTitle += " (" + worst.When + ")"
	}
	return v
}

func newLedger(ph *phase, most int64) ledger {
	f := &ph.Frag
	v := ledger{phase: ph}
	for _, k := range chart.FreeKinds {
		if n := k.Bytes(&f.Classes); n > 0 {
			v.Classes = append(v.Classes, newPart("", k.Name, n, f.Classes.Sum(), most, k.Means))
		}
	}
	v.Parts = []part{
		newPart("k-live", "Active", f.Active, f.Reserved, most, "in live blocks"),
		newPart("k-releasable", "Releasable", f.Releasable, f.Reserved, most,
			"free in segments without a live block: empty_cache() returns it"),
		newPart("k-split", "Split", f.Split, f.Reserved, most,
			"free in segments with live blocks: only a request that fits a gap can use it"),
	}
	return v
}

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
			v.Rows = append(v.Rows, holeRow{units.Bytes(1 << i), units.Count(h.Count), units.Bytes(h.Bytes),
				width(h.Bytes, most)})
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
		t.add(fmt.Sprintf("stream %d, %s", g.Stream, chart.Pool(snapshot.KindUnknown, g.Pool, 0, false)),
			units.Bytes(g.Reserved), units.Bytes(g.Active), units.Bytes(g.Pending), units.Bytes(g.Releasable),
			units.Bytes(g.Split), units.Bytes(g.Largest))
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

// newWithout says what to free so that segments are released.
func newWithout(t *timeline.Timeline, ph *phase) *table {
	list := fragmentation.Rank(t, ph.State, &ph.Frag, 5)
	if len(list) == 0 {
		return nil
	}
	out := newTable("", sites("All blocks allocated at"), numbers("Blocks"), numbers("Bytes"),
		numbers("Free beside them"), strong("Returned so far"), numbers("Segments"))
	name := attribution.Names(ph.Live)
	for _, x := range list {
		out.add(site(name(x.Stack)), units.Count(x.Blocks), units.Bytes(x.Bytes), units.Bytes(x.Hostage),
			units.Bytes(x.Returned), units.Count(int64(x.Segments)))
	}
	return out
}

// freeView draws what is reserved and not allocated over the trace, by what keeps it from use.
type freeView struct {
	Plot template.HTML
	Keys []*chart.FreeKind
	Most string
}

// newFree is nil where nothing was ever free.
func newFree(samples []fragmentation.Sample) *freeView {
	var most int64
	for i := range samples {
		most = max(most, samples[i].Classes.Sum())
	}
	if most == 0 {
		return nil
	}
	v := &freeView{Most: units.Bytes(most)}
	var paths [len(chart.FreeKinds)]path
	n := float64(len(samples))
	for i := range samples {
		top := 0.0
		for k := range paths {
			if h := chart.Share(chart.FreeKinds[k].Bytes(&samples[i].Classes), most); h > 0 {
				paths[k].box(float64(i)/n, 1-top-h, 1/n, h)
				top += h
			}
		}
	}
	for k := range paths {
		paths[k].class = chart.FreeKinds[k].Class
		if paths[k].b.Len() > 0 {
			v.Keys = append(v.Keys, &chart.FreeKinds[k])
		}
	}
	var d drawing
	d.open("plot areas", "reserved and not allocated bytes over the trace")
	d.paths(paths[:]...)
	d.close()
	v.Plot = d.html()
	return v
}
