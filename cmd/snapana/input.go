package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/memstats"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// open reads the snapshot that the command line names.
func (f *inputFlags) open(cmd *cobra.Command, path string) (*snapshot.Snapshot, error) {
	if f.index < 0 {
		return nil, fmt.Errorf("invalid --index %d; expected 0 or more", f.index)
	}
	meter := newMeter(cmd.ErrOrStderr())
	defer meter.close()
	snap, err := f.read(cmd, path, meter.progress)
	var fault *snapshot.FormatError
	if !f.partial && errors.As(err, &fault) && fault.Offset > 0 &&
		(errors.Is(err, snapshot.ErrTruncated) || errors.Is(err, snapshot.ErrCorrupt)) {
		return nil, fmt.Errorf("%w (--partial uses what comes before)", err)
	}
	return snap, err
}

// read is open for one of many files: progress, if it is not nil, is told how far it is.
func (f *inputFlags) read(cmd *cobra.Command, path string,
	progress func(done, total int64)) (*snapshot.Snapshot, error) {
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
		s.Missing = append(s.Missing,
			fmt.Sprintf("%d of the %d snapshots in this page: this is number %d, counted from 0 (choose with --index)",
				s.Pages-1, s.Pages, s.Page))
	}
	return s, nil
}

// readRules reads the rules that the command line names, if any.
func (f *inputFlags) readRules() ([]category.Rule, error) {
	if f.rules == "" {
		return nil, nil
	}
	data, err := os.ReadFile(f.rules)
	if err != nil {
		return nil, err
	}
	rules, err := category.ParseRules(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", f.rules, err)
	}
	return rules, err
}

// analyze reads the snapshot that the command line names and analyzes it by the rules that it
// names, if any.
func (f *inputFlags) analyze(cmd *cobra.Command, path string, opt analyze.Options) (*analyze.Result, error) {
	var err error
	if opt.Rules, err = f.readRules(); err != nil {
		return nil, err
	}
	snap, err := f.open(cmd, path)
	if err != nil {
		return nil, err
	}
	return analyze.Run(cmd.Context(), snap, opt)
}

// analyze is inputFlags.analyze with the recorder's files.
func (f *recorderFlags) analyze(cmd *cobra.Command, in *inputFlags, path string,
	opt analyze.Options) (*analyze.Result, error) {
	file := f.file
	if file == "" && path != "-" {
		file = sidecar.Beside(path)
	}
	if f.before != "" && file == "" {
		return nil, fmt.Errorf("--before needs the recorder's file of this snapshot too; name it with --recorder")
	}
	var err error
	if file != "" {
		if opt.Recorder, err = in.recording(cmd, file); err != nil && f.file != "" {
			return nil, err
		}
		opt.Unread = inFlags(err)
	}
	if f.before != "" {
		if opt.Before, err = in.recording(cmd, f.before); err != nil {
			return nil, err
		}
	}
	return in.analyze(cmd, path, opt)
}

// read adds the driver's side of a report, of now or of a recording.
func (f *driverFlags) read(cmd *cobra.Command, in *inputFlags, opt *analyze.Options) (err error) {
	switch {
	case f.live && f.readings != "":
		return fmt.Errorf("--nvml and --readings cannot be used together")
	case f.readings != "":
		opt.Readings, err = in.recording(cmd, f.readings)
	case f.live:
		driver, err := device.Open()
		if err != nil {
			return fmt.Errorf("%w; without --nvml the report needs none", err)
		}
		defer driver.Close()
		opt.Live = driver.Read(os.DirFS("/proc"))
	}
	return err
}

// inFlags adds to an error of reading what to do about it, in flags and commands of the program.
func inFlags(err error) error {
	var fault *snapshot.FormatError
	if !errors.As(err, &fault) {
		return err
	}
	said := *fault
	if said.Msg = advice(fault.Msg, fault.Err); said.Msg == fault.Msg {
		return err
	}
	return &said
}

// advice is inFlags for the message of an error of that class.
func advice(msg string, class error) string {
	var limit *snapshot.LimitError
	switch isSnapshot := errors.Is(class, snapshot.ErrSnapshot); {
	case errors.As(class, &limit) && limit.Bytes > 0:
		return fmt.Sprintf("exceeds the %d bytes that --max-bytes allows", limit.Bytes)
	case limit != nil:
		return msg + "; if you trust it, allow more with --max-bytes"
	case errors.Is(class, sidecar.ErrForeign) && isSnapshot:
		return msg + "; give a snapshot as FILE, and the recorder's file with --recorder"
	case errors.Is(class, sidecar.ErrForeign):
		return msg + "; `snapana recorder` prints the recorder that writes them"
	case isSnapshot:
		return msg + "; use `snapana report`"
	case errors.Is(class, memstats.ErrLongPickle):
		return msg + ", or use `snapana report` if it is a snapshot"
	}
	return msg
}
