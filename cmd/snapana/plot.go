package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
		px            pixels
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
  snapana plot --kind categories --size 2400x1200 -o slide.png snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			k := slices.Index(kinds, kind)
			switch {
			case cmd.Flags().Changed("width") && os.Getenv(variable("width")) == "":
				return misuse("--width is that of lines, and plot prints none; --size is that of the picture")
			case k < 0:
				return unknown("--kind", kind, kinds)
			case at != "" && !plot.Kinds()[k].AtMoment:
				return misuse("--at needs --kind segments or stacks, not %s", kind)
			}
			to, err := canvas(out, px)
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
			meterOf(cmd.Context()).doing("drawing")
			picture, err := plot.From(cmd.Context(), plot.Kind(kind), snap, t, rules, m)
			if err != nil {
				return err
			}
			return draw(cmd.Context(), "picture", picture, out, to)
		},
	}
	fl := cmd.Flags()
	in.add(fl)
	fl.StringVarP(&kind, "kind", "k", string(plot.KindTimeline), "`KIND` of picture, see above")
	fl.StringVar(&at, "at", "", "`MOMENT` of segments and stacks, as in `snapana state`")
	fl.StringVarP(&out, "output", "o", "", "`FILE` to write ("+pictures+")")
	fl.Var(&px, "size", "width in `PIXELS`, or width and height like 2400x1200 (default 1600x900)")
	device.add(fl)
	oneOf(cmd, "kind", kinds)
	oneOf(cmd, "at", moments)
	return cmd
}

// pixels is the size of a picture; 0 is the usual one.
type pixels struct{ width, height int }

var _ pflag.Value = (*pixels)(nil)

func (p *pixels) Type() string { return "pixels" }

func (p *pixels) String() string {
	switch {
	case p.width == 0:
		return ""
	case p.height == 0:
		return strconv.Itoa(p.width)
	}
	return fmt.Sprintf("%dx%d", p.width, p.height)
}

// Set reads a width, with an x and a height behind it or without.
func (p *pixels) Set(text string) (err error) {
	width, height, both := strings.Cut(text, "x")
	if p.width, err = strconv.Atoi(width); err == nil && both {
		p.height, err = strconv.Atoi(height)
	}
	switch {
	case err != nil || both && p.height == 0:
		return misuse("expected pixels like 2400 or 2400x1200")
	case p.width < minWidth || p.width > maxWidth:
		return misuse("expected a width of %d to %d pixels", minWidth, maxWidth)
	case both && (p.height < p.width/2 || p.height > 2*p.width):
		return misuse("expected half to twice the width as height, %d to %d pixels", p.width/2, 2*p.width)
	}
	return nil
}

// canvas is the medium of a file of that name and of a size.
func canvas(path string, px pixels) (plot.Medium, error) {
	m, err := medium("-o", path)
	m.Width, m.Height = px.width, px.height
	return m, err
}
