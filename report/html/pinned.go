package html

import (
	_ "embed"
	"fmt"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

//go:embed pinned.tmpl
var pinnedTemplate string

// pinnedView is the pinned host memory.
type pinnedView struct {
	Summary string
	Curve   template.HTML
	Most    string
	Sums    *table
	AtPeak  *table // nil for none, as Holders and Cached
	Holders *table
	Cached  *table
	Notes   []string
}

// Bounds on the tables.
const (
	maxPinned  = 20
	maxClasses = 12
)

func newPinned(m *host.Pinned, p *platform.Platform) *pinnedView {
	if m == nil {
		return nil
	}
	v := &pinnedView{Summary: "RAM that the GPU can read and that is never swapped out, from PyTorch's host " +
		"allocator. All sizes are rounded: the requested ones are not recorded."}
	v.Sums = newTable("pinned", column{Cell: "row"}, strong("Reserved"), numbers("Active"), numbers("Allocated"),
		numbers("Cached"))
	sum := func(name string, t host.Totals) {
		v.Sums.add(name, units.Bytes(t.Reserved), units.Bytes(t.Active), units.Bytes(t.Allocated),
			units.Bytes(t.Reserved-t.Active-m.Unknown))
	}
	if m.Trace.Len() > 0 {
		sum("Before the trace", m.Initial)
		for _, p := range []struct {
			name string
			at   timeline.Peak
		}{{"reserved", m.PeakReserved}, {"active", m.PeakActive}} {
			sum(fmt.Sprintf("Peak %s, %s", p.name, after(p.at.Event)), m.At(p.at.Event))
		}
		v.Curve, v.Most = drawPinned(m.Curve, m.PeakReserved.Bytes), units.Bytes(m.PeakReserved.Bytes)
	}
	sum("At the end", m.Final)
	v.AtPeak, v.Holders, v.Cached = pinnedHolders(m.AtPeak), pinnedHolders(m.Holders), pinnedCached(m)
	if m.Registered > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("Other code registered %s of it (%s), which PyTorch's own counters "+
			"leave out.", units.Bytes(m.Registered), p.Say("cudaHostRegister")))
	}
	if m.Unknown > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("For %s more the file does not record whether it is in use or cached.",
			units.Bytes(m.Unknown)))
	}
	if m.AtMostRounding > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("At most %s of the active memory is rounding: sizes are rounded up to "+
			"powers of two.", units.Bytes(m.AtMostRounding)))
	}
	return v
}

func pinnedHolders(holders []attribution.Group) *table {
	if len(holders) == 0 {
		return nil
	}
	t := newTable("", sites("Allocated at"), strong("Bytes"), numbers("Share"), numbers("Blocks"),
		numbers("From before the trace"))
	sources, other, more := chart.LargestSources(chart.Sources(holders), maxPinned)
	total := chart.Sum(holders)
	row := func(name string, g *attribution.Group) {
		t.add(text(name), units.Bytes(g.Rounded), units.Percent(g.Rounded, total), units.Count(g.Count),
			units.Bytes(g.PreTrace))
	}
	for i, name := range chart.Sites(sources) {
		row(name, &sources[i].Group)
	}
	if more > 0 {
		row(fmt.Sprintf("… %d more stacks", more), &other)
	}
	return t
}

func pinnedCached(m *host.Pinned) *table {
	if len(m.Cached) == 0 {
		return nil
	}
	t := newTable("", numbers("Block size"), numbers("Blocks"), strong("Bytes"),
		numbers("Unused since the middle of the trace"))
	row := func(size string, c *host.Class) {
		spare := "unknown"
		if c.Spare >= 0 {
			spare = units.Bytes(c.Spare)
		}
		t.add(size, units.Count(int64(c.Blocks)), units.Bytes(c.Bytes), spare)
	}
	var rest host.Class
	for i := range m.Cached {
		c := &m.Cached[i]
		if i < maxClasses {
			row(units.Bytes(c.Size), c)
			continue
		}
		rest.Blocks, rest.Bytes, rest.Spare = rest.Blocks+c.Blocks, rest.Bytes+c.Bytes, rest.Spare+c.Spare
	}
	if rest.Blocks > 0 {
		row("others", &rest)
	}
	return t
}

func after(event int) string {
	if event < 0 {
		return "before the trace"
	}
	return "event " + units.Count(int64(event))
}

// drawPinned draws reserved and active bytes by trace event.
func drawPinned(points []host.Point, most int64) template.HTML {
	line := func(class string, of func(*host.Totals) int64) path {
		return levels(class, len(points), most, func(i int) (int, int, int64) {
			return points[i].First, points[i].Last, of(&points[i].Max)
		})
	}
	var d drawing
	d.open("plot", "reserved and active pinned bytes over the trace")
	d.paths(line("line-reserved", func(t *host.Totals) int64 { return t.Reserved }),
		line("line-best", func(t *host.Totals) int64 { return t.Active }))
	d.close()
	return d.html()
}
