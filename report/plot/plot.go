// Package plot draws a result as PNG pictures for chats, issues and slides: memory over time,
// the layout of the segments at the peak and at the end, and the stacks that hold the memory.
// Equal results give equal bytes. Pictures that would have nothing to show are left out.
package plot

import (
	"fmt"
	"io"

	"snapana/analyze"
	"snapana/report/internal/view"
)

// Plot is one picture.
type Plot struct {
	Name string // of its file, for example "timeline.png"
	draw func() *page
}

// Write draws the picture and writes it as PNG. Plots may be written at the same time.
func (p Plot) Write(w io.Writer) error {
	if err := p.draw().encode(w); err != nil {
		return fmt.Errorf("write %s: %w", p.Name, err)
	}
	return nil
}

// All lists the pictures of a result. Names carry the device, as in "timeline-gpu1.png", when
// there are several.
func All(r *analyze.Result) []Plot {
	var out []Plot
	for i := range r.Devices {
		d := &r.Devices[i]
		suffix := ".png"
		if len(r.Devices) > 1 {
			suffix = fmt.Sprintf("-gpu%d.png", d.Timeline.Device)
		}
		add := func(name string, draw func() *page) { out = append(out, Plot{name + suffix, draw}) }
		if len(d.Timeline.Curve) > 0 && d.Timeline.Trace.Len() > 0 {
			add("timeline", func() *page { return timelinePage(r, d) })
		}
		for _, name := range []string{"peak", "end"} {
			if m := view.Find(d, name); m != nil && m.State.Totals.Reserved > 0 {
				add("segments-"+name, func() *page { return segmentsPage(r, d, m) })
			}
		}
		if hasLive(d) {
			add("stacks", func() *page { return stacksPage(r, d) })
		}
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
