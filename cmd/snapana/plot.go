package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/report/plot"
)

// Bounds on the size of a picture, in pixels.
const minWidth, maxWidth = 400, 8000

func newPlot() *cobra.Command {
	var (
		in            inputFlags
		kind, at, out string
		device        deviceFlag
		width, height int
	)
	var kinds []string
	help := ""
	for _, k := range plot.Kinds() {
		kinds = append(kinds, string(k.Kind))
		if k.AtMoment {
			k.Shows += ", --at a moment"
		}
		help += fmt.Sprintf("  %-16s %s\n", k.Kind, k.Shows)
	}
	cmd := &cobra.Command{
		Use:   "plot FILE",
		Short: "Draw one picture of a snapshot, as PNG or SVG",
		Long: `Draw one picture of a GPU's memory from the snapshot in FILE (- for standard input), as PNG
or SVG by the ending of the output's name.

Kinds of pictures (--kind):
` + help + `
Without --at, segments are drawn at the peak, and stacks at the peak and at the end.`,
		Example: `  snapana plot --kind timeline -o memory.png snapshot.pickle
  snapana plot --kind segments --at oom -o segments.svg snapshot.pickle
  snapana plot --kind categories --width 2400 -o slide.png snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			k := slices.Index(kinds, kind)
			switch {
			case k < 0:
				return unknown("--kind", kind, kinds)
			case at != "" && !plot.Kinds()[k].AtMoment:
				return fmt.Errorf("--at needs --kind segments or stacks, not %s", kind)
			}
			to, err := canvas(out, width, height)
			if err != nil {
				return err
			}
			rules, err := in.readRules(cmd.Context())
			if err != nil {
				return err
			}
			snap, t, _, err := device.open(cmd, &in, args[0])
			if err != nil {
				return err
			}
			var m *attribution.Moment
			if at != "" {
				found, err := locate(snap, t, at)
				if err != nil {
					return err
				}
				m = &found
			}
			picture, err := plot.From(cmd.Context(), plot.Kind(kind), snap, t, rules, m)
			if err != nil {
				return err
			}
			return draw("picture", picture, out, to)
		},
	}
	fl := cmd.Flags()
	in.add(fl)
	fl.StringVarP(&kind, "kind", "k", string(plot.KindTimeline), "`KIND` of picture, see above")
	fl.StringVar(&at, "at", "", "`MOMENT` of segments and stacks, as in `snapana state`")
	fl.StringVarP(&out, "output", "o", "", "`FILE` to write ("+pictures+")")
	fl.IntVar(&width, "width", 0, "width in `PIXELS`; everything scales with it (default 1600)")
	fl.IntVar(&height, "height", 0, "height in `PIXELS` (default 9/16 of the width)")
	device.add(fl)
	oneOf(cmd, "kind", kinds)
	return cmd
}

// canvas is the medium of a file of that name, so many pixels wide and high; 0 is the usual size.
func canvas(path string, width, height int) (plot.Medium, error) {
	m, err := medium("-o", path)
	if err != nil {
		return m, err
	}
	m.Width, m.Height = width, height
	if width != 0 && (width < minWidth || width > maxWidth) {
		return m, fmt.Errorf("invalid --width %d; expected %d to %d pixels", width, minWidth, maxWidth)
	}
	if width == 0 {
		width = plot.Width
	}
	if height != 0 && (height < width/2 || height > 2*width) {
		return m, fmt.Errorf("invalid --height %d; expected half to twice the width, %d to %d pixels",
			height, width/2, 2*width)
	}
	return m, nil
}
