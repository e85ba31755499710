package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
)

func newOOM() *cobra.Command {
	var (
		in   inputFlags
		out  outputFlags
		snap string
	)
	cmd := &cobra.Command{
		Use:   "oom LOG",
		Short: "Explain the out-of-memory messages in a training log",
		Long: `Find every out-of-memory message in LOG (- for standard input), check that its figures add
up, and say what they mean and what to do. The first message with figures is explained, the
others are listed.`,
		Example: `  snapana oom train.log
  snapana oom --snapshot snapshot.pickle train.log
  kubectl logs trainer-0 | snapana oom -
  snapana oom --json train.log`,
		Args: needs(1, 1, "one LOG (or - for standard input), got #"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if snap == "-" && args[0] == "-" {
				return fmt.Errorf("standard input cannot be both LOG and --snapshot")
			}
			log, err := oom.OpenLog(args[0], cmd.InOrStdin())
			var packed *oom.PackedError
			switch {
			case errors.As(err, &packed):
				return fmt.Errorf("%w; decompress it on the way: `%s %s | snapana oom -`", err, packed.Cat, packed.Name)
			case err != nil:
				return err
			case log.Messages == 0:
				return fmt.Errorf("%s: no out-of-memory message found; give the log of the process that failed, with its stderr",
					log.Name)
			}
			if snap != "" {
				s, err := in.open(cmd, snap)
				if err != nil {
					return err
				}
				if err := analyze.Join(cmd.Context(), log, s); err != nil {
					return err
				}
			}
			return show(cmd, out, log, json.WriteOOM, text.OOM)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&snap, "snapshot", "", "compare with the same failure in the snapshot in `FILE`")
	in.addReading(fl, "snapshot", "a snapshot")
	out.add(fl, "print JSON, with all messages", "explain every different message")
	return cmd
}
