package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/attach"
)

// historyEntries is how long a history attach turns on, as the recorder does by itself.
const historyEntries = 1_000_000

func newAttach() *cobra.Command {
	var (
		now      bool
		record   time.Duration
		output   string
		patience time.Duration
	)
	cmd := &cobra.Command{
		Use:   "attach PID",
		Short: "Record a program that is running",
		Long: `Have the running PyTorch program with the process number PID write a snapshot, and beside it
the recorder's file, which names the Python objects that keep each tensor. --dump, the default,
takes what is there now; --record 60s first records all allocations for a minute. Afterwards
everything in the program is as it was before.

It works with Python 3.14 and later as it is, for the same user or root. An older Python
answers if the program was started with ` + "`python -m snapana_recorder`" + `, or called listen() of it.
Linux only.`,
		Example: `  snapana attach 12345
  snapana attach 12345 --record 60s -o slow
  snapana report slow.pickle`,
		Args: needs(1, 1, "one PID, the number of a process"),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := strconv.ParseInt(args[0], 10, 32)
			if err != nil || pid <= 0 {
				return misuse("invalid PID %q; expected the number of a process, as `nvidia-smi` and `ps` show it",
					args[0])
			}
			if cmd.Flags().Changed("record") && (record < time.Second || record > 24*time.Hour) {
				return misuse("invalid --record %s; expected a time from 1s to 24h", record)
			}
			if patience < time.Second {
				return misuse("invalid --timeout %s; expected at least 1s", patience)
			}
			out := output
			for _, end := range []string{".pickle", ".snapana"} {
				out = strings.TrimSuffix(out, end)
			}
			if output == "" {
				out = "attach-" + args[0]
			}
			if name := filepath.Base(out); name == "." || name == ".." || strings.HasSuffix(out, "/") {
				return misuse("invalid -o %q; expected the name of files without its ending, like slow", output)
			}
			takeTime(cmd.Context())
			meter := meterOf(cmd.Context())
			meter.doing(fmt.Sprintf("waiting for process %d", pid))
			res, err := attach.Run(cmd.Context(), attach.Options{PID: int(pid), Record: record, Output: out,
				Patience: patience, MaxEntries: historyEntries, Progress: func(time.Duration) {
					meter.doing(fmt.Sprintf("recording process %d for %s (Ctrl-C ends it and takes what there is)", pid, record))
				}})
			meter.close()
			if err != nil {
				return attachError(int(pid), err)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), attached(int(pid), record, out, res, look(cmd)))
			return written(err)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&now, "dump", false, "take what is there now (the default)")
	fl.DurationVar(&record, "record", 0, "record all allocations for `TIME`, like 60s, until Ctrl-C at the latest")
	fl.StringVarP(&output, "output", "o", "", "write `NAME`.pickle and NAME.snapana (default: attach-PID)")
	fl.DurationVar(&patience, "timeout", 30*time.Second, "give up when the program runs no Python code for `TIME`")
	cmd.MarkFlagsMutuallyExclusive("dump", "record")
	return cmd
}

const nextStep = "Next    "

// attached says what was recorded, and what to do with it.
func attached(pid int, record time.Duration, out string, r attach.Result, o text.Options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Process %d, Python %s: ", pid, failure.Line(r.Python))
	if record == 0 {
		b.WriteString("dumped.")
	} else {
		fmt.Fprintf(&b, "recorded for %s.", r.Elapsed.Round(time.Second))
	}
	if r.Exited {
		b.WriteString(" The program came to its end.")
	}
	b.WriteString("\n")
	width := max(len(relative(out, r.Snapshot)), len(relative(out, r.Recording)))
	line := func(path, what string) {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, relative(out, path), what)
	}
	if r.Snapshot != "" {
		switch {
		case r.WasOn:
			line(r.Snapshot, "the snapshot, with the history that was on already")
		case r.Recorded:
			line(r.Snapshot, "the snapshot, with the history of this time")
		default:
			line(r.Snapshot, "the snapshot, without a history: none was recorded (--record 60s does)")
		}
	}
	line(r.Recording, "the Python objects that hold tensors")
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "The recorder in the program failed in part: %s\n", failure.Line(f))
	}
	next := ""
	switch {
	case r.Snapshot != "":
		next = "report " + text.Arg(failure.Line(relative(out, r.Snapshot)))
	case r.CUDA:
		b.WriteString("No snapshot: it could not be written.\n")
	default:
		b.WriteString("No snapshot: the program has not used a GPU.\n")
		next = "ghosts " + text.Arg(failure.Line(relative(out, r.Recording)))
	}
	if next != "" { // to be copied, however long it is
		next = nextStep + "snapana " + next + "\n"
	}
	return text.Fold(b.String(), o.Columns()) + next
}

// relative is the path of a file as the user wrote the name of the files, out.
func relative(out, path string) string {
	if path == "" || filepath.IsAbs(out) {
		return path
	}
	return filepath.Join(filepath.Dir(out), filepath.Base(path))
}

// attachError is an error of attach with the way out.
func attachError(pid int, err error) error {
	var e *attach.Error
	if !errors.As(err, &e) {
		return err
	}
	listen := "start it with `python -m snapana_recorder` (from `snapana recorder`), which listens"
	advice := map[attach.Kind]string{
		attach.NoProcess: "run `snapana attach` where `ps` shows it, inside of its container",
		attach.Version:   "for the next run, " + listen,
		attach.Disabled:  "for the next run, " + listen + ", or without that setting",
		attach.OtherUser: "run `snapana attach` as that user or as root",
		attach.Rights: "run as root or with CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE); or, for the next run, " +
			listen,
		attach.Busy: "try again when that has ended",
		attach.Unanswered: "its main thread waits in C, for the GPU, another rank or a lock; the request was withdrawn " +
			"and nothing will run later; try again, with a longer --timeout",
		attach.NoTorch:     noTorch(e.Children),
		attach.Refused:     "for the next run, " + listen,
		attach.Unsupported: "elsewhere, start the program with `python -m snapana_recorder`",
	}
	if way := advice[e.Kind]; way != "" {
		return fmt.Errorf("attach to process %d: %w; %s", pid, err, way)
	}
	return fmt.Errorf("attach to process %d: %w", pid, err)
}

// noTorch is what to do about a process without PyTorch, which may be a launcher.
func noTorch(children []int) string {
	if len(children) == 0 {
		return "try again when the program has"
	}
	list := make([]string, len(children))
	for i, c := range children {
		list[i] = strconv.Itoa(c)
	}
	return "a launcher? It has started Python in " + strings.Join(list, ", ") + ": attach to one of these"
}

// patient is the key of a context's func() that lets main wait for the command, however long it takes to end.
type patient struct{}

// takeTime lets a command that was interrupted finish, however long that takes: another signal ends it.
func takeTime(ctx context.Context) {
	if f, ok := ctx.Value(patient{}).(func()); ok {
		f()
	}
}
