package device_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// reading is one device of 16 GiB with processes 101 (ours) and 7.
func reading() *sidecar.Reading {
	return &sidecar.Reading{Time: noon.UnixNano(), NVML: sidecar.NVML{Boot: "b007", Devices: []sidecar.GPU{{
		Index: new(int64(0)), UUID: "GPU-a", Total: new(int64(16 * gib)), Reserved: new(int64(512 * mib)),
		Used: new(int64(11 * gib)), Free: new(int64(4*gib + 512*mib)),
		Processes: []sidecar.GPUProcess{
			{PID: 7, Used: new(int64(3 * gib)), State: device.Running, Started: new(int64(70))},
			{PID: 101, Used: new(int64(7 * gib)), State: device.Running, Started: new(int64(1010)),
				Namespaces: []int64{101, 9}},
		},
	}}}}
}

func side() device.Side {
	return device.Side{PID: 101, Started: 1010, Boot: "b007", UUID: "GPU-a", At: noon, Reserved: 6 * gib,
		Allocated: 5 * gib}
}

// ledgerText prints a ledger in MiB; * marks differences.
func ledgerText(l *device.Ledger) string {
	var out []string
	for _, row := range l.Rows {
		s := fmt.Sprintf("%s %d", row.Row, row.Bytes/mib)
		if row.Derived {
			s += "*"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func TestBuild(t *testing.T) {
	const all = "free 4608, driver 512, others 3072, non_pytorch 1024*, allocated 5120, unallocated 1024*, " +
		"residual 1024*"
	for _, c := range []struct {
		name   string
		change func(g *sidecar.GPU, r *sidecar.Reading, s *device.Side)
		want   string
		pid    int64
		guess  bool
		untold int
	}{
		{"all known", nil, all, 101, false, 0},
		{"the number in its container", func(_ *sidecar.GPU, _ *sidecar.Reading, s *device.Side) { s.PID = 9 }, all,
			101, false, 0},
		{"both numbers", func(_ *sidecar.GPU, _ *sidecar.Reading, s *device.Side) { s.PID, s.HostPID = 7, 101 }, all,
			101, false, 0},
		{"one device, not named", func(_ *sidecar.GPU, _ *sidecar.Reading, s *device.Side) { s.UUID = "" }, all, 101,
			false, 0},
		{"no number: by size", func(_ *sidecar.GPU, _ *sidecar.Reading, s *device.Side) { s.PID = 0 }, all, 101, true,
			0},
		{"numbers of the machine, seen from a container", func(g *sidecar.GPU, _ *sidecar.Reading, s *device.Side) {
			s.PID = 5
			g.Processes[1] = sidecar.GPUProcess{PID: 101, Used: g.Processes[1].Used}
		}, all, 101, true, 0},
		{"two could be it", func(g *sidecar.GPU, _ *sidecar.Reading, s *device.Side) {
			s.PID = 0
			g.Processes[0].Used = new(int64(6 * gib))
			g.Free = new(int64(gib))
		}, "free 1024, driver 512, others 13312, foreign -4608*, allocated 5120, unallocated 1024*", 0, false, 0},
		{"its bytes are not told", func(g *sidecar.GPU, _ *sidecar.Reading, _ *device.Side) {
			g.Processes[1].Used = nil
		},
			"free 4608, driver 512, others 3072, foreign 2048*, allocated 5120, unallocated 1024*", 101, false, 0},
		{"another's bytes are not told", func(g *sidecar.GPU, _ *sidecar.Reading,
			_ *device.Side) {
			g.Processes[0].Used = nil
		},
			"free 4608, driver 512, non_pytorch 1024*, allocated 5120, unallocated 1024*, residual 4096*", 101, false,
			1},
		{"first version of the figures", func(g *sidecar.GPU, _ *sidecar.Reading, _ *device.Side) { g.Reserved = nil },
			"free 4608, others 3072, non_pytorch 1024*, allocated 5120, unallocated 1024*, residual 1536*", 101, false,
			0},
		{"classes of cached memory", func(_ *sidecar.GPU, _ *sidecar.Reading, s *device.Side) {
			*s = s.Of(timeline.Totals{Reserved: 6 * gib, Allocated: 5 * gib},
				fragmentation.Classes{Releasable: 1000 * mib, Stream: 24 * mib})
		}, "free 4608, driver 512, others 3072, non_pytorch 1024*, allocated 5120, releasable 1000, stream 24, " +
			"residual 1024*", 101, false, 0},
		{"an instance", func(g *sidecar.GPU, r *sidecar.Reading, s *device.Side) {
			instance := sidecar.MIGInstance{UUID: "MIG-1", GPUInstance: new(int64(1)), Total: g.Total,
				Reserved: g.Reserved, Free: g.Free}
			other := instance
			other.UUID, other.GPUInstance = "MIG-2", new(int64(2))
			g.MIG, g.Instances = new(true), []sidecar.MIGInstance{other, instance}
			for i := range g.Processes {
				g.Processes[i].GPUInstance = instance.GPUInstance
			}
			g.Processes = append(g.Processes, sidecar.GPUProcess{PID: 8, Used: new(int64(gib)),
				GPUInstance: other.GPUInstance})
			s.UUID = "MIG-1"
		}, all, 101, false, 0},
		{"one of two devices", func(_ *sidecar.GPU, r *sidecar.Reading, s *device.Side) {
			r.Devices = append([]sidecar.GPU{{UUID: "GPU-b"}}, r.Devices...)
			s.UUID = ""
		}, all, 101, false, 0},
	} {
		r, s := reading(), side()
		if c.change != nil {
			c.change(&r.Devices[0], r, &s)
		}
		l, err := device.BuildLedger(r, s)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if ledgerText(l) != c.want || l.PID != c.pid || (l.Guessed != 0) != c.guess || l.Untold != c.untold {
			t.Errorf("%s: got %s; %+v", c.name, ledgerText(l), l)
		}
		sum := int64(0)
		for _, row := range l.Rows {
			sum += row.Bytes
		}
		if sum != l.Total || l.Total != 16*gib {
			t.Errorf("%s: rows sum to %d of %d", c.name, sum, l.Total)
		}
	}
}

// Figures that are not of the same process, device and moment are never subtracted.
func TestApart(t *testing.T) {
	for want, change := range map[string]func(g *sidecar.GPU, r *sidecar.Reading, s *device.Side){
		"on another machine, or before a reboot": func(_ *sidecar.GPU, _ *sidecar.Reading,
			s *device.Side) {
			s.Boot = "other"
		},
		"the time of PyTorch's figures is unknown": func(_ *sidecar.GPU, _ *sidecar.Reading,
			s *device.Side) {
			s.At = time.Time{}
		},
		"the driver was read 6s after PyTorch's": func(_ *sidecar.GPU, r *sidecar.Reading,
			_ *device.Side) {
			r.Time += 6e9
		},
		"the driver was read 1m0s before": func(_ *sidecar.GPU, r *sidecar.Reading,
			_ *device.Side) {
			r.Time -= 60e9
		},
		"does not have the device GPU-b": func(_ *sidecar.GPU, _ *sidecar.Reading,
			s *device.Side) {
			s.UUID = "GPU-b"
		},
		"process 101 is another one now": func(_ *sidecar.GPU, _ *sidecar.Reading,
			s *device.Side) {
			s.Started = 1011
		},
		"process 5 has no memory on this device": func(_ *sidecar.GPU, _ *sidecar.Reading,
			s *device.Side) {
			s.PID = 5
		},
		"used 5.00 GiB, which is less than PyTorch had reserved (6.00 GiB)": func(g *sidecar.GPU, _ *sidecar.Reading,
			_ *device.Side) {
			g.Processes[1].Used = new(int64(5 * gib))
		},
		"processes 7 and 101 could both be this one": func(g *sidecar.GPU, _ *sidecar.Reading, s *device.Side) {
			s.PID, s.Started = 9, 0
			g.Processes[0].Namespaces = []int64{7, 9}
		},
		"the reading has 2 devices, and PyTorch's figures do not name theirs": func(_ *sidecar.GPU, r *sidecar.Reading,
			s *device.Side) {
			r.Devices = append(r.Devices, sidecar.GPU{})
			s.UUID, s.PID = "", 0
		},
		"the process uses several devices": func(_ *sidecar.GPU, r *sidecar.Reading, s *device.Side) {
			r.Devices = append(r.Devices, r.Devices[0])
			s.UUID = ""
		},
		"the driver does not report the memory of the device": func(g *sidecar.GPU, _ *sidecar.Reading,
			_ *device.Side) {
			g.Free = nil
		},
	} {
		r, s := reading(), side()
		change(&r.Devices[0], r, &s)
		if l, err := device.BuildLedger(r, s); !errors.Is(err, device.ErrApart) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v, %v", want, l, err)
		}
	}
}

// TestPinnedSegments holds the ledger of a real failure: 16 GiB = 1 GiB of another process + a
// context of 512 MiB + what PyTorch reserved + free, to the byte.
func TestPinnedSegments(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "corpus", "pinned_segments_oom")
	data, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		t.Skip("no corpus here")
	}
	var truth struct {
		Observer struct {
			Total int64 `json:"device_alloc"` // what torch's observer calls them
			Free  int64 `json:"device_free"`
		} `json:"oom_observer"`
		Stats []struct {
			Reserved int64 `json:"reserved_bytes.all.current"`
		} `json:"stats"`
	}
	if err := json.Unmarshal(data, &truth); err != nil {
		t.Fatal(err)
	}
	snap, err := load.Open(t.Context(), filepath.Join(dir, "snapshot_at_oom.pickle"), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tl := timeline.Build(snap, 0)
	end := tl.StateAt(tl.Trace.Len() - 1)
	classes := fragmentation.Measure(tl, end).Classes
	at := time.UnixMicro(tl.Trace.Time(tl.Trace.Len() - 1))

	// The driver's side: oom.txt names process 4242 with 1024.00 MiB; the lab's contexts take 512 MiB
	// besides what PyTorch says that it reserved.
	total, free, other := truth.Observer.Total, truth.Observer.Free, int64(gib)
	own := truth.Stats[0].Reserved + 512*mib
	r := &sidecar.Reading{Time: at.Add(time.Second).UnixNano(),
		NVML: sidecar.NVML{Devices: []sidecar.GPU{{Total: &total, Reserved: new(int64(0)), Used: new(total - free),
			Free:      &free,
			Processes: []sidecar.GPUProcess{{PID: 99, Used: &own}, {PID: 4242, Used: &other}}}}}}
	l, err := device.BuildLedger(r, device.Side{At: at}.Of(end.Totals, classes))
	if err != nil {
		t.Fatal(err)
	}
	for row, want := range map[oom.Row]int64{oom.RowOthers: gib, oom.RowNonPyTorch: 512 * mib,
		oom.RowAllocated: 3801088000,
		device.RowHard:   11403264000, oom.RowFree: 364904448, oom.RowResidual: 0} {
		if got, ok := l.Get(row); !ok || got != want {
			t.Errorf("%s: %d (%v), want %d", row, got, ok, want)
		}
	}
	if l.Total != 16*gib || l.PID != 99 {
		t.Errorf("%+v", l)
	}
}
