package counters

import (
	"context"
	"io"

	"github.com/snapana/snapana/snapshot/memstats"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// File is what one file says of counters.
type File struct {
	Info    *memstats.Info
	Series  []*Series         // by rank and ordinal
	Reading *memstats.Reading // the last of nvidia-smi or list_gpu_processes, nil for none
}

// Options steer the reading of files.
type Options struct {
	Metrics  []string // counters to keep beside the usual ones
	MaxBytes int64    // as in memstats.Options
}

// Open reads the counters in the file at path, "-" for stdin.
func Open(ctx context.Context, path string, stdin io.Reader, opt Options) (*File, error) {
	c := NewCollector(opt.Metrics...)
	var f File
	info, err := memstats.Open(ctx, path, stdin, memstats.Options{MaxBytes: opt.MaxBytes}, memstats.Handler{
		Sample:  func(s *memstats.Sample) { c.Add(s) },
		Reading: func(r *memstats.Reading) { g := *r; f.Reading = &g },
	})
	if err != nil {
		return nil, err
	}
	f.Info, f.Series = info, c.Series
	return &f, nil
}

// Recording reads the counters in the samples of a recorder's file.
func Recording(f *sidecar.File, opt Options) *File {
	c := NewCollector(opt.Metrics...)
	info := &memstats.Info{Name: f.Name, Container: []string{"recording"}}
	for i := range f.Runs {
		run := &f.Runs[i]
		rank := -1
		if run.Rank != nil {
			rank = int(*run.Rank)
		}
		for k := range run.Samples {
			s := &run.Samples[k]
			info.Samples++
			for _, d := range s.Devices {
				if d.Device == nil {
					continue
				}
				o := memstats.Sample{Device: int(*d.Device), Rank: rank, Step: number(s.Step), Epoch: number(s.Epoch),
					Time: s.Time / 1000, Label: s.Label}
				for n, name := range d.Stats.Names {
					o.Set(name, d.Stats.Values[n])
				}
				if d.Free != nil && d.Total != nil {
					o.Set(DeviceFree, *d.Free)
					o.Set(DeviceTotal, *d.Total)
				}
				if s.Host != nil && s.Host.Pinned != nil {
					o.Set(Pinned, *s.Host.Pinned)
				}
				o.Complete()
				c.Add(&o)
			}
		}
		info.Readings += int64(len(run.NVML))
	}
	if f.Truncated != nil {
		info.Cut = &memstats.Fault{Offset: f.Truncated.Offset, Msg: f.Truncated.Msg}
	}
	return &File{Info: info, Series: c.Series}
}

func number(v *int64) memstats.Number {
	if v == nil {
		return memstats.Number{}
	}
	return memstats.Number{N: *v, Known: true}
}
