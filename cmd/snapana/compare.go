package main

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func newRanks() *cobra.Command {
	var (
		in  inputFlags
		out outputFlags
	)
	cmd := &cobra.Command{
		Use:   "ranks FILE...",
		Short: "Compare the snapshots of a distributed run",
		Long: `Judge the snapshots of all ranks of a run and compare them: which rank ran out of memory
first, which verdicts the ranks share, and which rank uses more memory than the others,
allocated where. Files that cannot be read are listed, and the exit code is then 2.`,
		Example: `  snapana ranks dumps/rank*.pickle
  snapana ranks --json iteration_10/*/memory_snapshot.pickle`,
		Args: needs(1, many, "the FILES of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rules, err := in.readRules(cmd.Context())
			if err != nil {
				return err
			}
			var files []string
			for _, path := range args {
				found := []string{path}
				if info, err := os.Stat(path); err == nil && info.IsDir() {
					if in := snapshots(cmd.Context(), path); len(in) > 0 {
						found = in
					}
				}
				files = append(files, found...)
			}
			var read atomic.Int64
			meter := meterOf(cmd.Context())
			ctx := stage.With(cmd.Context(), func(stage.Stage, int, int) {}) // several at once
			c, err := ranks.Read(ctx, files, func(path string) (*snapshot.Snapshot, error) {
				meter.at(task{what: "judging ranks", done: read.Load(), total: int64(len(files))})
				defer read.Add(1)
				s, err := in.read(cmd, path, nil)
				return s, explain(cmd.Context(), err)
			}, analyze.Options{Rules: rules})
			if err != nil {
				return err
			}
			err = show(cmd, out, c, json.WriteRanks, text.Ranks)
			if n := len(c.Ranks) - c.Read; err == nil && n > 0 {
				return fmt.Errorf("%d of %d files could not be read", n, len(c.Ranks))
			}
			return err
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags(), "print JSON, with everything", "list all ranks")
	return cmd
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
