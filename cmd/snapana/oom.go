package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/oomlog"
)

func newOOM() *cobra.Command {
	var (
		in          inputFlags
		snap        string
		all, asJSON bool
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("oom needs one LOG (or - for standard input), got %d; see `%s --help`", len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if snap == "-" && args[0] == "-" {
				return fmt.Errorf("standard input cannot be both LOG and --snapshot")
			}
			name, log, err := readLog(cmd, args[0])
			if err != nil {
				return err
			}
			if log.Messages == 0 {
				return fmt.Errorf("%s: no out-of-memory message found; give the log of the process that failed, with its stderr", name)
			}
			var events []oomlog.Event
			var snapName string
			var s *snapshot.Snapshot
			if snap != "" {
				if s, err = in.open(cmd, snap); err != nil {
					return err
				}
				snapName, events = s.Name, oomEvents(s)
			}
			r := oomlog.NewReport(name, log, snapName, events)
			failure, err := failureOf(cmd.Context(), s, r)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if asJSON {
				return written(json.WriteOOM(w, r, failure))
			}
			return written(text.OOM(w, r, text.OOMOptions{Options: look(w), All: all, Failure: failure}))
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&snap, "snapshot", "", "compare with the out-of-memory event of the snapshot in `FILE`")
	fl.BoolVar(&in.partial, "partial", false, "read a damaged or cut snapshot as far as it goes")
	fl.Var(&in.maxBytes, "max-bytes", "refuse a snapshot that unpacks to more than `SIZE`, like 8GiB\n(default: 64MiB or 250 times the compressed size)")
	fl.IntVar(&in.index, "index", 0, "which snapshot to read from an HTML page that holds several, from 0 on")
	fl.BoolVar(&all, "all", false, "explain every different message")
	fl.BoolVar(&asJSON, "json", false, "print JSON instead, with all messages")
	return cmd
}

// readLog collects the messages of the log that the command line names.
func readLog(cmd *cobra.Command, path string) (name string, log oomlog.Log, err error) {
	var r io.Reader = cmd.InOrStdin()
	name = "stdin"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", log, err
		}
		defer f.Close()
		r, name = f, filepath.Base(path)
	}
	br := bufio.NewReader(r)
	if head, _ := br.Peek(2); len(head) == 2 && (head[0] == 0x1f && head[1] == 0x8b || head[0] == 0x28 && head[1] == 0xb5) {
		return "", log, fmt.Errorf("%s is compressed; unpack it into the command: `zcat %s | snapana oom -`", name, name)
	}
	err = oomlog.Scan(br, func(m oomlog.Message) error {
		log.Add(m)
		return nil
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return name, log, err
}

// failureOf explains the request that both the main message and the snapshot are about, with the
// device's size of the message. It is nil when that is not the last one that failed.
func failureOf(ctx context.Context, s *snapshot.Snapshot, r *oomlog.Report) (*oom.Report, error) {
	if r.Match == nil || !r.Match.Same {
		return nil, nil
	}
	a, err := analyze.Run(ctx, s, analyze.Options{Capacity: r.Main.Total.Bytes})
	if err != nil {
		return nil, err
	}
	for _, d := range a.Devices {
		if d.OOM != nil && d.Timeline.Device == r.Match.Event.Device && d.OOM.Event == r.Match.Event.Index {
			return d.OOM, nil
		}
	}
	return nil, nil
}

// oomEvents lists the out-of-memory events of a snapshot with the rebuilt state at each.
func oomEvents(s *snapshot.Snapshot) []oomlog.Event {
	var out []oomlog.Event
	for _, d := range s.UsedDevices() {
		if d >= len(s.Traces) {
			continue
		}
		t := timeline.Build(s, d)
		for _, e := range t.OOMs {
			out = append(out, oomlog.Event{
				Device: d, Index: e.Event, Time: t.Trace.At(e.Event).Time, Requested: e.Requested, Free: e.DeviceFree,
				Reserved: e.After.Reserved, Allocated: e.After.Allocated, Site: attribution.Site(s, e.Stack),
			})
		}
	}
	return out
}
