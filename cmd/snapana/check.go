package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/gate"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/gates"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/input"
)

func newCheck() *cobra.Command {
	f := checkFlags{limits: map[string]*limit{}}
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Hold snapshots against limits and a baseline, for CI",
		Long: `Hold each snapshot against limits: on its peak, on what each step leaves behind, on leaks, and
against a baseline; a digest is held against limits on peaks, leaks and fragmentation. The exit
code is 0 when all are kept, 1 when one is not or cannot be judged, 2 for files that cannot be
read.`,
		Example: `  snapana check --max-peak 60GiB --max-growth 0 --no-ghosts snapshot.pickle
  snapana check --baseline main.json --tolerance 2% snapshot.pickle
  snapana check --limits gates.yaml --format junit rank*.pickle >memory.xml
  snapana check --update-baseline main.json snapshot.pickle`,
		Args: needs(1, many, "the FILES to hold against limits"),
		RunE: f.run,
	}
	fl := cmd.Flags()
	f.in.add(fl)
	fl.StringVar(&f.file, "limits", "", "read limits from a YAML `FILE`; flags go before it")
	for _, l := range []struct{ name, words string }{
		{"max-peak", "requested bytes at their peak, a `SIZE` like 60GiB; they do not depend on the GPU"},
		{"max-reserved", "reserved bytes at their peak, a `SIZE`"},
		{"max-growth", "bytes that a step may leave behind, a `SIZE`; 0 for none"},
		{"max-fragmentation", "`SHARE` like 20% of reserved memory at the peak that is free in pieces"},
		{"tolerance", "`SHARE` by which the peak may exceed the baseline's (default: 2%, and at least 8MiB)"},
	} {
		f.limits[l.name] = new(limit)
		fl.Var(f.limits[l.name], l.name, l.words)
	}
	fl.BoolVar(&f.noGhosts, "no-ghosts", false, "no memory that only a forgotten reference keeps")
	fl.StringVar(&f.baseline, "baseline", "", "a `FILE` to compare with: a snapshot, its report.json, or what\n--update-baseline wrote")
	fl.StringVar(&f.update, "update-baseline", "", "write the baseline `FILE` from the snapshot, and judge nothing")
	fl.StringVar(&f.format, "format", "text", "print as `FORMAT`: text, md, json, junit, github, gitlab or sarif")
	oneOf(cmd, "format", f.formats())
	f.out.add(fl, "print JSON", "")
	return cmd
}

// limit is the text of a flag that limits something.
type limit struct{ text string }

func (l *limit) String() string        { return l.text }
func (l *limit) Set(text string) error { l.text = text; return nil }
func (l *limit) Type() string          { return "limit" }

type checkFlags struct {
	in               inputFlags
	file             string
	limits           map[string]*limit
	noGhosts         bool
	baseline, update string
	format           string
	out              outputFlags
}

func (f *checkFlags) formats() []string {
	return append(slices.Clone(formats), words(gates.Formats())...)
}

// errGates says that a limit was not kept.
var errGates = fail(failure.GateFailed, "not all limits were kept")

func (f *checkFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case f.out.json && cmd.Flags().Changed("format"):
		return misuse("--format cannot be used with --json")
	case !slices.Contains(f.formats(), f.format):
		return unknown("--format", f.format, f.formats())
	case f.update != "":
		return f.write(cmd, args)
	}
	limits, err := f.read(cmd)
	if err != nil {
		return err
	}
	var base *footprint.Footprint
	if f.baseline != "" {
		if base, err = f.footprint(cmd, f.baseline); err != nil {
			return err
		}
	}
	var all []gate.Outcome
	for _, path := range args {
		if strings.HasSuffix(path, digest.Ending) {
			outcomes, err := f.digest(cmd, path, limits)
			if err != nil {
				return err
			}
			all = append(all, outcomes...)
			continue
		}
		r, err := f.analyze(cmd, path)
		if err != nil {
			return err
		}
		outcomes, err := judge(input.Shown(cmd.Context(), path), r, limits, base)
		if err != nil {
			return err
		}
		all = append(all, outcomes...)
	}
	if len(all) == 0 {
		return misuse("nothing to check; name a limit, such as --max-peak 60GiB or --baseline FILE")
	}
	if err := f.print(cmd, all); err != nil {
		return err
	}
	if n := gate.NotKept(all); n > 0 {
		return fmt.Errorf("%w: %d of %d", errGates, n, len(all))
	}
	return nil
}

// judge holds the devices of a run against limits. The baseline is of one of them: that of its ordinal, or else the
// one that reserved most.
func judge(shown string, r *analyze.Result, l *gate.Limits, base *footprint.Footprint) ([]gate.Outcome, error) {
	main := r.Main()
	if base != nil {
		if i := slices.IndexFunc(r.Devices, func(d analyze.Device) bool {
			return d.Timeline.Device == base.Device && d.Timeline.PeakReserved.Bytes > 0
		}); i >= 0 {
			main = &r.Devices[i]
		}
	}
	var all []gate.Outcome
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Timeline.PeakReserved.Bytes == 0 {
			continue
		}
		f, err := atPeak(r, d)
		if err != nil {
			return nil, err
		}
		q := gate.Subject{File: shown, Findings: r.Verdict.Findings, Footprint: f, Phases: d.Phases,
			Blind: r.Snapshot.Partial != nil || verdict.Blind(r.Snapshot) != ""}
		if m := d.Moment("peak"); m != nil {
			q.Frag = &m.Frag
		}
		of := base
		if d != main {
			of = nil
		}
		all = append(all, gate.Check(&q, l, of)...)
	}
	return all, nil
}

// digest holds the devices of a digest against limits: those on peaks, on leaks and on fragmentation.
func (f *checkFlags) digest(cmd *cobra.Command, path string, l *gate.Limits) ([]gate.Outcome, error) {
	d, err := digest.Open(cmd.Context(), path)
	switch {
	case err != nil:
		return nil, err
	case d.Fault != "":
		return nil, fail(failure.Unread, "%s is of a file that could not be read: %s", path, d.Fault)
	case f.baseline != "" || l.Growth != nil || l.Steps != nil || len(l.Phases)+len(l.Sites) > 0:
		return nil, fail(failure.WrongKind, "%s is a digest, which can be held against peaks, leaks and fragmentation only; "+
			"for other limits name the snapshot, %s", path, d.Source.Path)
	case len(d.Devices) == 0:
		return nil, fail(failure.NoData, "%s has no memory of a GPU, so no limit can be judged", path)
	}
	found, err := d.Findings.List()
	if err != nil {
		return nil, err
	}
	var all []gate.Outcome
	for i := range d.Devices {
		v := &d.Devices[i]
		if v.Reserved == 0 {
			continue // it was not used
		}
		at := &footprint.Footprint{Name: path, Device: int(v.Ordinal), HasHistory: v.History}
		known := func(to *timeline.Peak, b *timeline.Bound, bytes int64) {
			if *b = timeline.Exact; bytes < 0 {
				*b = timeline.Unknown
			}
			to.Bytes = bytes
		}
		known(&at.Peaks.PeakRequested, &at.Bounds.Requested, v.Asked)
		known(&at.Peaks.PeakReserved, &at.Bounds.Reserved, v.Reserved)
		known(&at.Peaks.PeakActive, &at.Bounds.Active, v.Active)
		q := gate.Subject{File: path, Findings: found, Footprint: at, Blind: d.Verdict.Blind}
		if len(v.Moments) > 0 && v.Moments[0].Name == "peak" {
			q.Frag = &fragmentation.Report{Reserved: v.Moments[0].Totals.Reserved, Split: v.Moments[0].Split}
		}
		all = append(all, gate.Check(&q, l, nil)...)
	}
	return all, nil
}

// atPeak is the footprint of a device at its peak, or at the end where that is not known.
func atPeak(r *analyze.Result, d *analyze.Device) (*footprint.Footprint, error) {
	return r.Footprint(d, footprint.Usual(d.Timeline.HasHistory()))
}

// read gives the limits of the file and of the flags.
func (f *checkFlags) read(cmd *cobra.Command) (*gate.Limits, error) {
	l := new(gate.Limits)
	if f.file != "" {
		file, err := input.Open(cmd.Context(), f.file)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if l, err = gate.Read(file); err != nil {
			return nil, fail(failure.BadSettings, "%s: %w", f.file, err)
		}
		if redactorOf(cmd.Context()) != nil && len(l.Sites)+len(l.Phases) > 0 {
			return nil, misuse("--redact cannot be used with limits of sites and phases, which are names of the program")
		}
	}
	var err error
	size := func(name string, to **gate.Size) {
		if text := f.limits[name].text; text != "" {
			*to = new(gate.Size)
			err = cmp.Or(err, inFlag(name, (*to).UnmarshalText([]byte(text))))
		}
	}
	share := func(name string, to **gate.Percent) {
		if text := f.limits[name].text; text != "" {
			*to = new(gate.Percent)
			err = cmp.Or(err, inFlag(name, (*to).UnmarshalText([]byte(text))))
		}
	}
	size("max-peak", &l.Peak)
	size("max-reserved", &l.Reserved)
	size("max-growth", &l.Growth)
	share("max-fragmentation", &l.Fragmentation)
	share("tolerance", &l.Tolerance)
	l.NoGhosts = l.NoGhosts || f.noGhosts
	return l, err
}

func inFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	return misuse("--%s: %w", name, err)
}

// footprint reads a baseline or a report, or takes the footprint of a snapshot.
func (f *checkFlags) footprint(cmd *cobra.Command, path string) (*footprint.Footprint, error) {
	kept, err := readKept(cmd, path)
	switch {
	case err != nil:
		return nil, err
	case kept != nil:
		return kept.choose("", "")
	}
	r, err := f.analyze(cmd, path)
	if err != nil {
		return nil, err
	}
	return atPeak(r, r.Main())
}

// analyze reads a snapshot, with the recorder's file beside it, and fails where no device has any memory to judge.
func (f *checkFlags) analyze(cmd *cobra.Command, path string) (*analyze.Result, error) {
	r, err := new(recorderFlags).analyze(cmd, &f.in, path, analyze.Options{NoReplay: true})
	if err != nil {
		return nil, err
	}
	if d := r.Main(); d == nil || d.Timeline.PeakReserved.Bytes == 0 {
		return nil, fail(failure.NoData, "%s has no memory of a GPU, so no limit can be judged", path)
	}
	return r, nil
}

// write writes the baseline of a snapshot.
func (f *checkFlags) write(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return misuse("--update-baseline takes one FILE, got %d", len(args))
	}
	// A broken baseline may be replaced, but an out-of-memory snapshot cannot be recorded again.
	if info, err := input.Stat(cmd.Context(), f.update); err == nil && info.Size() > 0 {
		old, err := readKept(cmd, f.update)
		if broken := errors.Is(err, footprint.ErrNoFootprint); !broken && (old == nil || !old.isBaseline) {
			return fail(failure.WrongKind, "%s is no baseline, and --update-baseline would replace it; name another file, "+
				"or remove it", f.update)
		}
	}
	base, err := f.footprint(cmd, args[0])
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := footprint.Write(&b, base); err != nil {
		return err
	}
	if err := place.Write(cmd.Context(), f.update, b.Bytes()); err != nil {
		return written(err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", failure.Line("Baseline in "+f.update))
	return written(err)
}

func (f *checkFlags) print(cmd *cobra.Command, all []gate.Outcome) error {
	w := cmd.OutOrStdout()
	switch {
	case f.out.json || f.format == "json":
		return written(json.WriteGates(w, all))
	case f.format == "text":
		return written(text.Gates(w, all, look(cmd)))
	case f.format == "md":
		return written(text.GatesMarkdown(w, all))
	}
	return written(gates.Write(w, gates.Format(f.format), all))
}
