package main

import (
	"github.com/spf13/cobra"

	"github.com/snapana/snapana/snapshot/sidecar/recorder"
)

func newRecorder() *cobra.Command {
	return &cobra.Command{
		Use:   "recorder",
		Short: "Print the Python file that records which objects hold memory",
		Long: `Print snapana_recorder.py, one file without dependencies for Python 3.8 to 3.14 and PyTorch
1.13 to 2.14. Save it beside your program and run the program with it: it writes the snapshot
run.pickle and, beside it, run.snapana, which names the Python objects that keep each tensor.`,
		Example: `  snapana recorder > snapana_recorder.py
  python -m snapana_recorder train.py --lr 0.1`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(recorder.Source)
			return written(err)
		},
	}
}
