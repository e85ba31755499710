package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/plot"
	"github.com/snapana/snapana/report/text"
)

func newFit() *cobra.Command {
	var f fitFlags
	f.foreign = size(whatif.ContextBytes)
	cmd := &cobra.Command{
		Use:   "fit A [B...]",
		Short: "Predict the memory of other batch sizes, and the largest that fits",
		Long: `Predict how much memory a program needs at values that it was not run with: another batch
size, sequence length, or any number that scales. A, B, ... are recordings of the same program
at a few values, which --at tells in the order of the files; small ones will do.

Each allocation is followed through the recordings and gets a law, and the run is replayed on
PyTorch's caching allocator with the sizes that the laws give.`,
		Example: `  snapana fit batch2.pickle batch4.pickle --at 2,4 --capacity 80GiB
  snapana fit b2.pickle b4.pickle --at batch=2,4 --to 8,16,24 -o fit.png
  snapana fit a.pickle b.pickle c.pickle --at batch=2,seq=128 --at batch=4,seq=128 \
      --at batch=2,seq=256 --to batch=8,seq=1024`,
		Args: needs(1, many, "FILES"),
		RunE: f.run,
	}
	fl := cmd.Flags()
	f.in.addReading(fl, "file", "input")
	fl.StringArrayVar(&f.at, "at", nil, "`VALUES` that the files were recorded with, one for each: 2,4 or batch=2,4\n"+
		"or, repeated for each file, batch=2,seq=512")
	fl.StringArrayVar(&f.to, "to", nil, "predict these `VALUES`, written alike (default: 2, 4 and 8 times the highest)")
	fl.StringArrayVar(&f.confs, "conf", nil, "predict runs under these `SETTINGS`, as in PYTORCH_CUDA_ALLOC_CONF;\n"+
		"repeated, search the largest value under each")
	addCapacity(fl, &f.capacity, ": search the largest value that fits")
	addForeign(fl, &f.foreign)
	f.device.add(fl)
	f.format.add(cmd)
	f.out.add(fl, "print JSON", "")
	fl.StringVarP(&f.picture, "output", "o", "", "also draw the peaks in `FILE` (.png or .svg), or write a page (.html)")
	return cmd
}

type fitFlags struct {
	in                inputFlags
	at, to            []string
	confs             []string
	capacity, foreign size
	device            deviceFlag
	format            formatFlag
	picture           string
	out               outputFlags
}

func (f *fitFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.format.check(cmd, f.out.json, "--json"); err != nil {
		return err
	}
	q := fit.Question{Capacity: int64(f.capacity), Foreign: int64(f.foreign)}
	if err := foreignFits(cmd, f.capacity, f.foreign); err != nil {
		return err
	}
	var to plot.Medium
	page := strings.ToLower(filepath.Ext(f.picture)) == ".html"
	if f.picture != "" && !page {
		var err error
		if to, err = medium("-o", f.picture); err != nil {
			return fmt.Errorf("%w, or in .html for a page", err)
		}
	}
	names, points, err := values("--at", f.at)
	switch {
	case len(f.at) == 0:
		return misuse("fit needs --at: the values that the files were recorded with, as in --at 2,4")
	case err != nil:
		return err
	case len(points) != len(args):
		return misuse("--at has %s for %s", units.Plural(len(points), "value"), units.Plural(len(args), "file"))
	}
	for i, path := range args {
		if k := slices.IndexFunc(args[:i], func(o string) bool { return o == path || same(o, path) }); k >= 0 {
			return misuse("%s is given twice; fit needs recordings of different runs", path)
		}
	}
	q.Names = names
	if len(f.to) > 0 {
		var of []string
		if of, q.To, err = values("--to", f.to); err != nil {
			return err
		}
		if !slices.Equal(of, names) && !(len(names) == 1 && !strings.Contains(f.to[0], "=")) {
			return misuse("--to has values of %s, and --at of %s", strings.Join(of, " and "), strings.Join(names, " and "))
		}
	}
	var inputs []*fit.Input
	for i, path := range args {
		s, t, _, err := f.device.open(cmd, &f.in, path)
		if err != nil {
			return err
		}
		if i > 0 && t.Device != inputs[0].Timeline.Device && !cmd.Flags().Changed("device") {
			return misuse("%s is of GPU %d, and %s of GPU %d; choose one with --device", args[0],
				inputs[0].Timeline.Device, path, t.Device)
		}
		inputs = append(inputs, &fit.Input{Snapshot: s, Timeline: t, At: points[i]})
	}
	if len(f.confs) > 0 {
		p := whatif.NewProgram(inputs[0].Snapshot, inputs[0].Timeline)
		if q.Settings, err = settings(p, f.confs, f.capacity > 0); err != nil {
			return err
		}
	}
	r, err := fit.Ask(cmd.Context(), inputs, q)
	if err != nil {
		return err
	}
	switch {
	case page:
		if err := place.WriteBy(cmd.Context(), f.picture, func(w io.Writer) error { return html.WriteFit(w, r) }); err != nil {
			return written(err)
		}
	case f.picture != "":
		if err := draw(cmd.Context(), "picture", plot.Fit(r), f.picture, to); err != nil {
			return err
		}
	}
	w, o := cmd.OutOrStdout(), look(cmd)
	switch {
	case f.out.json || f.format == "json":
		return written(json.WriteFit(w, r))
	case f.format == "md":
		return written(text.FitMarkdown(w, r, o))
	}
	return written(text.Fit(w, r, o))
}

// mostValue is the highest value that can be asked for.
const mostValue = 1 << 24

// values reads points: of one name "2,4" or "batch=2,4", or each of one or two names, "batch=2,seq=512", in a flag of its
// own. A number without a name is a batch.
func values(flag string, list []string) (names []string, points []fit.Point, err error) {
	bad := func(text string) error {
		return misuse("invalid %s %q; expected numbers from 1 to %d, as in 2,4 or batch=2,4 or batch=2,seq=512", flag,
			text, mostValue)
	}
	for i, text := range list {
		items := strings.Split(text, ",")
		var of []string
		var point fit.Point
		var bare []int64 // of the name before them
		for k, item := range items {
			name, number, named := strings.Cut(item, "=")
			if !named {
				number = item
			}
			n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			if err != nil || n < 1 || n > mostValue || named && strings.TrimSpace(name) == "" {
				return nil, nil, bad(text)
			}
			switch {
			case named:
				of, point = append(of, strings.TrimSpace(name)), append(point, n)
			case k == 0:
				of, point = append(of, "batch"), append(point, n)
			default:
				bare = append(bare, n)
			}
		}
		switch {
		case len(bare) > 0 && (len(of) > 1 || len(list) > 1), len(of) > 2, len(of) == 2 && of[0] == of[1]:
			return nil, nil, bad(text)
		case i > 0 && !slices.Equal(of, names):
			return nil, nil, misuse("%s has %s first, and %s then", flag, strings.Join(names, " and "),
				strings.Join(of, " and "))
		}
		names, points = of, append(points, point)
		for _, n := range bare {
			points = append(points, fit.Point{n})
		}
	}
	return names, points, nil
}
