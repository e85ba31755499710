package device

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Recorded finds in a recording what belongs to a snapshot of one of its programs, by the
// snapshot's base name and unpacked size: who wrote it and when, and the reading of the driver that is nearest to
// that. Without one near enough, what the recorder noted with the snapshot takes its place, or a
// sample of it, if PyTorch had reserved as much then as in the snapshot: these know total and free
// but no processes. Device is PyTorch's number. Where the recording does not name the snapshot, as
// one of `snapana nvml` does not, at is when the snapshot was taken; zero is unknown. The error is
// ErrApart.
func Recorded(f *sidecar.File, snapshot string, bytes int64, device int, reserved int64,
	at time.Time) (*sidecar.Reading, Side, error) {
	s := Side{At: at}
	of, dump := f.Snapshot(snapshot, bytes)
	if of != nil {
		s.At = time.Unix(0, dump.Time)
		s = s.By(&of.Header)
		s.UUID = uuid(of, device)
	}
	if s.At.IsZero() {
		return nil, s, apart("%s does not name %s, whose time is unknown", f.Name, snapshot)
	}
	var best *sidecar.Reading
	for i := range f.Runs {
		for k := range f.Runs[i].NVML {
			if r := &f.Runs[i].NVML[k]; best == nil || s.distance(r.Time) < s.distance(best.Time) {
				best = r
			}
		}
	}
	if best != nil && s.distance(best.Time) <= MaxApart {
		return best, s, nil
	}
	if dump != nil {
		for _, d := range dump.Devices {
			if d.Device != nil && *d.Device == int64(device) && d.Total != nil && d.Free != nil {
				return s.reading(dump.Time, d.Device, d.Total, d.Free), s, nil
			}
		}
	}
	if sample := sampled(of, &s, device, reserved); sample != nil {
		return sample, s, nil
	}
	return nil, s, apart("%s has no reading within %s of the snapshot", f.Name, MaxApart)
}

func (s *Side) distance(ns int64) time.Duration { return time.Unix(0, ns).Sub(s.At).Abs() }

// reading is one of a side's device, of which only its memory is known.
func (s *Side) reading(at int64, device, total, free *int64) *sidecar.Reading {
	g := sidecar.GPU{Index: device, UUID: s.UUID, Total: total, Free: free}
	return &sidecar.Reading{Time: at, NVML: sidecar.NVML{Boot: s.Boot, Devices: []sidecar.GPU{g}}}
}

// sampled makes a reading of the recorder's sample that is nearest to a side.
func sampled(run *sidecar.Run, s *Side, device int, reserved int64) *sidecar.Reading {
	if run == nil {
		return nil
	}
	var best *sidecar.Reading
	for i := range run.Samples {
		sample := &run.Samples[i]
		if at := s.distance(sample.Time); at > MaxApart || best != nil && at >= s.distance(best.Time) {
			continue
		}
		for _, d := range sample.Devices {
			n, told := d.Stats.Get(reservedBytes)
			if told && n == reserved && d.Device != nil && *d.Device == int64(device) && d.Total != nil &&
				d.Free != nil {
				best = s.reading(sample.Time, d.Device, d.Total, d.Free)
			}
		}
	}
	return best
}

// reservedBytes is the counter of torch.cuda.memory_stats for the sum of all segments.
const reservedBytes = "reserved_bytes.all.current"

// uuid is what the recorder calls a device.
func uuid(run *sidecar.Run, device int) string {
	s, _ := run.Env[fmt.Sprintf("device.%d.uuid", device)].(string)
	return s
}

// Point is what a process used, by the driver, and what PyTorch had reserved at about the same
// time.
type Point struct {
	At             time.Time
	Used, Reserved int64
}

// Points pairs what the driver counts for a run's process with what PyTorch had reserved on a
// device at about the same time.
func Points(f *sidecar.File, run *sidecar.Run, device int) []Point {
	type sample struct{ at, reserved int64 }
	var samples []sample
	for i := range run.Samples {
		for _, d := range run.Samples[i].Devices {
			if n, told := d.Stats.Get(reservedBytes); told && d.Device != nil && *d.Device == int64(device) {
				samples = append(samples, sample{run.Samples[i].Time, n})
			}
		}
	}
	sorting.Stable(samples, func(a, b sample) int { return cmp.Compare(a.at, b.at) })
	s := Side{UUID: uuid(run, device)}.By(&run.Header)
	var out []Point
	for i := range f.Runs {
		for k := range f.Runs[i].NVML {
			r := &f.Runs[i].NVML[k]
			p, err := choose(r, s)
			if err != nil || s.Boot != r.Boot {
				continue
			}
			own, guessed, err := p.own(s)
			if err != nil || own == nil || guessed || own.Used == nil {
				continue
			}
			s.At = time.Unix(0, r.Time)
			after, _ := slices.BinarySearchFunc(samples, r.Time,
				func(a sample, t int64) int { return cmp.Compare(a.at, t) })
			best := MaxApart + 1
			var reserved int64
			for _, near := range samples[max(after-1, 0):min(after+1, len(samples))] {
				if at := s.distance(near.at); at < best {
					best, reserved = at, near.reserved
				}
			}
			if best <= MaxApart {
				out = append(out, Point{At: s.At, Used: *own.Used, Reserved: reserved})
			}
		}
	}
	return out
}
