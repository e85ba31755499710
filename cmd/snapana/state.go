package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

func newState() *cobra.Command {
	var (
		f  stateFlags
		at string
	)
	cmd := &cobra.Command{
		Use:   "state FILE",
		Short: "Show what was live at a moment, and which code allocated it",
		Long: `Rebuild the memory of one GPU at a moment of the trace in FILE (- for standard input), and
show the live blocks in groups, largest first.`,
		Example: `  snapana state snapshot.pickle
  snapana state --at oom --by stack snapshot.pickle
  snapana state --at +1.5s --by module --tree snapshot.pickle
  snapana state --at oom --map segments.svg --map-by category snapshot.pickle
  snapana state --at 1234 --match 'model\.py' --exclude optim --json snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], func(s *snapshot.Snapshot, t *timeline.Timeline) (attribution.Moment, error) {
				return locate(s, t, at)
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&at, "at", "end", "`MOMENT`: "+attribution.AtWords)
	return cmd
}

// locate finds the moment that --at names.
func locate(s *snapshot.Snapshot, t *timeline.Timeline, at string) (attribution.Moment, error) {
	m, err := attribution.Locate(s, t, at)
	var none *attribution.NoTraceError
	switch {
	case errors.As(err, &none):
		err = fmt.Errorf("invalid --at %q; %w, only the final state (--at end)", at, err)
	case err != nil:
		err = fmt.Errorf("invalid --at %q; %w", at, err)
	}
	return m, err
}
