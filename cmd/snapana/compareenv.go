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
	out.add(cmd.Flags(), "print JSON, with everything", "also show settings that are the same; a star marks differences")
	return cmd
}
