package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/plot"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/memstats"
)

func newStats() *cobra.Command {
	var (
		in         inputFlags
		out        outputFlags
		snap, file string
		capacity   size
		metrics    []string
	)
	cmd := &cobra.Command{
		Use:   "stats FILE...",
		Short: "Judge memory counters over time: does memory grow, is it fragmented or cached?",
		Long: `stats reads what programs save of PyTorch's memory counters (- for standard input): dumps of
torch.cuda.memory_stats() and host_memory_stats(), flat or nested, as JSON, JSON lines,
pickle, msgpack, CSV or printed by Python, with step, epoch, device, rank or time in keys
beside them; memory_summary() tables in logs; also list_gpu_processes() and nvidia-smi. They
may be inside gzip, zstd, xz, bzip2 or zip. Several files are several ranks or runs. Of a
recorder's .snapana file it also judges the host: does the process grow by tensors, Python
objects or native memory, do its workers copy what they share, is the machine swapping?

It judges each device:
  growing        live memory rises from step to step and is never given back; teeth,
                 warm-up, plateaus and validation are told apart from that
  fragmentation  requests failed, or reserved memory grows, while much of it is not in use
  cached         little is live, PyTorch keeps the rest: not a leak
  flat           nothing to accuse
  unknown        too few samples

--snapshot compares the last samples with a snapshot of the same process: every counter that
both know, at the same moment of the trace, with a reason for each difference.`,
		Example: `  snapana stats memory_stats.jsonl
  snapana stats --plot memory.png --capacity 80GiB rank*.jsonl
  snapana stats --snapshot snapshot.pickle memory_stats.jsonl
  nvidia-smi | snapana stats -`,
		Args: needs(1, many, "a FILE (or - for standard input)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, ok := medium(file)
			if file != "" && !ok {
				return fmt.Errorf("--plot %s: want a name that ends in .png or .svg", file)
			}
			files := append(args[:len(args):len(args)], snap)
			if i := slices.Index(files, "-"); i >= 0 && slices.Contains(files[i+1:], "-") {
				return fmt.Errorf("standard input can be only one of the files")
			}
			var r analyze.Stats
			opt := analyze.StatsOptions{Options: counters.Options{Metrics: metrics, MaxBytes: int64(in.maxBytes)},
				Capacity: int64(capacity)}
			for _, path := range args {
				if err := r.Add(cmd.Context(), path, cmd.InOrStdin(), opt); err != nil {
					return err
				}
			}
			for i := range r.Files {
				for _, f := range []*memstats.Fault{r.Files[i].Info.Cut, r.Files[i].Info.FirstSkipped} {
					if f != nil {
						f.Msg = advice(f.Msg, f.Err)
					}
				}
			}
			if snap != "" {
				s, err := in.open(cmd, snap)
				if err != nil {
					return err
				}
				r.Compare(s)
			}
			if file != "" {
				p, ok := plot.Series(&r)
				if !ok {
					return fmt.Errorf("--plot: there are no samples to draw")
				}
				if err := draw("plot", p, file, to); err != nil {
					return err
				}
			}
			return show(cmd, out, &r, json.WriteStats, text.Stats)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&file, "plot", "", "draw the series to `FILE`, a .png or .svg")
	fl.Var(&capacity, "capacity", "memory of each device, `SIZE` like 80GiB, to say when it will be full")
	fl.StringSliceVar(&metrics, "metric", nil,
		"also show the counter `NAME`, like active.small_pool.current (repeatable)")
	fl.StringVar(&snap, "snapshot", "", "compare the last samples of the first FILE with the snapshot in `FILE`")
	in.addReading(fl, "snapshot", "a file")
	out.add(fl, "print JSON instead, with all of it", "show every series in full, and every counter of the comparison")
	return cmd
}
