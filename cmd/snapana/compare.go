package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/report"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func newRanks() *cobra.Command {
	var (
		in  inputFlags
		out outputFlags
		dir string
	)
	cmd := &cobra.Command{
		Use:   "ranks FILE...",
		Short: "Compare the snapshots of a distributed run",
		Long: `Judge the snapshots of all ranks of a run and compare them: which rank ran out of memory
first, which verdicts the ranks share, and which rank uses more memory than the others,
allocated where. A FILE may be a folder of snapshots. Files that cannot be read are listed,
and the exit code is then 2.

With -o the comparison is also a page, with a heat map of all ranks and links to the report of
each, which are in the same folder. A name that ends in .html is the page alone.`,
		Example: `  snapana ranks dumps/
  snapana ranks -o run42 dumps/rank*.pickle
  snapana ranks --json iteration_10/*/memory_snapshot.pickle`,
		Args: needs(1, many, "the FILES of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("output") && dir == "" {
				return errNoPage
			}
			rules, err := in.readRules(cmd.Context())
			if err != nil {
				return err
			}
			files := unfold(cmd.Context(), args)
			page := newRanksPage(dir, files)
			var read atomic.Int64
			meter := meterOf(cmd.Context())
			ctx := stage.With(cmd.Context(), func(stage.Stage, int, int) {}) // several at once
			c, err := ranks.Read(ctx, files, func(path string) (*snapshot.Snapshot, error) {
				meter.at(task{what: "judging ranks", done: read.Load(), total: int64(len(files))})
				defer read.Add(1)
				s, err := in.read(cmd, path, nil)
				return s, explain(cmd.Context(), err)
			}, analyze.Options{Rules: rules}, page.each())
			if err != nil {
				return err
			}
			err = cmp.Or(show(cmd, out, c, json.WriteRanks, text.Ranks), written(page.write(c)))
			if err == nil && page.path != "" && !out.json {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nPage in %s\n", oneLine(page.path))
			}
			if n := len(c.Ranks) - c.Read; err == nil && n > 0 {
				return fmt.Errorf("%d of %d files could not be read", n, len(c.Ranks))
			}
			return err
		},
	}
	in.add(cmd.Flags())
	cmd.Flags().StringVarP(&dir, "output", "o", "", "also write a page and the report of each rank to `FOLDER`,\n"+
		"or to a name that ends in .html the page alone")
	out.add(cmd.Flags(), "print JSON, with everything", "list all ranks")
	return cmd
}

// unfold puts the snapshots in folders in their place.
func unfold(ctx context.Context, args []string) (files []string) {
	for _, path := range args {
		found := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if in := snapshots(ctx, path); len(in) > 0 {
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
		name := fmt.Sprintf("file%d", i)
		if n >= 0 {
			name = fmt.Sprintf("rank%d", n)
		}
		p.reports[files[i]] = name + report.Ending
	}
	return p
}

// each writes the report of a rank; nil where none is wanted.
func (p *ranksPage) each() func(string, *analyze.Result) {
	if p.reports == nil {
		return nil
	}
	return func(file string, r *analyze.Result) {
		_, err := report.WriteDir(filepath.Join(filepath.Dir(p.path), p.reports[file]), r, html.DefaultBytes)
		p.mu.Lock()
		p.err = cmp.Or(p.err, err)
		p.mu.Unlock()
	}
}

// write writes the page, once all ranks are known.
func (p *ranksPage) write(c *ranks.Comparison) error {
	if p.path == "" || p.err != nil {
		return p.err
	}
	var b bytes.Buffer
	err := html.WriteRanks(&b, c, func(k *ranks.Rank) string {
		if p.reports == nil {
			return ""
		}
		return p.reports[k.File] + "/" + report.Page
	})
	if err != nil {
		return err
	}
	return writePage(p.path, b.Bytes())
}

var errNoPage = errors.New("-o needs the name of a folder, or of a page that ends in .html")

// pagePath is the page that -o names: itself, or that of a folder.
func pagePath(output, name string) string {
	if strings.EqualFold(filepath.Ext(output), ".html") {
		return output
	}
	return filepath.Join(output, name)
}

// writePage writes a page, and makes its folder where there is none.
func writePage(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return place.Write(path, data)
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
