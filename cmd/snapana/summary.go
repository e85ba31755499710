package main

import (
	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
)

func newSummary() *cobra.Command {
	var (
		in     inputFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "summary FILE",
		Short: "Print the main figures of a snapshot, and what it lacks",
		Long: `summary prints one screen about the snapshot in FILE (- for standard input): what
kind of file it is, which torch release wrote it, the devices with their reserved
and active memory, and what the file lacks. It writes no files.`,
		Example: `  snapana summary snapshot.pickle
  snapana summary --json snapshot.pickle
  zstd -dc snapshot.pickle.zst | snapana summary -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := in.analyse(cmd, args[0], analyze.Options{NoReplay: !asJSON})
			if err != nil {
				return err
			}
			if asJSON {
				return written(json.Write(cmd.OutOrStdout(), result))
			}
			return written(text.Summary(cmd.OutOrStdout(), result, look(cmd.OutOrStdout())))
		},
	}
	in.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the analysis as JSON, as report.json has it")
	return cmd
}
