// Package plot draws a result as PNG and SVG pictures for chats, issues and slides: memory over
// time, in all and by category, free memory, the layout of the segments, the stacks that hold
// the memory, and what other allocator settings would do. Equal results give equal bytes.
package plot

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/internal/chart"
)

// Plot is one picture.
type Plot struct {
	Name string // of its file without an ending, for example "timeline"
	draw func(Medium) *page
}

// Medium is what a picture is drawn for. The zero value is a PNG of 1600 by 900 pixels.
type Medium struct {
	SVG           bool
	Width, Height int // in pixels, 0 for the usual ones
}

func (m Medium) size() (width, height int) {
	width, height = cmp.Or(m.Width, Width), m.Height
	return width, cmp.Or(height, width*pageHeight/Width)
}

// Write draws the picture. Plots may be written at the same time.
func (p Plot) Write(w io.Writer, m Medium) error {
	if err := p.draw(m).encode(w); err != nil {
		return fmt.Errorf("draw %s: %w", p.Name, err)
	}
	return nil
}

// maxDevices is how many devices are drawn: more pictures than that nobody looks through.
const maxDevices = 16

// Kind is what a picture shows.
type Kind string

const (
	KindTimeline      Kind = "timeline"      // reserved, active and allocated bytes over time
	KindCategories    Kind = "categories"    // what the active bytes are for, over time
	KindFragmentation Kind = "fragmentation" // free bytes over time, by what keeps them from use
	KindSegments      Kind = "segments"      // the map of the segments at one moment
	KindStacks        Kind = "stacks"        // the stacks that hold the most
	KindWhatIf        Kind = "whatif"        // peaks under other allocator settings
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{KindTimeline, KindCategories, KindFragmentation, KindSegments, KindStacks, KindWhatIf}
}

// Of is the picture of a kind for one device of a result. Segments and Stacks show m; nil is the
// peak, or for Stacks the peak and the end. The error says why there is nothing to draw.
func Of(kind Kind, r *analyze.Result, d *analyze.Device, m *analyze.Moment) (Plot, error) {
	none := func(why string) (Plot, error) {
		return Plot{}, fmt.Errorf("%s of %s: %s", kind, chart.DeviceName(d.Timeline.Device), why)
	}
	moments := []*analyze.Moment{m}
	if m == nil {
		moments = []*analyze.Moment{d.Moment("peak"), d.Moment("end")}
	}
	traced := len(d.Timeline.Curve) > 0 && d.Timeline.Trace.Len() > 0
	var draw func(Medium) *page
	switch kind {
	case KindTimeline, KindCategories, KindFragmentation:
		if !traced {
			return none("the file has no trace of it")
		}
		switch kind {
		case KindTimeline:
			draw = func(to Medium) *page { return timelinePage(to, r, d) }
		case KindCategories:
			if len(d.Uses) == 0 {
				return none("nothing was sorted into categories")
			}
			draw = func(to Medium) *page { return categoriesPage(to, r, d) }
		default:
			if len(d.Free) == 0 {
				return none("nothing was measured")
			}
			draw = func(to Medium) *page { return fragmentationPage(to, r, d) }
		}
	case KindSegments:
		m = cmp.Or(moments...)
		if m == nil || m.State.Totals.Reserved <= 0 {
			return none("nothing is reserved then")
		}
		return Segments(r, d, m, Map{}), nil
	case KindStacks:
		if m = cmp.Or(moments...); m == nil || !slices.ContainsFunc(moments, func(m *analyze.Moment) bool { return m != nil && len(m.Live) > 0 }) {
			return none("nothing is live then")
		}
		draw = func(to Medium) *page { return stacksPage(to, r, d, moments) }
	case KindWhatIf:
		if d.WhatIf == nil || len(d.WhatIf.Rows) == 0 {
			return none("nothing was replayed")
		}
		draw = func(to Medium) *page { return whatifPage(to, r, d) }
	default:
		return Plot{}, fmt.Errorf("no kind of picture is called %q", kind)
	}
	return Plot{string(kind), draw}, nil
}

// All lists the pictures of a result, for the devices that reserved most. Names carry the
// device, as in "timeline-gpu1", when there are several.
func All(r *analyze.Result) []Plot {
	var out []Plot
	devices := drawn(r)
	for _, d := range devices {
		suffix := ""
		if len(devices) > 1 {
			suffix = fmt.Sprintf("-gpu%d", d.Timeline.Device)
		}
		add := func(name string, kind Kind, m *analyze.Moment) {
			if p, err := Of(kind, r, d, m); err == nil {
				p.Name = name + suffix
				out = append(out, p)
			}
		}
		add("timeline", KindTimeline, nil)
		add("categories", KindCategories, nil)
		add("fragmentation", KindFragmentation, nil)
		for _, name := range []string{"peak", "end"} {
			if m := d.Moment(name); m != nil {
				add("segments-"+name, KindSegments, m)
			}
		}
		add("stacks", KindStacks, nil)
		add("whatif", KindWhatIf, nil)
	}
	return out
}

// By is what the colours of live blocks stand for.
type By string

const (
	ByStack    By = "stack"
	ByCategory By = "category"
	ByState    By = "state" // allocated, or freed and waiting for another stream
)

// Map chooses how segments are drawn.
type Map struct {
	By       By                     // ByStack when empty
	Category func(row int32) string // of a row of Timeline.Lives; for ByCategory
}

// Segments is the map of the segments at one moment of a device.
func Segments(r *analyze.Result, d *analyze.Device, m *analyze.Moment, o Map) Plot {
	return Plot{"segments", func(to Medium) *page {
		paint := byStack(d.Timeline, m)
		switch o.By {
		case ByCategory:
			paint = byCategory(d.Timeline, m, o.Category)
		case ByState:
			paint = byState(d.Timeline, m)
		}
		return segmentsPage(to, r, d, m, paint)
	}}
}

// drawn are the devices that did something, by ordinal.
func drawn(r *analyze.Result) []*analyze.Device {
	var out []*analyze.Device
	for i := range r.Devices {
		if t := r.Devices[i].Timeline; t.PeakReserved.Bytes > 0 || t.Trace.Len() > 0 {
			out = append(out, &r.Devices[i])
		}
	}
	if len(out) > maxDevices {
		slices.SortStableFunc(out, func(a, b *analyze.Device) int {
			return cmp.Compare(b.Timeline.PeakReserved.Bytes, a.Timeline.PeakReserved.Bytes)
		})
		out = out[:maxDevices]
		slices.SortFunc(out, func(a, b *analyze.Device) int { return cmp.Compare(a.Timeline.Device, b.Timeline.Device) })
	}
	return out
}
