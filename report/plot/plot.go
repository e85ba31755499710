// Package plot draws a result as PNG pictures for chats, issues and slides: memory over time,
// the layout of the segments at the peak and at the end, and the stacks that hold the memory.
// Equal results give equal bytes. Pictures that would have nothing to show are left out.
package plot

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"snapana/analyze"
	"snapana/report/internal/view"
)

// Plot is one picture.
type Plot struct {
	Name string // of its file, for example "timeline.png"
	draw func() *page
}

// Write draws the picture and writes it, as PNG unless it is a map of vectors. Plots may be written at the same time.
func (p Plot) Write(w io.Writer) error {
	if err := p.draw().encode(w); err != nil {
		return fmt.Errorf("write %s: %w", p.Name, err)
	}
	return nil
}

// maxDevices is how many devices are drawn: more pictures than that nobody looks through.
const maxDevices = 16

// All lists the pictures of a result, for the devices that reserved most. Names carry the
// device, as in "timeline-gpu1.png", when there are several.
func All(r *analyze.Result) []Plot {
	var out []Plot
	devices := drawn(r)
	for _, d := range devices {
		suffix := ".png"
		if len(devices) > 1 {
			suffix = fmt.Sprintf("-gpu%d.png", d.Timeline.Device)
		}
		add := func(name string, draw func() *page) { out = append(out, Plot{name + suffix, draw}) }
		if len(d.Timeline.Curve) > 0 && d.Timeline.Trace.Len() > 0 {
			add("timeline", func() *page { return timelinePage(r, d) })
		}
		for _, name := range []string{"peak", "end"} {
			if m := view.Find(d, name); m != nil && m.State.Totals.Reserved > 0 {
				add("segments-"+name, func() *page { return segmentsPage(newPage, r, d, m, byStack(d.Timeline, m)) })
			}
		}
		if hasLive(d) {
			add("stacks", func() *page { return stacksPage(r, d) })
		}
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
	SVG      bool                   // vectors instead of PNG
}

// Segments is the map of the segments at one moment of a device.
func Segments(r *analyze.Result, d *analyze.Device, m *analyze.Moment, o Map) Plot {
	name, begin := "segments.png", newPage
	if o.SVG {
		name, begin = "segments.svg", newVectors
	}
	return Plot{name, func() *page {
		paint := byStack(d.Timeline, m)
		switch o.By {
		case ByCategory:
			paint = byName(d.Timeline, m, "Live blocks by what they are for", func(row int32) string { return cmp.Or(o.Category(row), unknownName) }, unknownName)
		case ByState:
			paint = byState(d.Timeline, m)
		}
		return segmentsPage(begin, r, d, m, paint)
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

func hasLive(d *analyze.Device) bool {
	for i := range d.Moments {
		if len(d.Moments[i].Live) > 0 {
			return true
		}
	}
	return false
}
