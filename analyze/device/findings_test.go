package device_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// proc is a process of ann's, started by those in parents.
func proc(pid, used int64, name string, parents ...int64) sidecar.GPUProcess {
	return sidecar.GPUProcess{PID: pid, Used: &used, Name: name, State: device.Running, User: "ann", Parents: parents}
}

func in(p sidecar.GPUProcess, state, user string) sidecar.GPUProcess {
	p.State, p.User = state, user
	return p
}

func TestFind(t *testing.T) {
	const train = "python train.py"
	trainer := proc(10, 20*gib, train, 2)
	for _, c := range []struct {
		name      string
		processes []sidecar.GPUProcess
		used      int64 // beyond the processes'
		errors    bool
		want      string // "ID bytes severity", by ";"
		says      string
	}{
		{"a trainer alone", []sidecar.GPUProcess{trainer}, 100 * mib, false, "", ""},
		{"nobody", nil, 0, false, "", ""},
		{"workers", []sidecar.GPUProcess{trainer, proc(11, 500*mib, train, 10, 2),
			proc(12, 500*mib, "python multiprocessing.spawn", 9, 10, 2),
			proc(13, 600*mib, "python multiprocessing.forkserver", 10, 2)}, 0, false,
			"workers 1677721600 warning",
			"11 (forked, 500 MiB), 12 (spawned, 500 MiB), 13 (from a fork server, 600 MiB)"},
		{"one small worker", []sidecar.GPUProcess{trainer, proc(11, 400*mib, train, 10)}, 0, false,
			"workers 419430400 info", "A child of process 10 (python train.py) has"},
		{"ranks under a launcher that has a context", []sidecar.GPUProcess{proc(10, 500*mib, train),
			proc(11, 20*gib, train, 10), proc(12, 20*gib, train, 10)}, 0, false, "", ""},
		{"ranks of a launcher without", []sidecar.GPUProcess{proc(11, 20*gib, train, 10), proc(12, 20*gib, train, 10)},
			0, false, "", ""},
		{"workers of two trainers", []sidecar.GPUProcess{trainer, proc(20, 20*gib, train, 2),
			proc(11, 2*gib, train, 10), proc(21, 2*gib, train, 20)}, 0, false,
			"workers 2147483648 warning;workers 2147483648 warning", ""},
		{"gone and zombie", []sidecar.GPUProcess{trainer, in(proc(11, 5*gib, ""), device.Gone, ""),
			in(proc(12, gib, "python"), device.Zombie, "ann")}, 0, false,
			"orphans 6442450944 warning", "6.00 GiB of the device is still in use by 2 processes that ended"},
		{"not seen is not gone", []sidecar.GPUProcess{trainer, in(proc(11, 5*gib, ""), "", "")}, 0, true, "", ""},
		{"another user", []sidecar.GPUProcess{trainer, in(proc(30, 8*gib, "ollama"), device.Running, "bob")}, 0, false,
			"other-users 8589934592 warning", "Besides those of ann: 30 (ollama of bob, 8.00 GiB)"},
		{"of no process", []sidecar.GPUProcess{trainer}, 8 * gib, false, "unlisted 8589934592 warning",
			"The device reports"},
		{"of no process, where not all are seen", []sidecar.GPUProcess{trainer}, 8 * gib, true, "", ""},
	} {
		g := sidecar.GPU{Index: new(int64(3)), Total: new(int64(80 * gib)), Reserved: new(int64(0)), Used: &c.used,
			Processes: c.processes}
		for _, p := range c.processes {
			*g.Used += *p.Used
		}
		r := &sidecar.Reading{NVML: sidecar.NVML{Devices: []sidecar.GPU{g}}}
		if c.errors {
			r.Errors = []sidecar.Failed{{What: "/proc", Why: "a container"}}
		}
		found := verdict.JudgeReading(r, 10)
		var got []string
		for _, f := range found {
			got = append(got, fmt.Sprintf("%s %d %s", f.ID, f.Bytes, f.Severity))
			if f.Device != 3 || f.Status != finding.Outside || f.Title == "" || len(f.Why) == 0 || len(f.Next) == 0 {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		if strings.Join(got, ";") != c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
		if says := fmt.Sprintf("%v", found); !strings.Contains(strings.ToLower(says), strings.ToLower(c.says)) {
			t.Errorf("%s: %s", c.name, says)
		}
	}
}

// Ranks that touched the first device before they chose their own.
func TestStrays(t *testing.T) {
	on := func(processes ...sidecar.GPUProcess) sidecar.GPU {
		return sidecar.GPU{Total: new(int64(80 * gib)), Processes: processes}
	}
	rank := func(pid, used int64) sidecar.GPUProcess { return proc(pid, used, "python train.py", 2) }
	r := &sidecar.Reading{NVML: sidecar.NVML{Devices: []sidecar.GPU{
		on(rank(10, 40*gib), rank(11, 500*mib), rank(12, 500*mib)), on(rank(11, 40*gib)), on(rank(12, 40*gib)),
	}}}
	found := verdict.JudgeReading(r, 0)
	if len(found) != 1 || found[0].ID != "strays" || found[0].Device != 0 || found[0].Bytes != 1000*mib ||
		!strings.Contains(found[0].Why[0], "12 (python train.py, 500 MiB; on GPU 2 40.0 GiB)") {
		t.Errorf("%+v", found)
	}
	r.Devices[0] = on(rank(10, 40*gib), rank(11, 20*gib), rank(12, 20*gib)) // models on two devices
	if found := verdict.JudgeReading(r, 0); found != nil {
		t.Errorf("%+v", found)
	}
}

func TestContext(t *testing.T) {
	for bytes, want := range map[int64]string{512 * mib: "", 2 * gib: "", 3 * gib: "NCCL takes more",
		12 * gib: "JAX takes 75%"} {
		l := &device.Ledger{Ledger: oom.Ledger{Total: 16 * gib,
			Rows: []oom.LedgerRow{{Row: oom.RowNonPyTorch, Bytes: bytes}}}, PID: 7}
		f := verdict.Outside(l)
		if (f == nil) != (want == "") || f != nil && !strings.Contains(strings.Join(f.Why, " "), want) {
			t.Errorf("%d: %+v", bytes, f)
		}
	}
	if f := verdict.Outside(&device.Ledger{}); f != nil {
		t.Errorf("nothing known: %+v", f)
	}
}

func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		outside, reserved func(i int64) int64
		n                 int64
		bytes             int64
	}{
		"flat": {func(int64) int64 { return gib }, func(int64) int64 { return 5 * gib }, 30, 0},
		"grows": {func(i int64) int64 { return gib + i*10*mib }, func(int64) int64 { return 5 * gib }, 30,
			190 * mib},
		"grows in steps": {func(i int64) int64 { return gib + i/5*100*mib },
			func(i int64) int64 { return 5*gib + i%2*mib }, 30, 300 * mib},
		"too short": {func(i int64) int64 { return gib + i*100*mib }, func(int64) int64 { return 5 * gib }, 8, 0},
		"warms up": {func(i int64) int64 { return gib + min(i, 9)*100*mib }, func(int64) int64 { return 5 * gib },
			30, 0},
		"warms up for long": {func(i int64) int64 { return gib + min(i, 18)*100*mib },
			func(int64) int64 { return 5 * gib }, 30, 0},
		"up and down": {func(i int64) int64 { return gib + i%5*100*mib }, func(int64) int64 { return 5 * gib }, 30, 0},
		"tensors grow, too": {func(i int64) int64 { return gib + i*10*mib },
			func(i int64) int64 { return 5*gib + i*100*mib }, 30, 0},
		"little": {func(i int64) int64 { return gib + i*mib }, func(int64) int64 { return 5 * gib }, 30, 0},
		"only tensors grow": {func(int64) int64 { return gib },
			func(i int64) int64 { return 5*gib + i*100*mib }, 30, 0},
		"shrinks": {func(i int64) int64 { return 9*gib - i*100*mib },
			func(int64) int64 { return 5 * gib }, 30, 0},
	} {
		var points []device.Point
		for i := range c.n {
			points = append(points, device.Point{At: noon.Add(time.Duration(i) * time.Second),
				Used: c.outside(i) + c.reserved(i), Reserved: c.reserved(i)})
		}
		f := verdict.OutsideGrowth(points)
		if (f == nil) != (c.bytes == 0) || f != nil && (f.Bytes != c.bytes || f.Severity != finding.Warning ||
			!f.Heuristic) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
