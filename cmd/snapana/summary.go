package main

import (
	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
)

func newSummary() *cobra.Command {
	var (
		in  inputFlags
		out outputFlags
	)
	cmd := &cobra.Command{
		Use:   "summary FILE",
		Short: "Print the main figures of a snapshot, and what it lacks",
		Long: `Print one screen about the snapshot in FILE (- for standard input): the kind of file, the
torch release that wrote it, the main figures of each device, and what the file lacks. No
files are written.`,
		Example: `  snapana summary snapshot.pickle
  snapana summary --json snapshot.pickle
  zstd -dc snapshot.pickle.zst | snapana summary -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := in.analyze(cmd, args[0], analyze.Options{NoReplay: !out.json})
			if err != nil {
				return err
			}
			return show(cmd, out, result, json.Write, text.Summary)
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags(), "print the analysis as JSON, as report.json has it", "")
	return cmd
}
