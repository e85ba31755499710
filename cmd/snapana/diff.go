package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
)

func newDiff() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare the memory of two snapshots, or of two moments of one",
		Long: `Compare what is live in A and B, at the peak of each unless told otherwise: what grew, what
shrank, what is new or gone, and why. The differences add up to the byte. Code is the same
although lines moved, and files or functions were renamed.

With one file, --at or --device names two of its moments or GPUs. Several runs of each side
tell chance from change: name those of A, then --, then those of B. A side may also be an
earlier report.json, or a file that snapana check --update-baseline wrote.

With -o the difference is also a page: both timelines in one picture, step by step, a flame graph
of what grew and shrank, and tables that lead to both. A name that ends in .html is the page
itself.`,
		Example: `  snapana diff main.pickle branch.pickle
  snapana diff --by category before.pickle after.pickle
  snapana diff --at step:2,step:9 snapshot.pickle
  snapana diff --device 0,1 snapshot.pickle
  snapana diff main/*.pickle -- branch/*.pickle
  snapana diff -o changes/ main.pickle branch.pickle`,
		Args: needs(1, many, "two FILES, or one and two moments"),
		RunE: f.run,
	}
	fl := cmd.Flags()
	f.in.add(fl)
	fl.StringVar(&f.at, "at", "", "`MOMENT` of both sides, or of each, as in peak,end: "+attribution.AtWords+
		"\n(default: peak, or end where a file has no trace)")
	fl.StringVar(&f.device, "device", "",
		"`NUMBER` of the GPU of both sides, or of each, as in 0,1 (default: the one that reserved most)")
	fl.StringVar(&f.by, "by", string(attribution.BySite), "group by `KIND`: "+kindWords())
	fl.IntVar(&f.top, "top", 20, "show `N` groups; 0 for all")
	f.format.add(cmd)
	fl.StringVarP(&f.dir, "output", "o", "", "also write a page to `FOLDER`, or to a name that ends in .html")
	f.out.add(fl, "print JSON, with everything", "also show what is the same")
	oneOf(cmd, "by", diff.Kinds())
	oneOf(cmd, "at", moments)
	return cmd
}

func words[S ~string](list []S) []string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}

func kindWords() string { return strings.Join(words(diff.Kinds()), "; ") }

type diffFlags struct {
	in         inputFlags
	at, device string
	by, dir    string
	top        int
	format     formatFlag
	out        outputFlags
}

func (f *diffFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.format.check(cmd, f.out.json, "--json"); err != nil {
		return err
	}
	by := attribution.Kind(f.by)
	switch {
	case !slices.Contains(diff.Kinds(), by):
		return unknown("--by", f.by, diff.Kinds())
	case cmd.Flags().Changed("output") && f.dir == "":
		return errNoPage
	case f.top < 0:
		return misuse("invalid --top %d; expected 0 (all) or more", f.top)
	}
	at, err := two("--at", f.at)
	if err != nil {
		return err
	}
	device, err := two("--device", f.device)
	if err != nil {
		return err
	}
	for _, d := range device {
		if _, err := strconv.Atoi(d); d != "" && err != nil {
			return misuse("invalid --device %q; expected the number of a GPU, or two with a comma between them", f.device)
		}
	}
	sides, err := f.sides(cmd, args, at[0] != at[1] || device[0] != device[1])
	if err != nil {
		return err
	}
	rules, err := f.in.readRules(cmd.Context())
	if err != nil {
		return err
	}
	var taken [2][]*footprint.Footprint
	var last *subject
	for i, paths := range sides {
		for _, path := range paths {
			kept, err := readKept(cmd, path)
			if err != nil {
				return err
			}
			if kept != nil {
				f, err := kept.choose(at[i], device[i])
				if err != nil {
					return err
				}
				taken[i] = append(taken[i], f)
				continue
			}
			if last == nil || last.path != path { // two moments of a file need one reading
				last = nil
				s, err := f.in.open(cmd, path)
				if err != nil {
					return err
				}
				last = &subject{path: path, s: s, rules: rules}
				if f.dir != "" {
					last.samples = pageSamples
				}
			}
			p, err := last.take(cmd, at[i], device[i])
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			taken[i] = append(taken[i], p)
		}
	}
	last = nil
	r := diff.CompareRuns(taken[0], taken[1])
	if err := f.print(cmd, r, by); err != nil || f.dir == "" {
		return err
	}
	return written(f.write(cmd, r))
}

// pageSamples is about how many moments of each trace a page has.
const pageSamples = 600

// write writes the page.
func (f *diffFlags) write(cmd *cobra.Command, r *diff.Result) error {
	meterOf(cmd.Context()).doing("drawing the page")
	path, b := pagePath(f.dir, "diff.html"), bytes.Buffer{}
	err := html.WriteDiff(&b, r, html.DefaultBytes)
	if err == nil {
		err = place.Write(cmd.Context(), path, b.Bytes())
	}
	if err != nil || isBrief(cmd) || f.out.json || f.format == "json" || f.format == "md" {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nPage in %s\n", failure.Line(path))
	return err
}

func (f *diffFlags) print(cmd *cobra.Command, r *diff.Result, by attribution.Kind) error {
	w := cmd.OutOrStdout()
	o := look(cmd)
	o.All, o.Top = f.out.all, f.top
	switch {
	case f.out.json || f.format == "json":
		return written(json.WriteDiff(w, r))
	case f.format == "md":
		return written(text.DiffMarkdown(w, r, by, o))
	}
	return written(text.Diff(w, r, by, o))
}

// two splits the value of a flag into that of each side.
func two(flag, value string) (out [2]string, err error) {
	switch parts := strings.Split(value, ","); len(parts) {
	case 1:
		return [2]string{value, value}, nil
	case 2:
		return [2]string{parts[0], parts[1]}, nil
	}
	return out, misuse("invalid %s %q; expected one value, or two with a comma between them", flag, value)
}

// sides sorts the files of the command line. The same file is on both sides where the flags tell them apart.
func (f *diffFlags) sides(cmd *cobra.Command, args []string, apart bool) (sides [2][]string, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash > 0 && dash < len(args):
		return [2][]string{args[:dash], args[dash:]}, nil
	case dash >= 0:
		return sides, misuse("diff takes the FILES of A before --, and those of B behind it")
	case len(args) == 2:
		return [2][]string{args[:1], args[1:]}, nil
	case len(args) > 2:
		return sides, misuse("diff takes two FILES, got %d; for several runs of each side put -- between the sides",
			len(args))
	case !apart:
		return sides, misuse("diff takes two FILES, or one with two moments (--at peak,end) or GPUs (--device 0,1)")
	}
	return [2][]string{args, args}, nil
}

// subject is a file from which footprints are taken, and what was worked out last of one of its devices.
type subject struct {
	path    string
	s       *snapshot.Snapshot
	rules   []category.Rule
	device  string // as it was asked for
	samples int    // of the courses of its footprints, 0 for none
	t       *timeline.Timeline
	steps   steps.Result
	uses    *category.Table
}

// take gives the footprint of a device at a moment, either of which may be "" for the usual one.
func (q *subject) take(cmd *cobra.Command, at, device string) (*footprint.Footprint, error) {
	if q.t == nil || q.device != device {
		of, err := strconv.Atoi(device)
		t, err := new(deviceFlag(of)).timeline(cmd, q.s, err == nil)
		if err != nil {
			return nil, err
		}
		q.device, q.t, q.steps = device, t, steps.Find(q.s, t)
		q.uses = category.Find(q.s, t, &q.steps, q.rules)
	}
	if at == "" {
		at = footprint.Usual(q.t.HasHistory())
	}
	f, err := footprint.Take(&footprint.Subject{
		Name: q.s.Name, Snapshot: q.s, Timeline: q.t, Uses: q.uses, Steps: &q.steps,
		Samples: q.samples,
	}, at)
	return f, inAt(at, err)
}
