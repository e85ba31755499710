package counters

import (
	"context"
	"io"

	"github.com/snapana/snapana/snapshot/memstats"
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
		Sample:  func(s *memstats.Sample) error { c.Add(s); return nil },
		Reading: func(r *memstats.Reading) error { g := *r; f.Reading = &g; return nil },
	})
	if err != nil {
		return nil, err
	}
	f.Info, f.Series = info, c.Series
	return &f, nil
}
