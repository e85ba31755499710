package device_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// recording is that of process 101 of reading, with a sample and a reading for each second, and a
// snapshot in the tenth.
func recording() *sidecar.File {
	run := sidecar.Run{
		Header: sidecar.Header{Producer: sidecar.ProducerRecorder, PID: new(int64(9)), Started: new(int64(1010)),
			Boot: "b007"},
		Env:       map[string]any{"device.0.uuid": "a"},
		Snapshots: []sidecar.Dump{{Time: noon.Add(10 * time.Second).UnixNano(), File: "s.pickle"}},
	}
	for i := range int64(30) {
		at := noon.UnixNano() + i*1e9
		run.Samples = append(run.Samples, sidecar.Sample{Time: at + 2e8,
			Devices: []sidecar.DeviceSample{{Device: new(int64(0)), Total: new(int64(16 * gib)), Free: new(4*gib - i),
				Stats: sidecar.Stats{Names: []string{"reserved_bytes.all.current"}, Values: []int64{6*gib + i}}}}})
		r := reading()
		r.Time = at
		r.Devices[0].Processes[1].Used = new(7*gib + i*10*mib)
		run.NVML = append(run.NVML, *r)
	}
	return &sidecar.File{Name: "run.snapana", Runs: []sidecar.Run{{}, run}}
}

func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *sidecar.File, run *sidecar.Run)
		at     time.Time
		want   string
	}{
		{"named by the recorder", nil, time.Time{}, "free 4608, driver 512, others 3072, non_pytorch 1124*, " +
			"allocated 5120, unallocated 1024*, residual 924*"},
		{"without readings near it", func(_ *sidecar.File, run *sidecar.Run) { run.NVML = run.NVML[:5] }, time.Time{},
			"free 4095, foreign 6144*, allocated 5120, unallocated 1024*"},
		{"what was noted with the snapshot", func(_ *sidecar.File, run *sidecar.Run) {
			run.NVML = nil
			run.Snapshots[0].Devices = []sidecar.DeviceMemory{{Device: new(int64(1)), Free: new(int64(1)),
				Total: new(int64(1))},
				{Device: new(int64(0)), Free: new(int64(5 * gib)), Total: new(int64(16 * gib))}}
		}, time.Time{}, "free 5120, foreign 5120*, allocated 5120, unallocated 1024*"},
		{"readings of snapana nvml alone", func(f *sidecar.File, run *sidecar.Run) {
			f.Runs = []sidecar.Run{{Header: sidecar.Header{Producer: sidecar.ProducerNVML}, NVML: run.NVML}}
		}, noon, "free 4608, driver 512, others 3072, non_pytorch 1024*, allocated 5120, unallocated 1024*, " +
			"residual 1024*"},
	} {
		f := recording()
		if c.change != nil {
			c.change(f, &f.Runs[1])
		}
		r, s, err := device.Recorded(f, "s.pickle", 0, 0, 6*gib+10, c.at)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		s.Reserved, s.Allocated = 6*gib, 5*gib
		l, err := device.BuildLedger(r, s)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if ledgerText(l) != c.want {
			t.Errorf("%s: %s", c.name, ledgerText(l))
		}
	}
	sampled := recording() // of moments at which PyTorch had reserved something else
	sampled.Runs[1].NVML = nil
	bare := recording()
	bare.Runs[1].NVML, bare.Runs[1].Samples = nil, nil
	for _, c := range []struct {
		f        *sidecar.File
		snapshot string
		reserved int64
		at       time.Time
		want     string
	}{
		{recording(), "other.pickle", 0, time.Time{}, "run.snapana does not name other.pickle"},
		{recording(), "other.pickle", 0, noon.Add(time.Hour), "run.snapana has no reading within 5s of the snapshot"},
		{sampled, "s.pickle", 7 * gib, noon, "run.snapana has no reading within 5s of the snapshot"},
		{bare, "s.pickle", 6*gib + 10, noon, "run.snapana has no reading within 5s of the snapshot"},
	} {
		if _, _, err := device.Recorded(c.f, c.snapshot, 0, 0, c.reserved, c.at); !errors.Is(err, device.ErrApart) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
}

func TestPoints(t *testing.T) {
	f := recording()
	points := device.Points(f, &f.Runs[1], 0)
	if len(points) != 30 || points[3] != (device.Point{At: time.Unix(0, noon.UnixNano()+3e9), Used: 7*gib + 30*mib,
		Reserved: 6*gib + 3}) {
		t.Fatalf("%d points, %+v", len(points), points)
	}
	if g := verdict.OutsideGrowth(points); g == nil || g.Bytes != 190*mib-19 {
		t.Errorf("%+v", g)
	}
	run := &f.Runs[1]
	run.Started = new(int64(5)) // another process
	if points := device.Points(f, run, 0); points != nil {
		t.Errorf("of another process: %+v", points)
	}
	run.Started, run.Samples = new(int64(1010)), run.Samples[:3]
	if points := device.Points(f, run, 0); len(points) != 8 { // 5 s behind the last sample, at 2.2 s
		t.Errorf("%d points with three samples", len(points))
	}
}
