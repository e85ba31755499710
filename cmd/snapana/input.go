package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

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

// analyse is inputFlags.analyse with the recorder's files.
func (f *recorderFlags) analyse(cmd *cobra.Command, in *inputFlags, path string, opt analyze.Options) (*analyze.Result, error) {
	file := f.file
	if file == "" && path != "-" {
		file = sidecar.Beside(path)
	}
	if f.before != "" && file == "" {
		return nil, fmt.Errorf("--before needs the recorder's file of the snapshot too: --recorder")
	}
	read := sidecar.Options{Partial: in.partial, MaxBytes: int64(in.maxBytes)}
	var err error
	if file != "" {
		if opt.Recorder, err = sidecar.Open(cmd.Context(), file, read); err != nil && f.file != "" {
			return nil, err
		}
		opt.Unread = inFlags(err)
	}
	if f.before != "" {
		if opt.Before, err = sidecar.Open(cmd.Context(), f.before, read); err != nil {
			return nil, err
		}
	}
	return in.analyse(cmd, path, opt)
}
