package main

import (
	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func newCompareEnv() *cobra.Command {
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "compare-env A B",
		Short: "Compare the environments of two runs: why does it leak on one machine only?",
		Long: `compare-env puts two recordings (.snapana files of snapana recorder) side by side and shows in
what their environments differ: versions, settings of the allocators, limits, the machine's
memory, how workers are started. What is known to change memory use comes first, each with
the reason.`,
		Example: `  snapana compare-env workstation.snapana cluster.snapana`,
		Args:    needs(2, 2, "two FILES, not #"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var files [2]*sidecar.File
			for i, path := range args {
				var err error
				if files[i], err = sidecar.Open(cmd.Context(), path, sidecar.Options{}); err != nil {
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
	out.add(cmd.Flags(), "print JSON instead, with all of it", "also show what is the same; a star marks differences")
	return cmd
}
