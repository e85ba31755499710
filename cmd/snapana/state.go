package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/plot"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
)

func newState() *cobra.Command {
	var (
		f  stateFlags
		at string
	)
	cmd := &cobra.Command{
		Use:   "state FILE",
		Short: "Show what was live at a moment, and which code allocated it",
		Long: `Rebuild the memory of one GPU at a moment of the trace in FILE (- for standard input), and
show the live blocks in groups, largest first.`,
		Example: `  snapana state snapshot.pickle
  snapana state --at oom --by stack snapshot.pickle
  snapana state --at +1.5s --by module --tree snapshot.pickle
  snapana state --at oom --map segments.svg --map-by category snapshot.pickle
  snapana state --match 'model\.py' --exclude optim --json snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], at, func(s *snapshot.Snapshot, t *timeline.Timeline) (attribution.Moment, error) {
				return locate(s, t, at)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&at, "at", "end", "`MOMENT`: "+attribution.AtWords)
	oneOf(cmd, "at", moments)
	return cmd
}

// moments are the values of --at that need no figures.
var moments = []string{"peak", "end", "oom", "start"}

// locate finds the moment that --at names.
func locate(s *snapshot.Snapshot, t *timeline.Timeline, at string) (attribution.Moment, error) {
	m, err := attribution.Locate(s, t, at)
	return m, inAt(at, err)
}

// inAt says of an error of attribution.Locate which flag it is about.
func inAt(at string, err error) error {
	var none *attribution.NoTraceError
	switch {
	case errors.As(err, &none):
		return fmt.Errorf("invalid --at %q; %w, only the final state (--at end)", at, err)
	case errors.As(err, new(*attribution.MomentError)):
		return misuse("invalid --at %q; %w", at, err)
	case err != nil:
		return fail(failure.NotInFile, "invalid --at %q; %w", at, err)
	}
	return nil
}

func newPeak() *cobra.Command {
	var (
		f  stateFlags
		of string
	)
	cmd := &cobra.Command{
		Use:   "peak FILE",
		Short: "Show what was live at the peak, and which code allocated it",
		Long: `Show what was live when memory in use peaked in the trace in FILE (- for standard input).
This is ` + "`snapana state --at peak`" + ` with the same flags; --of takes the peak of another series.`,
		Example: `  snapana peak snapshot.pickle
  snapana peak --of reserved --by pool snapshot.pickle
  snapana peak --tree snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(attribution.Series(), of) {
				return unknown("--of", of, attribution.Series())
			}
			moment := "peak"
			if of != "active" {
				moment += " of " + of
			}
			return f.run(cmd, args[0], moment, func(_ *snapshot.Snapshot, t *timeline.Timeline) (attribution.Moment, error) {
				m, err := attribution.Peak(t, of)
				var none *attribution.NoTraceError
				if errors.As(err, &none) {
					err = fmt.Errorf("%w, so its peak is unknown; `snapana state` shows the final state", err)
				}
				return m, err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&of, "of", "active", "`SERIES` that peaks: "+strings.Join(attribution.Series(), ", "))
	oneOf(cmd, "of", attribution.Series())
	return cmd
}

// stateFlags are the flags of the commands that show what is live at a moment.
type stateFlags struct {
	in             inputFlags
	device         deviceFlag
	by             string
	tree           bool
	match, exclude string
	top            int
	out            outputFlags
	internals      bool
	mapFile, mapBy string
	noCache        bool
}

func (f *stateFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.in.add(fl)
	f.device.add(fl)
	fl.StringVar(&f.by, "by", string(attribution.BySite), "group live blocks by `KIND`: "+attribution.KindWords())
	fl.BoolVar(&f.tree, "tree", false, "show a call tree instead of groups; with --by module, a tree of modules")
	fl.StringVar(&f.match, "match", "", "only blocks with a frame (\"file:line function\") that matches `REGEXP`")
	fl.StringVar(&f.exclude, "exclude", "", "leave out blocks with a frame that matches `REGEXP`")
	fl.IntVar(&f.top, "top", 20, "show `N` groups, or N calls below each in a tree; 0 for all")
	f.out.add(fl, "print JSON, with all groups unless --top is given", "")
	fl.StringVar(&f.mapFile, "map", "", "also draw the segments at that moment to `FILE` ("+pictures+")")
	fl.StringVar(&f.mapBy, "map-by", string(plot.ByStack), "color the map by `KIND`: stack, category or state")
	fl.BoolVar(&f.noCache, "no-cache", false, "do not use or keep answers about this file")
	fl.BoolVar(&f.internals, "show-internals", false,
		"also show frames of the interpreter, the dispatcher, torch's core, and C++ below Python")
	oneOf(cmd, "by", attribution.Kinds())
	oneOf(cmd, "map-by", mapColors)
}

// query turns flags into a query.
func (f *stateFlags) query(cmd *cobra.Command) (q attribution.Query, err error) {
	if q.By = attribution.Kind(f.by); !q.By.Known() {
		if word, key := q.By.Split(); key != "" && !word.Known() {
			return q, unknown("--by", string(word), attribution.Kinds())
		}
		return q, unknown("--by", f.by, attribution.Kinds())
	}
	if f.tree {
		switch {
		case !cmd.Flags().Changed("by"):
			q.By = attribution.ByStack
		case q.By != attribution.ByStack && q.By != attribution.ByModule:
			return q, misuse("--tree needs --by stack or --by module, not --by %s", q.By)
		}
	}
	if f.top < 0 {
		return q, misuse("invalid --top %d; expected 0 (all) or more", f.top)
	}
	if q.Match, err = pattern("--match", f.match); err != nil {
		return q, err
	}
	if q.Exclude, err = pattern("--exclude", f.exclude); err != nil {
		return q, err
	}
	if f.in.rules != "" && q.By != attribution.ByCategory && f.mapBy != string(plot.ByCategory) && !f.out.json {
		return q, misuse("--rules needs --by category, --map-by category or --json")
	}
	q.Internals = f.internals
	return q, nil
}

func pattern(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, misuse("invalid regular expression in %s: %w", flag, err)
	}
	return re, nil
}

// run reads the file and prints what is live at the moment that find gives and that its word names.
func (f *stateFlags) run(cmd *cobra.Command, path, moment string,
	find func(*snapshot.Snapshot, *timeline.Timeline) (attribution.Moment, error)) error {
	q, err := f.query(cmd)
	if err != nil {
		return err
	}
	to, err := f.mapMedium(cmd)
	if err != nil {
		return err
	}
	rules, err := f.in.readRules(cmd.Context())
	if err != nil {
		return err
	}
	kept := newAnswers(cmd, path, "no-cache", "rules", "map", "from", "to")
	if text, ok := kept.get(moment); ok {
		_, err := cmd.OutOrStdout().Write(text)
		return written(err)
	}
	snap, t, why, err := f.device.open(cmd, &f.in, path)
	if err != nil {
		return err
	}
	m, err := find(snap, t)
	if err != nil {
		return err
	}
	if err := q.By.Check(snap, t); err != nil {
		return fmt.Errorf("unknown --by %q; %w", f.by, err)
	}
	q.Category = category.Namer(snap, t, rules)
	a := attribution.Ask(snap, t, m, q, f.tree)
	a.Why = why
	if f.mapFile != "" {
		if err := draw(cmd.Context(), "map", plot.Segments(a, plot.By(f.mapBy)), f.mapFile, to); err != nil {
			return err
		}
	}
	if err := kept.keep(cmd.OutOrStdout(), moment, f.printer(cmd, a)); err != nil || kept == nil {
		return written(err)
	}
	// The same about the moments that are asked for next.
	for _, next := range []string{"end", "peak"} {
		if m, err := attribution.Locate(snap, t, next); err == nil && next != moment {
			a := attribution.Ask(snap, t, m, q, f.tree)
			a.Why = why
			if err := kept.keep(io.Discard, next, f.printer(cmd, a)); err != nil {
				return written(err)
			}
		}
	}
	return nil
}

// printer prints an answer as the flags say, in the colors and the width of standard output.
func (f *stateFlags) printer(cmd *cobra.Command, a *attribution.Answer) func(io.Writer) error {
	return func(w io.Writer) error {
		if f.out.json {
			top := 0
			if cmd.Flags().Changed("top") {
				top = f.top
			}
			return json.WriteState(w, a, top)
		}
		o := look(cmd)
		o.All, o.Top = f.out.all, f.top
		return text.State(w, a, o)
	}
}

// mapColors are what a map can be colored by.
var mapColors = []plot.By{plot.ByStack, plot.ByCategory, plot.ByState}

// mapMedium is that of the file that --map names.
func (f *stateFlags) mapMedium(cmd *cobra.Command) (plot.Medium, error) {
	if !slices.Contains(mapColors, plot.By(f.mapBy)) {
		return plot.Medium{}, unknown("--map-by", f.mapBy, mapColors)
	}
	switch {
	case f.mapFile == "" && cmd.Flags().Changed("map"):
		return plot.Medium{}, misuse("--map needs a file name")
	case f.mapFile == "" && cmd.Flags().Changed("map-by"):
		return plot.Medium{}, misuse("--map-by needs --map")
	case f.mapFile == "":
		return plot.Medium{}, nil
	}
	return medium("--map", f.mapFile)
}
