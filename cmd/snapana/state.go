package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
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
		Short: "Show what is live at one moment of the trace, and who holds it",
		Long: `state rebuilds the memory of one GPU as it was at a moment of the trace in FILE (- for
standard input), and groups the live blocks. Pre-trace blocks are counted like all others.

--at names the moment:
  end              after the last event: the dump's own state
  start            before the first event
  peak             at the highest active bytes
  oom              at the last out-of-memory event
  1234 or #1234    right after that event of the trace, from 0 on
  +1.5s or 83ms    that long after the first event
  1750000000000000 at that time, in microseconds since the Unix epoch
  step:3           after a step, from 0 on, or by its name: step:ProfilerStep#3

--by names the groups: ` + kindWords() + `.
A site is the innermost frame of the program's own code. A module is a path of nn.Module
calls, known by the lines at which their forward was, since stacks have no class names.

"pinned" is the reserved memory of all segments in which a group has a block: while it
lives, they cannot be released. Groups share segments, so that these do not sum up.`,
		Example: `  snapana state snapshot.pickle
  snapana state --at oom --by stack snapshot.pickle
  snapana state --at +1.5s --by module --tree snapshot.pickle
  snapana state --at oom --map segments.svg --map-by category snapshot.pickle
  snapana state --at 1234 --match 'model\.py' --exclude optim --json snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], func(s *snapshot.Snapshot, t *timeline.Timeline) (attribution.Moment, error) {
				return locate(s, t, at)
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&at, "at", "end", "`MOMENT`, as above")
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
	asJSON         bool
	internals      bool
	mapFile, mapBy string
	parsed         []category.Rule // of the file that --rules names
}

func (f *stateFlags) add(fl *pflag.FlagSet) {
	f.in.add(fl)
	f.device.add(fl)
	fl.StringVar(&f.by, "by", string(attribution.BySite), "group live blocks by `KIND`, as above")
	fl.BoolVar(&f.tree, "tree", false, "show calls from the outermost in, instead of groups; with --by module, modules")
	fl.StringVar(&f.match, "match", "", "only blocks with a frame \"file:line function\" that matches `REGEXP`")
	fl.StringVar(&f.exclude, "exclude", "", "without blocks that have a frame that matches `REGEXP`")
	fl.IntVar(&f.top, "top", 20, "show `N` groups, or in a tree N calls below each; 0 for all")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON instead, with all groups unless --top is given")
	fl.StringVar(&f.mapFile, "map", "", "also draw the segments at that moment, to `FILE`.png or FILE.svg")
	fl.StringVar(&f.mapBy, "map-by", string(plot.ByStack), "colour the map's blocks by `KIND`: stack, category or state")
	fl.BoolVar(&f.internals, "show-internals", false, "with frames of the interpreter, the dispatcher, the core of torch and C++ below Python")
}

// kindWords lists what --by takes.
func kindWords() string {
	var words []string
	for _, k := range attribution.Kinds() {
		words = append(words, string(k))
	}
	return strings.Join(words, ", ")
}

// query turns flags into a query.
func (f *stateFlags) query(cmd *cobra.Command) (q attribution.Query, err error) {
	if q.By, err = attribution.ParseKind(f.by); err != nil {
		return q, fmt.Errorf("--by: %w", err)
	}
	if f.tree {
		switch {
		case !cmd.Flags().Changed("by"):
			q.By = attribution.ByStack
		case q.By != attribution.ByStack && q.By != attribution.ByModule:
			return q, fmt.Errorf("--tree goes with --by stack or --by module, not with --by %s", q.By)
		}
	}
	if f.top < 0 {
		return q, fmt.Errorf("--top must not be negative; 0 is all")
	}
	if q.Match, err = pattern("--match", f.match); err != nil {
		return q, err
	}
	if q.Exclude, err = pattern("--exclude", f.exclude); err != nil {
		return q, err
	}
	if f.in.rules != "" && q.By != attribution.ByCategory && f.mapBy != string(plot.ByCategory) && !f.asJSON {
		return q, fmt.Errorf("--rules goes with --by category, --map-by category or --json")
	}
	if err := f.checkMap(cmd); err != nil {
		return q, err
	}
	opt, err := f.in.options()
	if err != nil {
		return q, err
	}
	f.parsed = opt.Rules
	q.Internals = f.internals
	return q, nil
}

// categories gives the function that names the category of a block.
func (f *stateFlags) categories(s *snapshot.Snapshot, t *timeline.Timeline) func(int32) string {
	found := steps.Find(s, t)
	table := category.Find(s, t, &found, f.parsed)
	return func(row int32) string {
		c, _ := table.Of(row)
		if c == category.Unknown {
			return ""
		}
		return c.String()
	}
}

func pattern(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%s %q is no regular expression: %w", flag, text, err)
	}
	return re, nil
}

// run reads the file and prints what is live at the moment that find gives.
func (f *stateFlags) run(cmd *cobra.Command, path string, find func(*snapshot.Snapshot, *timeline.Timeline) (attribution.Moment, error)) error {
	q, err := f.query(cmd)
	if err != nil {
		return err
	}
	snap, err := f.in.open(cmd, path)
	if err != nil {
		return err
	}
	t, why, err := f.device.timeline(snap)
	if err != nil {
		return err
	}
	m, err := find(snap, t)
	if err != nil {
		return err
	}
	var category func(int32) string
	if q.By == attribution.ByCategory || f.mapBy == string(plot.ByCategory) || f.asJSON {
		category = f.categories(snap, t)
	}
	if q.By == attribution.ByCategory {
		q.Category = category
	}
	a := attribution.Ask(snap, t, m, q, f.tree)
	a.Why = why
	if f.mapFile != "" {
		if err := writeMap(f.mapFile, plot.By(f.mapBy), category, a); err != nil {
			return err
		}
	}
	w := cmd.OutOrStdout()
	if f.asJSON {
		top := 0
		if cmd.Flags().Changed("top") {
			top = f.top
		}
		return written(json.WriteState(w, a, top, category))
	}
	return written(text.State(w, a, text.StateOptions{Options: look(w), Top: f.top}))
}

// locate finds the moment that --at names.
func locate(s *snapshot.Snapshot, t *timeline.Timeline, at string) (attribution.Moment, error) {
	m, err := attribution.Locate(s, t, at)
	var none *attribution.NoTraceError
	switch {
	case errors.As(err, &none):
		err = fmt.Errorf("--at %s needs a trace, and GPU %d has none in this file: only --at end is known", at, none.Device)
	case err != nil:
		err = fmt.Errorf("--at %w", err)
	}
	return m, err
}
