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
		Short: "Show what is live at one moment of the trace, and who holds it",
		Long: `state rebuilds the memory of one GPU as it was at a moment of the trace in FILE (- for
standard input), and groups the live blocks. Pre-trace blocks are counted like all others.

--at names the moment:
  end              after the last event: the dump's own state
  start            before the first event
  peak             at the highest active bytes
  oom              at the last out-of-memory event
  1234 or #1234    right after that event of the trace, from 0 on
  +1.5s or 83ms    that long after the first event
  1750000000000000 at that time, in microseconds since the Unix epoch
  step:3           after a step, from 0 on, or by its name: step:ProfilerStep#3

--by names the groups: ` + attribution.KindWords() + `.
A site is the innermost frame of the program's own code. A module is a path of nn.Module
calls, known by the lines at which their forward was, since stacks have no class names.

"pinned" is the reserved memory of all segments in which a group has a block: while it
lives, they cannot be released. Groups share segments, so that these do not sum up.`,
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
	cmd.Flags().StringVar(&at, "at", "end", "`MOMENT`, as above")
	return cmd
}

// locate finds the moment that --at names.
func locate(s *snapshot.Snapshot, t *timeline.Timeline, at string) (attribution.Moment, error) {
	m, err := attribution.Locate(s, t, at)
	var none *attribution.NoTraceError
	switch {
	case errors.As(err, &none):
		err = fmt.Errorf("--at %s needs a trace, and GPU %d has none in this file: only --at end is known",
			at, none.Device)
	case err != nil:
		err = fmt.Errorf("--at %w", err)
	}
	return m, err
}
