package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
)

func newRanks() *cobra.Command {
	var (
		in  inputFlags
		out outputFlags
	)
	cmd := &cobra.Command{
		Use:   "ranks FILE...",
		Short: "Compare the snapshots of a distributed run: who failed first, who has more?",
		Long: `ranks judges the snapshots of all ranks of a run and puts them side by side: which ran out of
memory first, which verdicts they share, and which rank has more memory than the others, from
where. Ranks are told from the names of the files.

A rank stands out when its peak of active memory is more than 5% and more than three standard
deviations (by the median absolute deviation) above the median; of fewer than 4 ranks none is.
Who failed first goes by the clocks of the machines.

Files that cannot be read are named in the list, and the exit code is then 2.`,
		Example: `  snapana ranks dumps/rank*.pickle
  snapana ranks --json iteration_10/*/memory_snapshot.pickle`,
		Args: needs(1, many, "the FILES of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rules, err := in.readRules()
			if err != nil {
				return err
			}
			c, err := ranks.Read(cmd.Context(), args, func(path string) (*snapshot.Snapshot, error) {
				s, err := in.read(cmd, path, nil)
				return s, inFlags(err)
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
	out.add(cmd.Flags(), "print JSON instead, with all of it", "list all ranks")
	return cmd
}
