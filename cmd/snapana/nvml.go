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
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
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
		Short: "Show the devices and who uses their memory, as the GPU driver counts",
		Long: `nvml asks the GPU driver for each device's memory (total = reserved by the driver + used +
free) and for the processes that use it: compute (C), graphics (G) and MPS (M) ones, each under
the process that started it, with the sum for each such tree; MIG instances; accounting if it is
on; retired pages and ECC errors. It says which memory belongs to ended processes, to other
users, or to workers with a CUDA context of their own.

It needs an NVIDIA driver on this machine, and exits with 3 where there is none.

--watch shows a live table, or one line for each reading where standard output is no terminal,
until Ctrl-C. --record appends each reading to a .snapana file, also one that a program's
recorder is writing.`,
		Example: `  snapana nvml
  snapana nvml --pid 12345
  snapana nvml --watch 1s --record run.snapana
  snapana nvml --watch 5s --json > readings.jsonl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("watch") && every < 10*time.Millisecond {
				return fmt.Errorf("--watch wants a time of at least 10ms, like 1s, not %s", every)
			}
			driver, err := device.Open()
			if err != nil {
				return fmt.Errorf("%w; the other commands do without", err)
			}
			defer driver.Close()
			out := &readings{w: cmd.OutOrStdout(), pid: pid, json: asJSON}
			if record != "" {
				if out.rec, err = openRecord(cmd.Context(), record); err != nil {
					return err
				}
				defer out.rec.Close()
			}
			if every == 0 {
				return out.one(driver.Read(os.DirFS("/proc")))
			}
			return out.watch(cmd.Context(), driver, every)
		},
	}
	fl := cmd.Flags()
	fl.DurationVar(&every, "watch", 0, "read again after each `TIME`, like 1s, until Ctrl-C")
	fl.Int64Var(&pid, "pid", 0, "show only the process with this `NUMBER` and those that it started")
	fl.StringVar(&record, "record", "", "append each reading to `FILE`, a .snapana file")
	fl.BoolVar(&asJSON, "json", false, "print each reading as JSON on one line")
	return cmd
}

// readings is where readings go.
type readings struct {
	w       io.Writer
	pid     int64 // 0 for all
	json    bool
	rec     *recordFile // nil: not recorded
	history map[int64][]int64
}

// one records and prints a single reading.
func (o *readings) one(r *sidecar.Reading) error {
	shown, err := o.take(r)
	if err != nil {
		return err
	}
	if o.pid != 0 && len(shown.Devices) == 0 {
		return fmt.Errorf("process %d has no memory on any device, by what the driver lists", o.pid)
	}
	found := verdict.JudgeReading(r, o.pid)
	if o.json {
		return written(json.WriteNVML(o.w, shown, found))
	}
	return written(text.NVML(o.w, shown, text.NVMLOptions{Options: look(o.w), Only: o.pid != 0, Findings: found}))
}

// take records a reading, and gives the part that is to be shown.
func (o *readings) take(r *sidecar.Reading) (*sidecar.Reading, error) {
	if o.rec != nil {
		if err := o.rec.add(r); err != nil {
			return nil, written(err)
		}
	}
	if o.pid != 0 {
		return device.Only(r, o.pid), nil
	}
	return r, nil
}

// watch reads until ctx is done.
func (o *readings) watch(ctx context.Context, driver *device.Driver, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		r := driver.Read(os.DirFS("/proc"))
		shown, err := o.take(r)
		if err == nil {
			err = o.show(r, shown)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (o *readings) show(r, shown *sidecar.Reading) error {
	switch {
	case o.json:
		return written(json.WriteNVML(o.w, shown, verdict.JudgeReading(r, o.pid)))
	case !isTerminal(o.w):
		_, err := fmt.Fprintln(o.w, text.NVMLLine(shown))
		return written(err)
	}
	var b bytes.Buffer
	opt := text.NVMLOptions{Options: look(o.w), Only: o.pid != 0, Findings: verdict.JudgeReading(r, o.pid), History: o.remember(shown)}
	if err := text.NVML(&b, shown, opt); err != nil {
		return err
	}
	_, err := io.WriteString(o.w, screen(b.String(), height(o.w)))
	return written(err)
}

// remember keeps what was used on each device and returns it in the order of the reading.
func (o *readings) remember(r *sidecar.Reading) [][]int64 {
	if o.history == nil {
		o.history = map[int64][]int64{}
	}
	const most = 64
	var out [][]int64
	for i := range r.Devices {
		g := &r.Devices[i]
		if g.Index == nil || g.Used == nil {
			out = append(out, nil)
			continue
		}
		h := append(o.history[*g.Index], *g.Used)
		h = h[max(len(h)-most, 0):]
		o.history[*g.Index] = h
		out = append(out, h)
	}
	return out
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
	if f, ok := w.(*os.File); ok {
		if _, rows, err := term.GetSize(int(f.Fd())); err == nil && rows > 4 {
			return rows
		}
	}
	return 24
}

// recordFile appends readings to a .snapana file.
type recordFile struct {
	*sidecar.Writer
	header bool // it needs one
}

// openRecord opens a new file, or one that is a .snapana file already: no other is appended to.
// In the file of a program's recorder, a header would take the records that follow away from the
// program, so there is one only where the file breaks and readers have to find the next record.
func openRecord(ctx context.Context, path string) (*recordFile, error) {
	out := &recordFile{header: true}
	data, err := os.Open(path)
	if err == nil {
		defer data.Close()
		first := make([]byte, 1)
		if _, err := io.ReadFull(data, first); err == nil {
			f, err := sidecar.Open(ctx, path, sidecar.Options{})
			switch {
			case err != nil:
				return nil, err
			case first[0]&0xf0 != 0x80 && first[0] != 0xde && first[0] != 0xdf: // no map of MessagePack
				return nil, fmt.Errorf("%s is compressed; nothing can be appended to it", path)
			case len(f.Runs) > 0 && f.Truncated == nil:
				out.header = f.Runs[len(f.Runs)-1].Producer == sidecar.ProducerNVML
			}
		}
	}
	if out.Writer, err = sidecar.Append(path); err != nil {
		return nil, err
	}
	return out, nil
}

func (f *recordFile) add(r *sidecar.Reading) error {
	at := time.Unix(0, r.Time)
	if f.header {
		if err := f.Header(at, sidecar.Header{Producer: sidecar.ProducerNVML, ProducerVersion: toolVersion(), Boot: r.Boot}); err != nil {
			return err
		}
		f.header = false
	}
	return f.NVML(at, r.NVML)
}
