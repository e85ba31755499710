package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func newNVML() *cobra.Command {
	var (
		every  time.Duration
		pid    int64
		record string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "nvml",
		Short: "Show who uses the GPUs' memory, as counted by their driver",
		Long: `Ask the GPU driver for the memory of each device and the processes that use it, and say
which of it belongs to ended processes, to other users, or to workers with a CUDA context
of their own. It needs an NVIDIA driver on this machine, and exits with 3 without one. The
driver's library is asked, or in a build without cgo nvidia-smi.`,
		Example: `  snapana nvml
  snapana nvml --pid 12345
  snapana nvml --watch 1s -o run.snapana
  snapana nvml --watch 5s --json > readings.jsonl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("watch") && every < 10*time.Millisecond {
				return misuse("invalid --watch %s; expected at least 10ms, like 1s", every)
			}
			driver, err := device.Open()
			if err != nil {
				return fmt.Errorf("%w; the other commands need none", err)
			}
			defer driver.Close()
			out := &readings{driver: driver, w: cmd.OutOrStdout(), pid: pid, json: asJSON,
				look: func() text.Options { return look(cmd) }}
			if record != "" {
				if err := place.MkdirAll(input.Dir(record)); err != nil {
					return written(err)
				}
				if out.rec, err = sidecar.Append(cmd.Context(), record, toolVersion()); err != nil {
					return err
				}
				defer out.rec.Close()
			}
			if every > 0 {
				flow(cmd)
			}
			return out.run(cmd.Context(), every)
		},
	}
	fl := cmd.Flags()
	fl.DurationVar(&every, "watch", 0, "repeat every `TIME`, like 1s, until Ctrl-C")
	fl.Int64Var(&pid, "pid", 0, "show only the process with this `NUMBER` and its children")
	fl.StringVarP(&record, "output", "o", "", "append each reading to `FILE` (.snapana)")
	addBrief(fl)
	fl.BoolVar(&asJSON, "json", false, "print each reading as JSON on one line")
	return cmd
}

// readings is where readings come from and where they go.
type readings struct {
	driver *device.Driver
	w      io.Writer
	pid    int64 // 0 for all
	json   bool
	look   func() text.Options // anew each time: a window may change its size
	rec    *sidecar.Writer     // nil: not recorded
}

// run prints a reading, and every so often another until ctx is done; 0 is only once.
func (o *readings) run(ctx context.Context, every time.Duration) error {
	tick, history := time.Tick(every), device.History{} // tick is nil for 0
	for {
		all := o.driver.Read(os.DirFS("/proc"))
		if o.rec != nil {
			if err := o.rec.Add(all); err != nil {
				return written(err)
			}
		}
		r := all
		if o.pid != 0 {
			r = device.Only(all, o.pid)
		}
		opt := text.NVMLOptions{Options: o.look(), Only: o.pid != 0, Findings: verdict.JudgeReading(all, o.pid)}
		var err error
		switch {
		case every == 0 && o.pid != 0 && len(r.Devices) == 0:
			return fail(failure.NoData, "process %d has no memory on any device, according to the driver", o.pid)
		case o.json:
			err = json.WriteNVML(o.w, r, opt.Findings)
		case every == 0:
			err = text.NVML(o.w, r, opt)
		case !isTerminal(o.w):
			_, err = fmt.Fprintln(o.w, text.NVMLLine(r))
		default:
			var b bytes.Buffer
			opt.History = history.Add(r)
			if err = text.NVML(&b, r, opt); err == nil {
				_, err = io.WriteString(o.w, screen(b.String(), height(o.w)))
			}
		}
		if err != nil || every == 0 {
			return written(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}

// screen draws a text over what the terminal shows, cut to its height so that it does not scroll.
func screen(s string, rows int) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if len(lines) > rows-1 {
		lines = append(lines[:rows-2:rows-2], "... (a taller window shows more)")
	}
	return "\x1b[H" + strings.Join(lines, "\x1b[K\n") + "\x1b[K\n\x1b[J"
}

func height(w io.Writer) int {
	if f := file(w); f != nil {
		if _, rows, err := term.GetSize(int(f.Fd())); err == nil && rows > 4 {
			return rows
		}
	}
	return 24
}
