package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/report/plot"
)

// checkMap refuses what cannot be drawn before anything is read.
func (f *stateFlags) checkMap(cmd *cobra.Command) error {
	switch plot.By(f.mapBy) {
	case plot.ByStack, plot.ByCategory, plot.ByState:
	default:
		return fmt.Errorf("--map-by %q: blocks are coloured by stack, category or state", f.mapBy)
	}
	switch _, ok := medium(f.mapFile); {
	case f.mapFile == "" && cmd.Flags().Changed("map"):
		return fmt.Errorf("--map needs the name of a file")
	case f.mapFile == "" && cmd.Flags().Changed("map-by"):
		return fmt.Errorf("--map-by goes with --map")
	case f.mapFile != "" && !ok:
		return fmt.Errorf("--map %s: the name must end in .png or .svg", f.mapFile)
	}
	return nil
}

// writeMap draws the segments of a state to a PNG or SVG file.
func writeMap(path string, by plot.By, category func(row int32) string, a *attribution.Answer) error {
	s, t := a.Snapshot, a.Timeline
	m := analyze.Moment{
		Name: a.Moment.Name, State: a.State,
		Live: attribution.Live(s, t, a.State), Frag: fragmentation.Measure(s, t, a.State),
	}
	r := &analyze.Result{Snapshot: s, Devices: []analyze.Device{{Timeline: t, Moments: []analyze.Moment{m}}}}
	to, _ := medium(path)
	return draw("map", plot.Segments(r, &r.Devices[0], &m, plot.Map{By: by, Category: category}), path, to)
}
