package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/report"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func newRanks() *cobra.Command {
	var f ranksFlags
	cmd := &cobra.Command{
		Use:   "ranks FILE...",
		Short: "Compare the snapshots of a distributed run, or their digests",
		Long: `Judge the snapshots of all ranks of a run and compare them: which rank ran out of memory
first, which verdicts the ranks share, and which rank uses more memory than the others,
allocated where; which did fewer steps, and which is missing. A FILE is a snapshot, a digest, or a
folder of either. Files that cannot be read are listed, and the exit code is then 2.

With -o the comparison is also a page, with a heat map of all ranks and links to the report of
each snapshot, which are in the same folder. A name that ends in .html is the page alone.`,
		Example: `  snapana ranks dumps/
  snapana ranks -o run42 dumps/rank*.pickle
  snapana ranks --mesh dp=8,tp=8,pp=4 digests/
  snapana ranks --json iteration_10/*/memory_snapshot.pickle`,
		Args: needs(1, many, "the FILES of a run"),
		RunE: f.run,
	}
	f.read.add(cmd.Flags())
	cmd.Flags().StringVarP(&f.dir, "output", "o", "", "also write a page and the report of each rank to `FOLDER`,\n"+
		"or to a name that ends in .html the page alone")
	f.layoutFlags.add(cmd.Flags())
	f.format.add(cmd)
	f.out.add(cmd.Flags(), "print JSON, with everything", "list all ranks")
	return cmd
}

// ranksFlags are those of ranks.
type ranksFlags struct {
	read   readFlags
	out    outputFlags
	format formatFlag
	layoutFlags
	dir string
}

func (f *ranksFlags) run(cmd *cobra.Command, args []string) error {
	q, err := f.question(cmd)
	if err != nil {
		return err
	}
	if err := f.read.ready(cmd.Context()); err != nil {
		return err
	}
	if slices.Contains(args, "-") {
		return misuse("ranks compares files that have names, and reads no standard input")
	}
	files := unfold(cmd.Context(), args, func(ctx context.Context, dir string) []string {
		return slices.Concat(digests(ctx, dir), snapshots(ctx, dir))
	})
	page := newRanksPage(f.dir, files)
	f.read.replay = page.reports != nil
	debug.SetGCPercent(100) // hardly anything of what is read stays
	var read atomic.Int64
	meter := meterOf(cmd.Context())
	ctx := stage.With(cmd.Context(), func(stage.Stage, int, int) {}) // several at once
	cmd.SetContext(ctx)
	c, err := ranks.Read(ctx, files, func(path string) (ranks.Rank, error) {
		meter.at(task{what: "judging ranks", done: read.Load(), total: int64(len(files))})
		defer read.Add(1)
		k, err := f.rank(cmd, path, page)
		return k, explain(ctx, err)
	}, q)
	if err != nil {
		return err
	}
	f.out.json = f.out.json || f.format == "json"
	if f.format == "md" {
		err = written(text.RanksMarkdown(cmd.OutOrStdout(), c))
	} else {
		err = show(cmd, f.out, c, json.WriteRanks, text.Ranks)
	}
	err = cmp.Or(err, written(page.write(ctx, c)))
	if err == nil && page.path != "" && !f.out.json && !isBrief(cmd) {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nPage in %s\n", failure.Line(page.path))
	}
	if n := len(c.Ranks) - c.Read; err == nil && n > 0 {
		return fail(failure.Unread, "%d of %d files could not be read", n, len(c.Ranks))
	}
	if n := c.Expected - len(c.Ranks); err == nil && (f.mesh != "" || f.worldSize > 0) && n > 0 {
		are := "are"
		if n == 1 {
			are = "is"
		}
		return fail(failure.MissingRanks, "%d of %d ranks %s missing", n, c.Expected, are)
	}
	return err
}

func (f *ranksFlags) question(cmd *cobra.Command) (q ranks.Question, err error) {
	if cmd.Flags().Changed("output") && f.dir == "" {
		return q, errNoPage
	}
	if err := f.format.check(cmd, f.out.json, "--json"); err != nil {
		return q, err
	}
	return f.layoutFlags.question()
}

// layoutFlags say which ranks there are.
type layoutFlags struct {
	mesh      string
	worldSize int
}

func (f *layoutFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.mesh, "mesh", "", "how the ranks are laid out, as `AXES` like dp=8,tp=8,pp=4:\n"+
		"the last is counted fastest, as by torch's init_device_mesh")
	fl.IntVar(&f.worldSize, "world-size", 0, "how many ranks there should be, a `NUMBER`")
}

func (f *layoutFlags) question() (q ranks.Question, err error) {
	switch {
	case f.worldSize < 0 || f.worldSize > 1e7:
		return q, misuse("invalid --world-size %d; expected the number of ranks", f.worldSize)
	case f.mesh != "" && f.worldSize > 0:
		return q, misuse("--world-size cannot be used with --mesh, which says how many ranks there are")
	}
	q.Expected = f.worldSize
	if f.mesh != "" {
		if q.Mesh, err = ranks.ParseMesh(f.mesh); err != nil {
			err = misuse("invalid --mesh %q: %w", f.mesh, err)
		}
	}
	return q, err
}

// rank reads a digest or a snapshot.
func (f *ranksFlags) rank(cmd *cobra.Command, path string, page *ranksPage) (ranks.Rank, error) {
	if strings.HasSuffix(path, digest.Ending) {
		d, err := digest.Open(cmd.Context(), path)
		if err != nil {
			return ranks.Rank{}, err
		}
		return ranks.Of(near(d.Source.Path), d), nil
	}
	src, _ := digest.Stat(cmd.Context(), path, f.read.options()) // whoever opens it says what is wrong
	d, r, err := f.read.digest(cmd, path, src)
	if err != nil {
		return ranks.Rank{}, err
	}
	if page.reports != nil {
		page.each(cmd.Context(), path, r)
	}
	return ranks.Of(path, d), nil
}

// near names a path from here, where that is shorter.
func near(path string) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return path
}

// digests lists those below a folder.
func digests(ctx context.Context, dir string) (found []string) {
	input.Walk(ctx, dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err == nil && !d.IsDir() && strings.HasSuffix(path, digest.Ending):
			found = append(found, path)
		}
		return nil
	})
	return found
}

// unfold puts what is listed of folders in their place.
func unfold(ctx context.Context, args []string, list func(context.Context, string) []string) (files []string) {
	for _, path := range args {
		found := []string{path}
		if info, err := input.Stat(ctx, path); err == nil && info.IsDir() {
			if in := list(ctx, path); len(in) > 0 {
				found = in
			}
		}
		files = append(files, found...)
	}
	return files
}

// ranksPage writes the page of a run, and the reports of its ranks as they come.
type ranksPage struct {
	path    string            // of the page, "" for none
	reports map[string]string // by file, the folder of its report; nil for none
	mu      sync.Mutex
	err     error // the first
}

// newRanksPage takes what -o names.
func newRanksPage(output string, files []string) *ranksPage {
	if output == "" {
		return &ranksPage{}
	}
	p := &ranksPage{path: pagePath(output, "ranks.html")}
	if p.path == output {
		return p
	}
	p.reports = map[string]string{}
	for i, n := range ranks.Numbers(files) {
		if strings.HasSuffix(files[i], digest.Ending) {
			continue
		}
		name := fmt.Sprintf("file%d", i)
		if n >= 0 {
			name = fmt.Sprintf("rank%d", n)
		}
		p.reports[files[i]] = name + report.Ending
	}
	return p
}

// each writes the report of a rank.
func (p *ranksPage) each(ctx context.Context, file string, r *analyze.Result) {
	_, err := report.WriteDir(ctx, input.Join(input.Dir(p.path), p.reports[file]), r, html.DefaultBytes)
	p.mu.Lock()
	p.err = cmp.Or(p.err, err)
	p.mu.Unlock()
}

// write writes the page, once all ranks are known.
func (p *ranksPage) write(ctx context.Context, c *ranks.Comparison) error {
	if p.path == "" || p.err != nil {
		return p.err
	}
	var b bytes.Buffer
	err := html.WriteRanks(&b, c, func(k *ranks.Rank) string {
		if p.reports[k.File] == "" {
			return ""
		}
		return p.reports[k.File] + "/" + report.Page
	})
	if err != nil {
		return err
	}
	return place.Write(ctx, p.path, b.Bytes())
}

var errNoPage = misuse("-o needs the name of a folder, or of a page that ends in .html")

// pagePath is the page that -o names: itself, or that of a folder.
func pagePath(output, name string) string {
	if strings.EqualFold(filepath.Ext(output), ".html") {
		return output
	}
	return input.Join(output, name)
}

func newCompareEnv() *cobra.Command {
	var (
		in  inputFlags
		out outputFlags
	)
	cmd := &cobra.Command{
		Use:   "compare-env A B",
		Short: "Compare the environments of two runs",
		Long: `Compare the environments in two recordings (.snapana files of the recorder): versions,
allocator settings, limits, the machine's memory, how workers are started. Differences
that are known to affect memory come first, each with the reason.`,
		Example: `  snapana compare-env workstation.snapana cluster.snapana`,
		Args:    needs(2, 2, "two FILES, got #"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var files [2]*sidecar.File
			for i, path := range args {
				var err error
				if files[i], err = in.recording(cmd, path); err != nil {
					return err
				}
			}
			c, err := environment.Compare(files[0], files[1])
			if err != nil {
				return err
			}
			return show(cmd, out, c, json.WriteEnvironments, text.Environments)
		},
	}
	in.addLimit(cmd.Flags(), "a file")
	out.add(cmd.Flags(), "print JSON, with everything",
		"also show settings that are the same; a star marks differences")
	return cmd
}
