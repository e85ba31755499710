package series

import (
	"context"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze/crosscheck"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/memstats"
)

// Report is what the files of one call show.
type Report struct {
	Files    []File
	Snapshot string // base name of the snapshot that was compared, "" for none
	Checks   []*crosscheck.Check
	// Unchecked says why samples and snapshot could not be compared.
	Unchecked string
}

// File is one file with what was judged of it.
type File struct {
	Info       *memstats.Info
	Judgements []*Judgement
	Reading    *memstats.Reading // the last of nvidia-smi or list_gpu_processes, nil for none
}

// Options steer Open.
type Options struct {
	Metrics  []string // counters to show beside the usual ones
	Capacity int64    // bytes of memory of each device, 0 unknown
	MaxBytes int64    // as in memstats.Options
}

// Open reads the counters in the file at path, "-" for stdin, and judges each device.
func Open(ctx context.Context, path string, stdin io.Reader, opt Options) (*File, error) {
	return judged(opt, func(h memstats.Handler) (*memstats.Info, error) {
		return memstats.Open(ctx, path, stdin, memstats.Options{MaxBytes: opt.MaxBytes}, h)
	})
}

// Read is Open for what r gives; name is for messages.
func Read(ctx context.Context, r io.Reader, name string, opt Options) (*File, error) {
	return judged(opt, func(h memstats.Handler) (*memstats.Info, error) {
		return memstats.Read(ctx, r, name, memstats.Options{MaxBytes: opt.MaxBytes}, h)
	})
}

func judged(opt Options, read func(memstats.Handler) (*memstats.Info, error)) (*File, error) {
	c := NewCollector(opt.Metrics...)
	var f File
	info, err := read(memstats.Handler{
		Sample:  func(s *memstats.Sample) error { c.Add(s); return nil },
		Reading: func(r *memstats.Reading) error { g := *r; f.Reading = &g; return nil },
	})
	if err != nil {
		return nil, err
	}
	f.Info = info
	for _, d := range c.Devices {
		f.Judgements = append(f.Judgements, Judge(d, opt.Capacity))
	}
	return &f, nil
}

// Compare checks the last sample of each device of the first file against a snapshot.
func (r *Report) Compare(s *snapshot.Snapshot) {
	r.Snapshot = s.Name
	used := s.UsedDevices()
	for _, j := range r.Files[0].Judgements {
		d := j.Device.Device
		if d < 0 && len(used) == 1 {
			d = used[0] // a file that names no device is of the only one
		}
		if slices.Contains(used, d) {
			r.Checks = append(r.Checks, crosscheck.Compare(s, timeline.Build(s, d), &j.Device.Last))
		}
	}
	if len(r.Checks) == 0 {
		r.Unchecked = "the snapshot has no memory of the devices that the samples are of"
	}
}

// Main is the judgement that matters most, and its file; nil when nothing was judged.
func (r *Report) Main() (*Judgement, *File) {
	rank := func(j *Judgement) int {
		n := map[finding.Status]int{finding.Fragmentation: 40, finding.Growing: 40, finding.Cached: 20, finding.Flat: 10}[j.Status]
		if len(j.Findings) > 0 {
			n += map[finding.Severity]int{finding.Error: 8, finding.Warning: 4}[j.Findings[0].Severity]
			n += map[finding.Confidence]int{finding.High: 2, finding.Medium: 1}[j.Findings[0].Confidence]
		}
		return n
	}
	var best *Judgement
	var from *File
	for i := range r.Files {
		for _, j := range r.Files[i].Judgements {
			if best == nil || rank(j) > rank(best) {
				best, from = j, &r.Files[i]
			}
		}
	}
	return best, from
}

// Count is how many devices were judged, in all files.
func (r *Report) Count() int {
	n := 0
	for i := range r.Files {
		n += len(r.Files[i].Judgements)
	}
	return n
}
