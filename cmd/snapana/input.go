package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// inputFlags are the flags of every command that reads a snapshot.
type inputFlags struct {
	partial  bool
	maxBytes size
	index    int
	rules    string
}

func (f *inputFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.partial, "partial", false, "read a damaged or cut file as far as it goes")
	fl.Var(&f.maxBytes, "max-bytes", "refuse input that unpacks to more than `SIZE`, like 8GiB\n(default: 64MiB or 250 times the compressed size)")
	fl.StringVar(&f.rules, "rules", "", "take what memory is for from the patterns in `FILE`, a YAML file, before inferring it")
	fl.IntVar(&f.index, "index", 0, "which snapshot to read from an HTML page that holds several, from 0 on")
}

// open reads the snapshot that the command line names.
func (f *inputFlags) open(cmd *cobra.Command, path string) (*snapshot.Snapshot, error) {
	if f.index < 0 {
		return nil, fmt.Errorf("--index counts from 0, not %d", f.index)
	}
	meter := newMeter(cmd.ErrOrStderr())
	defer meter.close()
	snap, err := f.read(cmd, path, meter.progress)
	var fault *snapshot.FormatError
	if !f.partial && errors.As(err, &fault) && fault.Offset > 0 && (errors.Is(err, snapshot.ErrTruncated) || errors.Is(err, snapshot.ErrCorrupt)) {
		return nil, fmt.Errorf("%w (--partial uses what comes before)", err)
	}
	return snap, err
}

// read is open for one of many files: progress, if it is not nil, is told how far it is.
func (f *inputFlags) read(cmd *cobra.Command, path string, progress func(done, total int64)) (*snapshot.Snapshot, error) {
	opt := load.Options{Partial: f.partial, MaxBytes: int64(f.maxBytes), Index: f.index, Progress: progress}
	var s *snapshot.Snapshot
	var err error
	if path == "-" {
		s, err = load.Read(cmd.Context(), cmd.InOrStdin(), "stdin", opt)
	} else {
		s, err = load.Open(cmd.Context(), path, opt)
	}
	if err != nil {
		return nil, err
	}
	s.Partial = inFlags(s.Partial)
	if s.Pages > 1 {
		s.Missing = append(s.Missing, fmt.Sprintf("%d of the %d snapshots in this page: this is number %d (choose with --index, from 0 on)",
			s.Pages-1, s.Pages, s.Page))
	}
	return s, nil
}

// analyse reads the snapshot that the command line names and analyses it by the rules that it
// names, if any.
func (f *inputFlags) analyse(cmd *cobra.Command, path string, opt analyze.Options) (*analyze.Result, error) {
	rules, err := f.options()
	if err != nil {
		return nil, err
	}
	opt.Rules = rules.Rules
	snap, err := f.open(cmd, path)
	if err != nil {
		return nil, err
	}
	return analyze.Run(cmd.Context(), snap, opt)
}

// reader makes a Reader of a function.
type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// stoppable is r with reads that end when ctx does, even of a terminal or a pipe that gives nothing.
func stoppable(ctx context.Context, r io.Reader) io.Reader {
	begun := sync.OnceValue(func() io.Reader { // not before something is wanted of r
		out, in := io.Pipe()
		go func() {
			_, err := io.Copy(in, r)
			in.CloseWithError(err)
		}()
		context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
		return out
	})
	return reader(func(p []byte) (int, error) { return begun().Read(p) })
}

func (f *inputFlags) options() (analyze.Options, error) {
	if f.rules == "" {
		return analyze.Options{}, nil
	}
	data, err := os.ReadFile(f.rules)
	if err != nil {
		return analyze.Options{}, err
	}
	rules, err := category.ParseRules(data)
	if err != nil {
		return analyze.Options{}, fmt.Errorf("%s: %w", f.rules, err)
	}
	return analyze.Options{Rules: rules}, nil
}

// size is a flag value in bytes.
type size int64

var _ pflag.Value = (*size)(nil)

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (s *size) Type() string { return "size" }

// Set reads a number of bytes with an optional unit: k, M, G, T, each also as KiB or KB; all
// are powers of 1024.
func (s *size) Set(text string) error {
	num := strings.ToLower(strings.TrimSpace(text))
	num = strings.TrimSuffix(strings.TrimSuffix(num, "b"), "i")
	shift := 0
	if n := len(num); n > 0 {
		if at := strings.IndexByte("kmgt", num[n-1]); at >= 0 {
			shift, num = 10*(at+1), strings.TrimSpace(num[:n-1])
		}
	}
	v, err := strconv.ParseFloat(num, 64)
	v = math.Ldexp(v, shift)
	if err != nil || !(v >= 1 && v < math.MaxInt64) {
		return fmt.Errorf("want a size like 512MiB or 8GiB")
	}
	*s = size(v)
	return nil
}
