package html

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// fragments shows the ledger reserved = active + releasable + split of each moment, and what
// keeps segments at the one that matters most.
type fragments struct {
	Ledgers  []ledger
	PinTitle string
	Pins     []pinRow
	MorePins int
	Holes    *holesView  // of the moment that matters most, as are the next two
	Groups   *groupsView // nil where there is one stream and one pool
	Without  []withoutRow
}

// ledger is one bar; the widths are percents of the most that is reserved at any moment.
type ledger struct {
	Title, When     string
	Reserved        string
	Parts           []part
	LargestFree     string
	Usable, Stream  string
	Rounding        string
	Segments        string
	RoundingPercent string
	Classes         []part // of what is not allocated
}

type part struct {
	Class, Name, Bytes, Share, Width, Meaning string
}

type pinRow struct{ Segment, Pool, Free, Live, Blocks, Site, Largest, Age string }

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
	list, more := chart.Pins(t, worst.Moment, pins)
	v.MorePins = more
	v.PinTitle = strings.ToLower(worst.Title)
	if worst.When != "" {
		v.PinTitle += " (" + worst.When + ")"
	}
	for _, p := range list {
		v.Pins = append(v.Pins, pinRow{
			Segment: units.Bytes(p.Segment.Size),
			Pool:    chart.Pool(p.Segment.Kind, p.Segment.Pool, p.Segment.Stream, p.Segment.Expandable),
			Free:    units.Bytes(p.Free), Live: units.Bytes(p.Live), Blocks: units.Count(int64(p.Blocks)),
			Site: site(p.Site), Largest: units.Bytes(p.Largest), Age: p.Age,
		})
	}
	return v
}

func newLedger(ph *phase, most int64) ledger {
	f := &ph.Frag
	v := ledger{
		Title: ph.Title, When: ph.When, Reserved: units.Bytes(f.Reserved),
		LargestFree: units.Bytes(f.LargestFree), Usable: units.Bytes(f.LargestUsable), Stream: fmt.Sprint(f.Stream),
		Rounding: units.Bytes(f.Rounding), RoundingPercent: units.Percent(f.Rounding, f.Active),
		Segments: fmt.Sprintf("%s of %s", units.Count(int64(f.PartlyUsed)), units.Count(int64(f.Segments))),
	}
	add := func(class, name string, bytes int64, meaning string) {
		v.Parts = append(v.Parts, part{class, name, units.Bytes(bytes), units.Percent(bytes, f.Reserved), percent(chart.Share(bytes, most)), meaning})
	}
	for _, k := range chart.FreeKinds {
		if n := k.Bytes(&f.Classes); n > 0 {
			v.Classes = append(v.Classes, part{Name: k.Name, Bytes: units.Bytes(n), Share: units.Percent(n, f.Classes.Sum()), Meaning: k.Means})
		}
	}
	add("k-live", "Active", f.Active, "in live blocks")
	add("k-releasable", "Releasable", f.Releasable, "free in segments without a live block: empty_cache() returns it")
	add("k-split", "Split", f.Split, "free in segments with live blocks: only a request that fits a gap can use it")
	return v
}
