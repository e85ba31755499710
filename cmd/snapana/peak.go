package main

import (
	"errors"
	"fmt"

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
			return f.run(cmd, args[0], func(_ *snapshot.Snapshot, t *timeline.Timeline) (attribution.Moment, error) {
				m, err := attribution.Peak(t, of)
				var none *attribution.NoTraceError
				if errors.As(err, &none) {
					err = fmt.Errorf("the peak needs a trace, and GPU %d has none in this file; `snapana state` shows what is live at its end", none.Device)
				}
				return m, err
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&of, "of", "active", "`SERIES` that peaks: reserved, active, allocated or requested")
	return cmd
}
