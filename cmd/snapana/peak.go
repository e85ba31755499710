package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

func newPeak() *cobra.Command {
	var (
		f  stateFlags
		of string
	)
	cmd := &cobra.Command{
		Use:   "peak FILE",
		Short: "Show what was live at the peak, and which code allocated it",
		Long: `Show what was live when memory in use peaked in the trace in FILE (- for standard input).
This is ` + "`snapana state --at peak`" + ` with the same flags; --of takes the peak of another series.`,
		Example: `  snapana peak snapshot.pickle
  snapana peak --of reserved --by pool snapshot.pickle
  snapana peak --tree snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(attribution.Series(), of) {
				return unknown("--of", of, attribution.Series())
			}
			return f.run(cmd, args[0], func(_ *snapshot.Snapshot, t *timeline.Timeline) (attribution.Moment, error) {
				m, err := attribution.Peak(t, of)
				var none *attribution.NoTraceError
				if errors.As(err, &none) {
					err = fmt.Errorf("%w, so its peak is unknown; `snapana state` shows the final state", err)
				}
				return m, err
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&of, "of", "active", "`SERIES` that peaks: "+strings.Join(attribution.Series(), ", "))
	return cmd
}
