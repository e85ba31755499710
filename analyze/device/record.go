package device

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/snapana/snapana/snapshot/sidecar"
)

// Record appends readings to a .snapana file.
type Record struct {
	w       *sidecar.Writer
	version string
	header  bool // it needs one
}

// OpenRecord opens a new file, or one that is a .snapana file already: no other is appended to. In
// the file of a program's recorder, a header would take the records that follow away from the
// program, so there is one only where the file breaks and readers have to find the next record.
// version is that of the program which records.
func OpenRecord(ctx context.Context, path, version string) (*Record, error) {
	out := &Record{version: version, header: true}
	data, err := os.Open(path)
	if err == nil {
		defer data.Close()
		first := make([]byte, 1)
		if _, err := io.ReadFull(data, first); err == nil {
			f, err := sidecar.Open(ctx, path, sidecar.Options{})
			switch {
			case err != nil:
				return nil, err
			case first[0]&0xf0 != 0x80 && first[0] != 0xde && first[0] != 0xdf: // no map of MessagePack
				return nil, fmt.Errorf("%s is compressed; nothing can be appended to it", path)
			case len(f.Runs) > 0 && f.Truncated == nil:
				out.header = f.Runs[len(f.Runs)-1].Producer == sidecar.ProducerNVML
			}
		}
	}
	if out.w, err = sidecar.Append(path); err != nil {
		return nil, err
	}
	return out, nil
}

// Add appends a reading.
func (f *Record) Add(r *sidecar.Reading) error {
	at := time.Unix(0, r.Time)
	if f.header {
		h := sidecar.Header{Producer: sidecar.ProducerNVML, ProducerVersion: f.version, Boot: r.Boot}
		if err := f.w.Header(at, h); err != nil {
			return err
		}
		f.header = false
	}
	return f.w.NVML(at, r.NVML)
}

// Close closes the file.
func (f *Record) Close() error { return f.w.Close() }

// History is what was used on each device, by its index: the last readings, oldest first.
type History map[int64][]int64

// Add keeps what a reading says, and returns the histories in the order of its devices: none for
// those that it could not read.
func (h History) Add(r *sidecar.Reading) [][]int64 {
	const most = 64
	out := make([][]int64, len(r.Devices))
	for i := range r.Devices {
		if g := &r.Devices[i]; g.Index != nil && g.Used != nil {
			used := append(h[*g.Index], *g.Used)
			out[i] = used[max(len(used)-most, 0):]
			h[*g.Index] = out[i]
		}
	}
	return out
}
