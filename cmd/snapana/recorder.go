package main

import (
	"github.com/spf13/cobra"

	"github.com/snapana/snapana/snapshot/sidecar/recorder"
)

func newRecorder() *cobra.Command {
	return &cobra.Command{
		Use:   "recorder",
		Short: "Print the Python file that records who holds device memory",
		Long: `recorder prints snapana_recorder.py: one file without dependencies, for Python 3.8
to 3.14 and PyTorch 1.13 to 2.14. Put it beside the program that you want to look
at. It writes run.snapana, which says which Python objects keep which tensors, and
the snapshot run.pickle beside it; other commands read both.`,
		Example: `  snapana recorder > snapana_recorder.py
  python -m snapana_recorder train.py --lr 0.1`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(recorder.Source)
			return written(err)
		},
	}
}
