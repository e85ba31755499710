// Command snapana turns a PyTorch CUDA memory snapshot into a verdict.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/budget"
	"github.com/snapana/snapana/snapshot/input"
)

// inOrder is how long a command may take to end in order once it was told to stop: longer than a
// server waits for its last answers.
const inOrder = 3 * time.Second

func main() {
	log.SetOutput(io.Discard) // there net/http says what stores say without being asked
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var patience atomic.Int64 // of a command that was interrupted
	patience.Store(int64(inOrder))
	ctx = context.WithValue(ctx, patient{}, func() { patience.Store(math.MaxInt64) })
	meter := new(budget.Meter)
	ctx = budget.With(ctx, meter)
	out := &results{Writer: os.Stdout}
	go watch(meter, out, os.Stderr)
	code := make(chan int, 1)
	go func() { code <- run(ctx, os.Args[1:], os.Stdin, out, os.Stderr) }()
	select {
	case c := <-code:
		os.Exit(c)
	case <-ctx.Done():
	}
	stop() // from now on a signal kills
	select {
	case c := <-code:
		os.Exit(c)
	case <-time.After(time.Duration(patience.Load())):
		out.die(context.Canceled)
		os.Exit(failure.KindOf(context.Canceled).Exit)
	}
}

// exitOK is the exit code of success; those of failures are in package failure.
const exitOK = 0

// collectAt is by how many percent the heap may grow before garbage is collected, until a file is read.
const collectAt = 400

// run is the whole program with its surroundings as arguments. It returns the exit code. When ctx is
// done, commands end soon: those that run until Ctrl-C as they should, the others without a word.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// Decoding builds large tables that stay: collecting at every doubling is wasted on them.
	defer debug.SetGCPercent(debug.SetGCPercent(collectAt))

	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stoppable(ctx, stdin))
	meter := newMeter(stderr)
	defer meter.close()
	ctx = input.With(meter.shown(ctx))
	out, ok := stdout.(*results)
	if !ok {
		out = &results{Writer: stdout}
	}
	out.meter, out.json = meter, asksJSON(args)
	root.SetOut(out)
	root.SetErr(stderr)
	var help error // of printing it, for which cobra has no ear
	usual := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var b bytes.Buffer
		cmd.Long = text.Join(cmd.Long)
		out := cmd.OutOrStdout()
		cmd.SetOut(&b)
		usual(cmd, args)
		cmd.SetOut(out)
		_, err := io.WriteString(out, text.Fold(b.String(), look(cmd).Columns()))
		help = written(err)
	})
	cmd, err := root.ExecuteContextC(ctx)
	meter.close()
	if err = cmp.Or(err, help); err != nil {
		fromVariables(cmd) // if the error came before them
		out.expect(cmd)
		err = said(ctx, cmd, err)
	}
	err = cmp.Or(err, out.end(err))
	if err == nil {
		return exitOK
	}
	kind := failure.KindOf(err)
	if kind.Code != failure.Stopped {
		fmt.Fprintf(stderr, "snapana: %s\n", failure.Line(err.Error()))
	}
	return kind.Exit
}

// reader makes a Reader of a function.
type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// stoppable is r with reads that end when ctx does, even of a terminal or a pipe that gives nothing.
func stoppable(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	begin := sync.OnceFunc(func() { // not before something is wanted of r
		go func() {
			_, err := io.Copy(in, r)
			in.CloseWithError(err)
		}()
		context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	})
	return reader(func(p []byte) (int, error) {
		begin()
		return out.Read(p)
	})
}

func newRoot() *cobra.Command {
	var f reportFlags // those of report, for a file alone
	var version bool
	root := &cobra.Command{
		Use:   "snapana FILE",
		Short: "Find out what filled the GPU, from a PyTorch memory snapshot",
		Long: `snapana reads a memory snapshot of PyTorch's CUDA caching allocator, as written by
torch.cuda.memory._dump_snapshot, and says what filled the GPU: live tensors by call stack,
memory that grows from step to step, or reserved memory that is too fragmented to serve a
request. It needs no GPU, no Python and no network, and it never runs code from the file.

Start with: snapana FILE, which prints the verdict; snapana report FILE writes a page, too.
The manual: snapana man.

Exit codes: 0 success; 1 a limit was not kept (check, --fail-on); 2 wrong usage or unreadable
input; 3 the output could not be written, or the system refused; 130 interrupted.`,
		Example: `  snapana snapshot.pickle
  snapana report snapshot.pickle
  gzip -dc snapshot.pickle.gz | snapana -`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "snapana %s\n", toolVersion())
				return err
			}
			if len(args) == 0 && cmd.Flags().NFlag() == 0 {
				return cmd.Help()
			}
			if err := known(cmd, args); err != nil {
				return err
			}
			return f.run(cmd, args[0], false)
		},
	}
	f.add(root)
	root.Flags().VisitAll(func(fl *pflag.Flag) { fl.Hidden = true })
	var looks lookFlags
	looks.add(root)
	var redaction redactFlags
	redaction.add(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if version || cmd == root && len(args) == 0 && cmd.Flags().NFlag() == 0 || strings.HasPrefix(cmd.Name(), "__") {
			return nil // the help, and what shells ask
		}
		if err := fromVariables(cmd); err != nil {
			return err
		}
		if out, ok := cmd.OutOrStdout().(*results); ok {
			out.expect(cmd)
		}
		if err := alone(cmd); err != nil {
			return err
		}
		return cmp.Or(looks.check(), once(cmd, args), spare(cmd, args), redaction.begin(cmd, args))
	}
	root.Flags().BoolVarP(&version, "version", "v", false, "version for snapana")
	root.SetFlagErrorFunc(badFlag)
	root.SetHelpCommand(newHelp(root))
	usage := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		if err := usage(cmd); err != nil || !cmd.HasParent() || cmd.Name() == "help" {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "\nMore: snapana man %s\n", cmd.Name())
		return err
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newReport(), newSummary(), newState(), newPeak(), newAt(), newOOM(), newStats(), newCompareEnv(),
		newRanks(), newDigest(), newFleet(), newDiff(), newCheck(), newWhatif(), newFit(), newPlot(), newExport(), newServe(),
		newMCP(), newGhosts(), newRedact(), newRecorder(), newAttach(), newNVML(), newSchema(), newVersion(), newMan(root),
		newCompletion(root))
	completeAll(root)
	return root
}

// known says whether the arguments of snapana itself are the one file that it judges, or what else they may be.
func known(root *cobra.Command, args []string) error {
	if len(args) > 0 && args[0] != "-" {
		if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(args[0], "./\\") {
			return unknownCommand(root, args[0])
		}
	}
	return oneFile(root, args)
}

// unknownCommand is the error for a word that is no command.
func unknownCommand(root *cobra.Command, word string) error {
	if near := nearest(word, commands(root)); near != "" {
		return failure.Advise("did you mean snapana "+string(near)+"?",
			misuse("unknown command %q (did you mean %s?); for all commands: `snapana help`", word, near))
	}
	return unknown("command", word, commands(root))
}

// commands are the names of the commands.
func commands(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}
