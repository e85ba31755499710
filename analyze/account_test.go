package analyze_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// TestAccount accounts for a device with what the recorder noted beside a snapshot of the lab's
// pinned_segments_oom: 16 GiB, of which 512 MiB are a context.
func TestAccount(t *testing.T) {
	dir := filepath.Join("..", "fixtures", "ledger")
	s, err := load.Open(t.Context(), filepath.Join(dir, "run.pickle.zst"), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sidecar.Open(t.Context(), filepath.Join(dir, "run.snapana"), sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain := analyzetest.Run(t, s, analyze.Options{NoReplay: true})
	if plain.Devices[0].Account != nil {
		t.Error("an account without readings")
	}
	r := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: f})
	a := r.Devices[0].Account
	if a == nil || a.Ledger == nil {
		t.Fatalf("%+v", a)
	}
	var sum int64
	for _, row := range a.Ledger.Rows {
		sum += row.Bytes
	}
	foreign, _ := a.Ledger.Get(oom.RowForeign)
	if a.Ledger.Total != 16*gib || sum != 16*gib || foreign != 512*mib {
		t.Errorf("%+v", a.Ledger)
	}

	// A reading of the driver at the same time goes before it, and tells processes apart.
	run, dump := f.Snapshot("run.pickle", r.Snapshot.Bytes)
	total := r.Devices[0].Timeline.Final.Reserved
	used := func(more int64) []sidecar.GPUProcess {
		return []sidecar.GPUProcess{{PID: *run.PID, Started: run.Started, Used: new(total + more)},
			{PID: 1, Used: new(gib / 4)}}
	}
	reading := func(at int64, processes []sidecar.GPUProcess) sidecar.Reading {
		var sum int64
		for _, p := range processes {
			sum += *p.Used
		}
		return sidecar.Reading{Time: at, NVML: sidecar.NVML{Boot: run.Boot,
			Devices: []sidecar.GPU{{Index: new(int64(0)), Total: new(16 * gib), Reserved: new(int64(0)),
				Free: new(16*gib - sum), Processes: processes}}}}
	}
	delete(run.Env, "device.0.uuid")
	run.NVML = []sidecar.Reading{reading(dump.Time, used(512*mib))}
	r = analyzetest.Run(t, s, analyze.Options{NoReplay: true, Readings: f})
	if own, ok := r.Devices[0].Account.Ledger.Get(oom.RowNonPyTorch); !ok || own != 512*mib ||
		len(r.Verdict.Findings) != len(plain.Verdict.Findings) {
		t.Errorf("%+v", r.Devices[0].Account.Ledger)
	}
	// What is odd about it is a finding, and does not change the verdict.
	live := reading(dump.Time+time.Hour.Nanoseconds(), used(3*gib))
	run.NVML = []sidecar.Reading{reading(dump.Time, used(3*gib))}
	run.NVML[0].Devices[0].Total, run.NVML[0].Devices[0].Free = new(32*gib), new(32*gib-total-13*gib/4)
	r = analyzetest.Run(t, s, analyze.Options{NoReplay: true, Readings: f})
	at := slices.IndexFunc(r.Verdict.Findings, func(f finding.Finding) bool { return f.Status == finding.Outside })
	if at != len(plain.Verdict.Findings) || r.Verdict.Status != plain.Verdict.Status ||
		r.Verdict.Headline != plain.Verdict.Headline {
		t.Errorf("%d: %+v", at, r.Verdict)
	}
	// Figures of another moment are refused, and it is said why only to who asked for them.
	r = analyzetest.Run(t, s, analyze.Options{NoReplay: true, Live: &live})
	if a := r.Devices[0].Account; a == nil || a.Ledger != nil ||
		!strings.Contains(a.Why, "after PyTorch's figures were taken") {
		t.Errorf("%+v", a)
	}
	run.NVML, dump.Devices, run.Samples = nil, nil, nil
	if r = analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: f}); r.Devices[0].Account != nil {
		t.Errorf("%+v", r.Devices[0].Account)
	}
}

// TestFullWhen says when growing memory fills the device, by what is known of its size.
func TestFullWhen(t *testing.T) {
	dir := filepath.Join("..", "fixtures", "holders", "two_leaks")
	s, err := load.Open(t.Context(), filepath.Join(dir, "snapshot.pickle.zst"), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sidecar.Open(t.Context(), filepath.Join(dir, "run.snapana"), sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, opt := range map[string]analyze.Options{
		"At this rate another 1 GiB is gone every": {},
		"The device has 16.0 GiB: at this rate":    {Capacity: 16 * gib},
		"The device had 15.2 GiB free at the end":  {Recorder: f},
	} {
		opt.NoReplay = true
		if why := analyzetest.Run(t, s, opt).Verdict.Findings[0].Why; !slices.ContainsFunc(why,
			func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("%q is not in %q", want, why)
		}
	}
}
