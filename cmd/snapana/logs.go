package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/plot"
	"github.com/snapana/snapana/report/text"
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
		Short: "Judge memory counters over time: leak, fragmentation or cache?",
		Long: `Read saved memory counters and judge each device: does its memory grow, is it fragmented, or
is it only cached? FILE (- for standard input) is a dump of torch.cuda.memory_stats(), a log
with memory_summary() tables, output of nvidia-smi or a recorder's .snapana file. Several
files are several ranks or runs.`,
		Example: `  snapana stats memory_stats.jsonl
  snapana stats --plot memory.png --capacity 80GiB rank*.jsonl
  snapana stats --snapshot snapshot.pickle memory_stats.jsonl
  nvidia-smi | snapana stats -`,
		Args: needs(1, many, "a FILE (or - for standard input)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var to plot.Medium
			if file != "" {
				var err error
				if to, err = medium("--plot", file); err != nil {
					return err
				}
			}
			files := append(args[:len(args):len(args)], snap)
			if i := slices.Index(files, "-"); i >= 0 && slices.Contains(files[i+1:], "-") {
				return misuse("standard input (-) can be given only once")
			}
			var r analyze.Stats
			opt := analyze.StatsOptions{Options: counters.Options{Metrics: metrics, MaxBytes: int64(in.maxBytes)},
				Capacity: int64(capacity)}
			for _, path := range args {
				meterOf(cmd.Context()).doing("reading " + failure.Line(filepath.Base(path)))
				err := r.Add(cmd.Context(), path, cmd.InOrStdin(), opt)
				if err != nil && failure.KindOf(err).Code == failure.NotSnapshot {
					err = failure.Mark(failure.NoData, err) // no snapshot is wanted here
				}
				if err != nil {
					return err
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
					return fail(failure.NoData, "--plot: there are no samples to draw")
				}
				if err := draw(cmd.Context(), "plot", p, file, to); err != nil {
					return err
				}
			}
			return show(cmd, out, &r, json.WriteStats, text.Stats)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&file, "plot", "", "draw the series to `FILE` ("+pictures+")")
	addCapacity(fl, &capacity, ": say when it will be full")
	fl.StringSliceVar(&metrics, "metric", nil, "also show the counter `NAME`, like active.small_pool.current "+
		"(repeatable)")
	fl.StringVar(&snap, "snapshot", "", "compare the last samples of the first FILE with the snapshot in `FILE`")
	in.addReading(fl, "snapshot", "a file")
	out.add(fl, "print JSON, with everything", "show every series in full, and every counter of the comparison")
	return cmd
}

func newOOM() *cobra.Command {
	var (
		in       inputFlags
		out      outputFlags
		snap     string
		capacity size
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
				return misuse("standard input cannot be both LOG and --snapshot")
			}
			if capacity > 0 && snap == "" {
				return misuse("--capacity needs --snapshot")
			}
			meterOf(cmd.Context()).doing("reading " + failure.Line(filepath.Base(args[0])))
			log, err := oom.OpenLog(cmd.Context(), args[0], cmd.InOrStdin())
			var packed *oom.PackedError
			switch {
			case errors.As(err, &packed):
				hint := fmt.Sprintf("decompress it on the way: `%s %s | snapana oom -`", packed.Cat, packed.Name)
				return failure.Advise(hint, fmt.Errorf("%w; %s", err, hint))
			case errors.Is(err, syscall.EISDIR):
				return fail(failure.WrongKind, "%s is a directory; name a log in it", failure.Line(args[0]))
			case err != nil:
				return err
			case log.Messages == 0:
				const hint = "give the log of the process that failed, with its stderr"
				return failure.Advise(hint, fail(failure.NoData, "%s: no out-of-memory message found; "+hint, log.Name))
			}
			if snap != "" {
				s, err := in.open(cmd, snap)
				if err != nil {
					return err
				}
				if err := analyze.Join(cmd.Context(), log, s, int64(capacity)); err != nil {
					return err
				}
			}
			return show(cmd, out, log, json.WriteOOM, text.OOM)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&snap, "snapshot", "", "compare with the same failure in the snapshot in `FILE`")
	addCapacity(fl, &capacity, ", with --snapshot (default: as the message says)")
	in.addReading(fl, "snapshot", "a snapshot")
	out.add(fl, "print JSON, with all messages", "explain every different message")
	return cmd
}
