package plot

import (
	"fmt"
	"image"
	"image/color"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/internal/chart"
)

// maxSettings is the number of settings with bars of their own.
const maxSettings = 14

func whatifPage(m Medium, r *analyze.Result, d *analyze.Device) *page {
	a := d.WhatIf
	about := fmt.Sprintf("Peak reserved memory under other allocator settings, from a replay of %s requests. ", units.Count(int64(a.Accuracy.Requests)))
	if a.Accuracy.Trusted {
		about += "Replay accuracy: " + units.Percent(int64(a.Accuracy.SameRequests), int64(a.Accuracy.Requests)) + "."
	} else {
		about += "Guesses only: the replay accuracy is " + units.Percent(int64(a.Accuracy.SameRequests), int64(a.Accuracy.Requests)) + "."
	}
	p := newPage(m, pageTitle(r, d, "Other allocator settings on"), about)

	keys := []key{{"peak allocated", solid(chart.ColorLive)}, {"peak reserved", solid(chart.ColorReleasable)}}
	limit := int64(1)
	for i := range a.Rows {
		limit = max(limit, a.Rows[i].ReservedPeak)
	}
	if n := a.Capacity.Reservable; n > 0 && n < 2*limit {
		limit = max(limit, n)
		keys = append(keys, key{"most that can be reserved (" + units.Bytes(n) + ")", upright(chart.ColorOOM)})
	}
	p.legend(keys)

	right := 205 // for figures and, where there are any, failures
	if slices.ContainsFunc(a.Rows, func(r whatif.Row) bool { return r.Failures > 0 || r.Retries > 0 }) {
		right += 235
	}
	area := image.Rect(margin, p.top+10, p.width-margin-right, p.height-72)
	x := func(bytes int64) int { return area.Min.X + int(float64(bytes)/float64(limit)*float64(area.Dx())) }
	p.byteAxis(area, limit, x, "peak bytes in the replay")
	shown := settings(a)
	pitch := min(area.Dy()/len(shown), 90)
	thick := min(max(pitch-30, 8), 34)
	name, num := style(smallSize, chart.ColorInk), style(smallSize, chart.ColorMuted)
	for k, i := range shown {
		row := &a.Rows[i]
		y := area.Min.Y + k*pitch
		label, font := chart.Setting(row), name
		if i == a.Best {
			label, font = label+" (recommended)", bold(smallSize)
		}
		p.text(font, area.Min.X+4, y+18, fitLeft(font, label, p.width-2*margin))
		top := y + 25
		if row.StartFailed {
			p.text(num, area.Min.X+8, top+thick/2+6, "the memory from before the trace does not fit")
			continue
		}
		to := max(x(row.ReservedPeak), area.Min.X+1)
		p.fill(image.Rect(area.Min.X, top, to, top+thick), chart.ColorReleasable)
		p.fill(image.Rect(area.Min.X, top, min(x(row.AllocatedPeak), to), top+thick), chart.ColorLive)
		mid := top + thick/2 + 6
		p.textRight(name, area.Max.X+110, mid, units.Bytes(row.ReservedPeak))
		if base := a.Rows[0].ReservedPeak; row.ReservedPeak != base && base > 0 {
			p.textRight(num, area.Max.X+195, mid, fmt.Sprintf("%+.1f%%", 100*float64(row.ReservedPeak-base)/float64(base)))
		}
		bad := ""
		if row.Failures > 0 {
			bad = units.Plural(row.Failures, "request fails", "requests fail")
		}
		if row.Retries > 0 {
			if bad != "" {
				bad += ", "
			}
			bad += units.Plural(row.Retries, "retry")
		}
		if bad != "" {
			ink := num
			if row.Failures > 0 {
				ink = bold(smallSize)
				ink.Color = color.RGBA{0xb0, 0x45, 0x00, 0xff}
			}
			p.text(ink, area.Max.X+215, mid, bad)
		}
	}
	if n := a.Capacity.Reservable; n > 0 && n <= limit {
		p.fill(image.Rect(x(n)-1, area.Min.Y-4, x(n)+1, area.Max.Y), chart.ColorOOM)
	}
	return p
}

// settings are the rows that are drawn: the first ones, and the recommended one in any case.
func settings(a *whatif.Answer) []int {
	var out []int
	for i := range a.Rows {
		if len(out) < maxSettings {
			out = append(out, i)
		} else if i == a.Best {
			out[maxSettings-1] = i
		}
	}
	return out
}
