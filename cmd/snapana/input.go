package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/window"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// inputFlags are the flags of every command that reads a snapshot.
type inputFlags struct {
	partial  bool
	maxBytes size
	index    int
	rules    string
	window   window.Span // what of the trace is wanted, all where neither end is given
}

func (f *inputFlags) add(fl *pflag.FlagSet) {
	f.addReading(fl, "file", "input")
	f.addWindow(fl)
	f.addRules(fl)
}

func (f *inputFlags) addRules(fl *pflag.FlagSet) {
	fl.StringVar(&f.rules, "rules", "", "`FILE` of your own patterns for what memory is for (YAML)")
}

// addReading adds those that say how to read. The words are what may be damaged, and what may unpack
// to much.
func (f *inputFlags) addReading(fl *pflag.FlagSet, damaged, large string) {
	fl.BoolVar(&f.partial, "partial", false, "read a damaged or truncated "+damaged+" as far as possible")
	f.addLimit(fl, large)
	fl.IntVar(&f.index, "index", 0, "`NUMBER` of the snapshot in an HTML page that has several, from 0")
}

// addWindow adds those that choose a part of the trace.
func (f *inputFlags) addWindow(fl *pflag.FlagSet) {
	f.window.Device = -1
	fl.StringVar(&f.window.From, "from", "", "read the trace from `HERE` on:\n"+window.EdgeWords)
	fl.StringVar(&f.window.To, "to", "", "read it up to `HERE`; the file may be larger than memory")
}

// addLimit adds the bound on what files unpack to, which every command has that reads packed ones.
func (f *inputFlags) addLimit(fl *pflag.FlagSet, large string) {
	fl.Var(&f.maxBytes, "max-bytes", "refuse "+large+" that unpacks to more than `SIZE`, like 8GiB\n"+
		fmt.Sprintf("(default: %dMiB or %d times the compressed size, whichever is larger)", snapshot.FreeBytes>>20,
			snapshot.MaxRatio))
}

// recording reads a .snapana file as the flags say.
func (f *inputFlags) recording(cmd *cobra.Command, path string) (*sidecar.File, error) {
	meterOf(cmd.Context()).doing("reading " + failure.Line(filepath.Base(path)))
	return sidecar.Open(cmd.Context(), path, sidecar.Options{Partial: f.partial, MaxBytes: int64(f.maxBytes)})
}

// recorderFlags name the recorder's files that belong to a snapshot.
type recorderFlags struct{ file, before string }

func (f *recorderFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.file, "recorder", "", "`FILE` of the recorder (default: NAME.snapana beside NAME.pickle, if any)")
	fl.StringVar(&f.before, "before", "", "compare with the last dump in an earlier `FILE` of the recorder\n"+
		"(default: with the first dump of the same run)")
}

// driverFlags name what the driver says of the devices' memory.
type driverFlags struct {
	live     bool
	readings string
}

func (f *driverFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.readings, "readings", "", "account for all memory of the device, by the driver's readings\n"+
		"in `FILE` (.snapana) of the same run")
	fl.BoolVar(&f.live, "nvml", false, "account for all memory of the device, by reading the driver now:\n"+
		"for a snapshot that was just written")
}

// outputFlags say how to print a result.
type outputFlags struct{ json, all bool }

// add adds --json with its help, and --all unless its help is empty.
func (f *outputFlags) add(fl *pflag.FlagSet, json, all string) {
	fl.BoolVar(&f.json, "json", false, json)
	addBrief(fl)
	if all != "" {
		fl.BoolVar(&f.all, "all", false, all)
	}
}

// formatFlag chooses how a result is printed that can be Markdown too.
type formatFlag string

var formats = []string{"text", "md", "json"}

func (f *formatFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(f), "format", "text",
		"print as `FORMAT`: text, md (Markdown for issues and chats) or json")
	oneOf(cmd, "format", formats)
}

// check wants a format that is known, and none beside flags, which it names, that choose another.
func (f formatFlag) check(cmd *cobra.Command, others bool, names string) error {
	switch {
	case others && cmd.Flags().Changed("format"):
		return misuse("--format cannot be used with %s", names)
	case !slices.Contains(formats, string(f)):
		return unknown("--format", string(f), formats)
	}
	return nil
}

// addCapacity adds --capacity, which goes before what files say. why is what the help says of it.
func addCapacity(fl *pflag.FlagSet, to *size, why string) {
	fl.Var(to, "capacity", "memory of each GPU, a `SIZE` like 80GiB"+why)
}

// addForeign adds --foreign, what of --capacity is not to be had.
func addForeign(fl *pflag.FlagSet, to *size) {
	fl.Func("foreign", "`SIZE` of --capacity that PyTorch cannot have: CUDA context, other processes",
		func(text string) error {
			if *to = 0; text == "0" {
				return nil
			}
			return to.Set(text)
		})
	fl.Lookup("foreign").DefValue = "512MiB"
}

// foreignFits wants --foreign to go with --capacity, and to leave something of it.
func foreignFits(cmd *cobra.Command, capacity, foreign size) error {
	switch {
	case cmd.Flags().Changed("foreign") && capacity == 0:
		return misuse("--foreign needs --capacity")
	case capacity > 0 && foreign >= capacity:
		return misuse("invalid --foreign; expected less than --capacity")
	}
	return nil
}

// deviceFlag chooses one device of a snapshot, by its ordinal.
type deviceFlag int

func (f *deviceFlag) add(fl *pflag.FlagSet) {
	fl.IntVar((*int)(f), "device", -1, "`NUMBER` of the GPU (default: the one that reserved most)")
	fl.Lookup("device").DefValue = "0" // keeps -1 out of the help
}

// open reads a snapshot and builds the timeline of the device that was asked for, or else of the one
// with the highest peak of reserved memory, and says why when there were others.
func (f *deviceFlag) open(cmd *cobra.Command, in *inputFlags, path string) (
	s *snapshot.Snapshot, t *timeline.Timeline, why string, err error) {
	if cmd.Flags().Changed("device") {
		in.window.Device = int(*f)
	}
	if s, err = in.open(cmd, path); err != nil {
		return nil, nil, "", err
	}
	given := cmd.Flags().Changed("device")
	if t, err = f.timeline(cmd, s, given); err == nil && !given && len(s.UsedDevices()) > 1 {
		why = fmt.Sprintf("of %d in the file, the one that reserved most; choose with --device", len(s.UsedDevices()))
	}
	return s, t, why, err
}

// timeline builds the timeline of the device if it was given, or else of the one that reserved most.
func (f *deviceFlag) timeline(cmd *cobra.Command, s *snapshot.Snapshot, given bool) (*timeline.Timeline, error) {
	used := s.UsedDevices()
	switch {
	case given && !slices.Contains(used, int(*f)):
		return nil, fail(failure.NotInFile, "invalid --device %d; the file has memory of %s", *f, deviceWords(used))
	case len(used) == 0:
		return nil, fail(failure.NoData, "%s has no segments and no events, so nothing is live in it", s.Name)
	}
	stage.At(cmd.Context(), stage.Rebuilding, 0, 0)
	if given {
		return timeline.Build(s, int(*f)), nil
	}
	return timeline.Main(s), nil
}

func deviceWords(used []int) string {
	const most = 8
	if len(used) == 0 {
		return "no GPU"
	}
	words := strings.Trim(strings.ReplaceAll(fmt.Sprint(used[:min(len(used), most)]), " ", ", "), "[]")
	if len(used) > most {
		words += fmt.Sprintf(", ... (%d in total)", len(used))
	}
	return "GPU " + words
}

// open reads the snapshot that the command line names.
func (f *inputFlags) open(cmd *cobra.Command, path string) (*snapshot.Snapshot, error) {
	if f.index < 0 {
		return nil, misuse("invalid --index %d; expected 0 or more", f.index)
	}
	snap, err := f.read(cmd, path, meterOf(cmd.Context()).reading(filepath.Base(path)))
	var fault *snapshot.FormatError
	if !f.partial && errors.As(err, &fault) && fault.Offset > 0 &&
		(errors.Is(err, snapshot.ErrTruncated) || errors.Is(err, snapshot.ErrCorrupt)) {
		return nil, failure.Advise("add --partial, which uses what comes before",
			fmt.Errorf("%w (--partial uses what comes before)", err))
	}
	if err == nil {
		// What decoding needed is garbage now, and what each analysis needs soon is: as much as all events. There is
		// hardly a pointer in it, so that to collect now and then costs less than new pages do.
		events := 1
		for _, t := range snap.Traces {
			events += t.Len()
		}
		debug.SetGCPercent(min(max(100*garbage/(perEvent*events), 10), roomy))
	}
	return snap, err
}

// Between two collections of a large file's analysis come about so many bytes of garbage; an event and its life take so
// many. In a small file's report most of the heap are pictures, which have no pointers: it may grow by so many percent.
const (
	garbage  = 32 << 20
	perEvent = 60
	roomy    = 75
)

// read is open for one of many files: progress, if it is not nil, is told how far it is.
func (f *inputFlags) read(cmd *cobra.Command, path string,
	progress func(done, total int64)) (*snapshot.Snapshot, error) {
	opt := load.Options{Partial: f.partial, MaxBytes: int64(f.maxBytes), Index: f.index, Progress: progress}
	var s *snapshot.Snapshot
	var err error
	if f.window.From+f.window.To != "" {
		s, err = f.readWindow(cmd, path, opt)
	} else if path == "-" {
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

// readWindow reads a part of the trace. Steps are those of the recorder's file beside the snapshot, if it has any.
func (f *inputFlags) readWindow(cmd *cobra.Command, path string, opt load.Options) (*snapshot.Snapshot, error) {
	if err := f.window.Check(); err != nil {
		return nil, misuse("--from, --to: %w", err)
	}
	if path == "-" {
		return nil, misuse("--from and --to need a file that can be read twice, not standard input")
	}
	if f.partial {
		return nil, misuse("--partial cannot be used with --from and --to")
	}
	if info, err := input.Stat(cmd.Context(), path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, misuse("--from and --to need a file that can be read twice, and %s is none", path)
	}
	span := f.window
	if file, _ := sidecar.Beside(cmd.Context(), path); file != "" && span.Named() {
		if rec, err := f.recording(cmd, file); err == nil {
			span.Steps = window.Recorded(rec)
		}
	}
	// Nearly all that is read is garbage at once, so that collecting often costs little.
	usual := debug.SetGCPercent(50)
	s, err := window.Open(cmd.Context(), path, opt, span)
	runtime.GC()
	debug.SetGCPercent(usual)
	if none := (*window.Error)(nil); errors.As(err, &none) {
		err = fmt.Errorf("--from, --to: %w", err)
	}
	return s, err
}

// maxRules is how long a file of rules may be.
const maxRules = 1 << 20

// readRules reads the rules that the command line names, if any.
func (f *inputFlags) readRules(ctx context.Context) ([]category.Rule, error) {
	rules, _, err := f.hashRules(ctx)
	return rules, err
}

// hashRules is readRules that also tells files of rules apart: hash is that of the file, nil where none is named.
func (f *inputFlags) hashRules(ctx context.Context) (rules []category.Rule, hash []byte, err error) {
	if f.rules == "" {
		return nil, nil, nil
	}
	file, err := input.Open(ctx, f.rules)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRules+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxRules {
		return nil, nil, fail(failure.BadSettings, "%s: more than %s of rules; is it the right file?", f.rules,
			units.Bytes(maxRules))
	}
	if rules, err = category.ParseRules(data); err != nil {
		return nil, nil, fail(failure.BadSettings, "%s: %w", f.rules, err)
	}
	if r := redactorOf(ctx); r != nil {
		for i := range rules {
			rules[i].Original = r.Original
		}
	}
	sum := sha256.Sum256(data)
	return rules, sum[:], nil
}

// analyze reads the snapshot that the command line names and analyzes it by the rules that it
// names, if any.
func (f *inputFlags) analyze(cmd *cobra.Command, path string, opt analyze.Options) (*analyze.Result, error) {
	return f.analyzeWith(cmd, path, opt, func(*analyze.Options) error { return nil })
}

// analyzeWith is analyze with what is read beside the snapshot, behind it: a redactor then knows its size.
func (f *inputFlags) analyzeWith(cmd *cobra.Command, path string, opt analyze.Options,
	beside func(*analyze.Options) error) (*analyze.Result, error) {
	var err error
	if opt.Rules, err = f.readRules(cmd.Context()); err != nil {
		return nil, err
	}
	snap, err := f.open(cmd, path)
	if err != nil {
		return nil, err
	}
	if err := beside(&opt); err != nil {
		return nil, err
	}
	if opt.Recorder != nil && snap.Window != nil && !snap.Window.AtEnd() {
		opt.Recorder, opt.Before = nil, nil
		snap.Missing = append(snap.Missing, "what the recorder saw, which is of the end of the file and not of the window's")
	}
	return analyze.Run(cmd.Context(), snap, opt)
}

// analyze is inputFlags.analyze with the recorder's files.
func (f *recorderFlags) analyze(cmd *cobra.Command, in *inputFlags, path string,
	opt analyze.Options) (*analyze.Result, error) {
	file := f.file
	if file == "" && path != "-" {
		file, _ = sidecar.Beside(cmd.Context(), path)
	}
	if f.before != "" && file == "" {
		return nil, misuse("--before needs the recorder's file of this snapshot too; name it with --recorder")
	}
	return in.analyzeWith(cmd, path, opt, func(opt *analyze.Options) (err error) {
		if file != "" {
			if opt.Recorder, err = in.recording(cmd, file); err != nil && f.file != "" {
				return err
			}
			opt.Unread = inFlags(err)
		}
		if f.before != "" {
			opt.Before, err = in.recording(cmd, f.before)
			return err
		}
		return nil
	})
}

// ghosts is analyze for the search of ghosts, also in a recorder's file alone.
func (f *recorderFlags) ghosts(cmd *cobra.Command, in *inputFlags, path string) (*analyze.Result, error) {
	if !strings.HasSuffix(snapshot.PlainName(path), ".snapana") {
		return f.analyze(cmd, in, path, analyze.Options{NoReplay: true})
	}
	if f.file != "" {
		return nil, misuse("--recorder names the recorder's file of a snapshot, and %s is no snapshot", path)
	}
	recorded, err := in.recording(cmd, path)
	if err != nil {
		return nil, err
	}
	var before *sidecar.File
	if f.before != "" {
		if before, err = in.recording(cmd, f.before); err != nil {
			return nil, err
		}
	}
	return analyze.Alone(recorded, before)
}

// read adds the driver's side of a report, of now or of a recording.
func (f *driverFlags) read(cmd *cobra.Command, in *inputFlags, opt *analyze.Options) (err error) {
	switch {
	case f.live && f.readings != "":
		return misuse("--nvml and --readings cannot be used together")
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
