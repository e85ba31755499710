package html

import (
	_ "embed"
	"fmt"
	"html/template"

	"github.com/snapana/snapana/analyze/pinned"
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
	Sums    []pinnedSum
	Holders []pinnedHolder
	Cached  []pinnedClass
	Notes   []string
}

type pinnedSum struct{ Name, Reserved, Active, Allocated, Cached string }

type pinnedHolder struct{ Site, Bytes, Share, Blocks, Before string }

type pinnedClass struct{ Size, Blocks, Bytes, Spare string }

// Bounds on the tables.
const (
	maxPinned  = 20
	maxClasses = 12
)

func newPinned(m *pinned.Memory) *pinnedView {
	if m == nil {
		return nil
	}
	v := &pinnedView{Summary: "RAM that the GPU can read and that is never swapped out, by PyTorch's host allocator. All sizes are rounded ones: what was asked for is not recorded."}
	sum := func(name string, t pinned.Totals) {
		v.Sums = append(v.Sums, pinnedSum{name, units.Bytes(t.Reserved), units.Bytes(t.Active), units.Bytes(t.Allocated), units.Bytes(t.Reserved - t.Active - m.Unknown)})
	}
	if m.Trace.Len() > 0 {
		sum("Before the trace", m.Initial)
		for _, p := range []struct {
			name string
			at   timeline.Peak
		}{{"reserved", m.PeakReserved}, {"active", m.PeakActive}} {
			sum(fmt.Sprintf("Most %s, %s", p.name, after(p.at.Event)), m.At(p.at.Event))
		}
		v.Curve, v.Most = drawPinned(m.Curve, m.PeakReserved.Bytes), units.Bytes(m.PeakReserved.Bytes)
	}
	sum("At the end", m.Final)
	if n := m.Registered; n > 0 {
		b := units.Bytes(n)
		v.Sums = append(v.Sums, pinnedSum{"Registered by other code, besides", b, b, b, units.Bytes(0)})
	}
	groups, other, more := chart.Top(m.Holders, maxPinned)
	total := chart.Sum(m.Holders)
	holder := func(site string, bytes, before, blocks int64) {
		v.Holders = append(v.Holders, pinnedHolder{text(site), units.Bytes(bytes), units.Percent(bytes, total), units.Count(blocks), units.Bytes(before)})
	}
	for i, site := range chart.Sites(groups) {
		holder(site, groups[i].Rounded, groups[i].PreTrace, groups[i].Count)
	}
	if more > 0 {
		holder(fmt.Sprintf("… %d more stacks", more), other.Rounded, other.PreTrace, other.Count)
	}
	var rest pinned.Class
	for i, c := range m.Cached {
		if i >= maxClasses {
			rest.Blocks, rest.Bytes, rest.Spare = rest.Blocks+c.Blocks, rest.Bytes+c.Bytes, rest.Spare+c.Spare
			continue
		}
		v.Cached = append(v.Cached, newPinnedClass(units.Bytes(c.Size), c))
	}
	if rest.Blocks > 0 {
		v.Cached = append(v.Cached, newPinnedClass("others", rest))
	}
	if m.Registered > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("Other code registered %s more (cudaHostRegister): it is in the trace, and not in the state at the end.", units.Bytes(m.Registered)))
	}
	if m.Unknown > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("Of %s more the file does not say whether it is in use or cached.", units.Bytes(m.Unknown)))
	}
	if m.AtMostRounding > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("Of what is active, at most %s is rounding: a power of two was rounded from more than its half.", units.Bytes(m.AtMostRounding)))
	}
	return v
}

func newPinnedClass(size string, c pinned.Class) pinnedClass {
	spare := "unknown"
	if c.Spare >= 0 {
		spare = units.Bytes(c.Spare)
	}
	return pinnedClass{size, units.Count(int64(c.Blocks)), units.Bytes(c.Bytes), spare}
}

func after(event int) string {
	if event < 0 {
		return "before the trace"
	}
	return "event " + units.Count(int64(event))
}

// drawPinned draws reserved and active bytes by trace event.
func drawPinned(points []pinned.Point, most int64) template.HTML {
	reserved, active := path{class: "line-reserved"}, path{class: "line-best"}
	end := float64(max(points[len(points)-1].Last, 1))
	for i, x := range points {
		for _, p := range []struct {
			path  *path
			bytes int64
		}{{&reserved, x.Max.Reserved}, {&active, x.Max.Active}} {
			y := 1 - share(p.bytes, most)
			if i == 0 {
				p.path.move(0, y)
				continue
			}
			p.path.h(float64(x.First) / end)
			p.path.v(y)
		}
	}
	reserved.h(1)
	active.h(1)
	var d drawing
	d.open("plot", "reserved and active pinned bytes over the trace")
	d.paths(reserved, active)
	d.close()
	return d.html()
}
