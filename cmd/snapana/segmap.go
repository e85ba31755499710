package main

import (
	"bytes"

	"snapana/analyze"
	"snapana/analyze/attribution"
	"snapana/analyze/fragmentation"
	"snapana/report/plot"
)

// writeMap draws the segments of a state to a PNG file. Nothing is written unless all is.
func writeMap(path string, a *attribution.Answer) error {
	s, t := a.Snapshot, a.Timeline
	m := analyze.Moment{
		Name: a.Moment.Name, State: a.State,
		Live: attribution.Live(s, t, a.State), Frag: fragmentation.Measure(s, t, a.State),
	}
	r := &analyze.Result{Snapshot: s, Devices: []analyze.Device{{Timeline: t, Moments: []analyze.Moment{m}}}}
	var picture bytes.Buffer
	if err := plot.Segments(r, &r.Devices[0], &m).Write(&picture, plot.Medium{}); err != nil {
		return err
	}
	return replaceFile(path, picture.Bytes())
}
