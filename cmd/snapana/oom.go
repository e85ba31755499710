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
		Short: "Explain the out-of-memory messages of a training log",
		Long: `oom finds every out-of-memory message in LOG (- for standard input), a text of any size:
those of PyTorch's allocators for CUDA, ROCm, XPU, Ascend and MPS in all releases, of the
cudaMallocAsync backend, and plain errors of CUDA, cuBLAS and NCCL; also with prefixes of
ranks and loggers, colours, HTML, wrapped or cut. Equal messages are counted.

It prints the figures of the first one that has any, splits the device's memory by them
(total = free + other processes + this process's non-PyTorch memory + allocated +
unallocated + residual), says what they mean and what to do, and lists the others.

"tried to allocate" is the segment that the device was asked for, not the tensor: 2 MiB for
up to 1 MiB, 20 MiB for up to 10 MiB, else rounded up to 2 MiB.

--snapshot puts the out-of-memory event of a snapshot of the same failure beside it: the
request, and reserved and allocated bytes as the trace gives them. Where both are of the same
request, it also answers in which circumstances that would have been served.`,
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
				return fmt.Errorf("%w; unpack it into the command: `zcat %s | snapana oom -`", err, packed.Name)
			case err != nil:
				return err
			case log.Messages == 0:
				return fmt.Errorf("%s: no out-of-memory message found; give the log of the process that failed, with its stderr", log.Name)
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
	fl.StringVar(&snap, "snapshot", "", "compare with the out-of-memory event of the snapshot in `FILE`")
	in.addReading(fl, "snapshot", "a snapshot")
	out.add(fl, "print JSON instead, with all messages", "explain every different message")
	return cmd
}
