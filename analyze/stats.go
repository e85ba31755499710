package analyze

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/memstats"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Stats is what memory counters over time show, with all files of one call.
type Stats struct {
	Files     []StatsFile       `json:"files"`
	Hosts     []*verdict.Host   `json:"hosts"`     // processes of recordings, in the order of the files
	Phases    []StatsPhases     `json:"phases"`    // parts of programs that they named, likewise
	Snapshot  string            `json:"snapshot"`  // base name of the one that was compared, "" for none
	Unchecked string            `json:"unchecked"` // why samples and snapshot could not be compared
	Checks    []*counters.Check `json:"checks"`
}

// StatsFile is one file with what was judged of it.
type StatsFile struct {
	memstats.Info
	Fault   string              `json:"fault"` // the first in a record or figure that was left out, "" for none
	End     string              `json:"cut"`   // why the file ends early, "" where it does not
	Series  []*verdict.Counters `json:"series"`
	Reading *memstats.Reading   `json:"reading,omitempty"` // the last of nvidia-smi or list_gpu_processes
}

// StatsPhases are the phases of one device in a run of the recorder, by torch's counters alone.
type StatsPhases struct {
	File string `json:"file"`
	phase.OfDevice
}

// StatsOptions steer Add.
type StatsOptions struct {
	counters.Options
	Capacity int64 // bytes of memory of each device, 0 unknown
}

// Add reads and judges the file at path, "-" for stdin: dumps of counters, or a recorder's file, which
// also tells of the host.
func (r *Stats) Add(ctx context.Context, path string, stdin io.Reader, opt StatsOptions) error {
	recording := func() (*sidecar.File, error) {
		return sidecar.Open(ctx, path, sidecar.Options{MaxBytes: opt.MaxBytes})
	}
	if path == "-" {
		var seen bytes.Buffer // what it takes to see that the input is no recording
		from := io.TeeReader(stdin, &seen)
		stdin = io.MultiReader(&seen, stdin)
		recording = func() (*sidecar.File, error) {
			return sidecar.Read(ctx, from, "stdin", sidecar.Options{MaxBytes: opt.MaxBytes})
		}
	}
	var f *counters.File
	recorded, err := recording()
	switch {
	case err == nil:
		f = counters.Recording(recorded, opt.Options)
		phases := len(r.Phases)
		for i := range recorded.Runs {
			for _, d := range phase.OfRun(&recorded.Runs[i]) {
				r.Phases = append(r.Phases, StatsPhases{recorded.Name, d})
			}
		}
		if f.Info.Samples == 0 && len(r.Phases) == phases {
			return &snapshot.NothingError{Msg: recorded.Name + " has no samples: the program records one with each step()"}
		}
		for _, p := range host.Read(recorded) {
			r.Hosts = append(r.Hosts, verdict.JudgeHost(p))
		}
	case !errors.Is(err, sidecar.ErrNotSidecar):
		return err
	default:
		if f, err = counters.Open(ctx, path, stdin, opt.Options); err != nil {
			return err
		}
	}
	out := StatsFile{Info: *f.Info, Reading: f.Reading, Series: []*verdict.Counters{}}
	for _, fault := range []*memstats.Fault{f.Info.FirstOdd, f.Info.FirstSkipped} {
		if fault != nil {
			out.Fault = fault.Msg
		}
	}
	if f.Info.Cut != nil {
		out.End = f.Info.Cut.Msg
	}
	for _, d := range f.Series {
		out.Series = append(out.Series, verdict.JudgeCounters(d, opt.Capacity))
	}
	r.Files = append(r.Files, out)
	return nil
}

// Compare checks the last sample of each device of the first file against a snapshot.
func (r *Stats) Compare(s *snapshot.Snapshot) {
	r.Snapshot = s.Name
	if s.Part != nil {
		r.Unchecked = fmt.Sprintf("the snapshot has the memory of %v alone", s.Part.Pool)
		return
	}
	used := s.UsedDevices()
	for _, j := range r.Files[0].Series {
		d := j.Series.Device
		if d < 0 && len(used) == 1 {
			d = used[0] // a file that names no device is of the only one
		}
		if slices.Contains(used, d) && ofHost(&j.Series.Last) < len(j.Series.Last.Stats) {
			r.Checks = append(r.Checks, counters.Compare(s, timeline.Build(s, d), &j.Series.Last))
		}
	}
	if pinned := host.BuildPinned(s); pinned != nil {
		for _, j := range r.Files[0].Series {
			if ofHost(&j.Series.Last) > 0 {
				r.Checks = append(r.Checks, host.Compare(pinned, &j.Series.Last))
				break
			}
		}
	}
	if len(r.Checks) == 0 {
		r.Unchecked = "the snapshot has no memory of the devices that the samples are of"
	}
}

// ofHost is how many counters of a sample are of pinned host memory.
func ofHost(s *memstats.Sample) int {
	n := 0
	for i := range s.Stats {
		if counters.OfHost(s.Stats[i].Name) {
			n++
		}
	}
	return n
}

// Main is the series that matters most, and its file; nil when nothing was judged.
func (r *Stats) Main() (*verdict.Counters, *StatsFile) {
	var best *verdict.Counters
	var from *StatsFile
	for i := range r.Files {
		for _, j := range r.Files[i].Series {
			if best == nil || j.Weight() > best.Weight() {
				best, from = j, &r.Files[i]
			}
		}
	}
	return best, from
}

// Count is how many series were judged, in all files.
func (r *Stats) Count() int {
	n := 0
	for i := range r.Files {
		n += len(r.Files[i].Series)
	}
	return n
}
