package fit_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// train is a program of which the optimizer makes its state in the first step, in what the activations leave, and which gives
// gradients up as each step begins. All its calls go through native, frames of C++.
func train(d *build.Device, batch int64, steps int, native ...string) {
	const layers, param = 6, 3 << 19
	under := func(frames ...string) {
		d.Stack = build.NewStack(slices.Concat(native, frames, []string{"/app/train.py:9:<module>"})...)
	}
	under("torch/nn/modules/module.py:1340:convert")
	for range layers {
		d.Alloc(param)
	}
	var grads []*build.Block
	for i := range steps {
		for _, g := range grads {
			d.Free(g)
		}
		grads = nil
		under("/app/data.py:5:batch")
		x := d.Alloc(batch << 18)
		var kept []*build.Block
		for k := range layers {
			under(fmt.Sprintf("/app/model.py:%d:forward", 20+k), "torch/nn/modules/module.py:1751:_call_impl")
			kept = append(kept, d.Alloc(batch<<19), d.Alloc(batch<<17))
		}
		d.Stack = build.NewStack(native...)
		for k := layers - 1; k >= 0; k-- {
			tmp := d.Alloc(batch << 19)
			grads = append(grads, d.Alloc(param))
			d.Free(kept[2*k])
			d.Free(kept[2*k+1])
			d.Free(tmp)
		}
		d.Free(x)
		under("torch/optim/adam.py:246:step")
		if i == 0 {
			for range 2 * layers {
				d.Alloc(param)
			}
		}
		tmp := d.Alloc(param)
		d.Free(tmp)
	}
}

// recordingOf is what a ring of so many events keeps of a run, 0 all.
func recordingOf(t *testing.T, batch int64, steps, ring int) *fit.Input {
	s := buildtest.Read(t, build.Run(build.Options{Ring: ring}, func(d *build.Device) { train(d, batch, steps) }))
	return &fit.Input{Snapshot: s, Timeline: timeline.Main(s), At: fit.Point{batch}}
}

// TestRings holds that recordings which begin in the middle of a step tell what the whole run needs, although they begin at
// different moments of it.
func TestRings(t *testing.T) {
	q := fit.Question{Names: []string{"batch"}, To: []fit.Point{{3}, {6}, {16}, {40}}}
	for _, rings := range [][2]int{{130, 130}, {145, 170}, {170, 145}} {
		got, err := fit.Ask(t.Context(), []*fit.Input{recordingOf(t, 4, 5, rings[0]), recordingOf(t, 8, 5, rings[1])}, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range got.Predictions {
			want := recordingOf(t, p.At, 5, 0).Timeline
			off := math.Abs(float64(p.ReservedPeak)/float64(want.PeakReserved.Bytes) - 1)
			if p.AllocatedPeak != want.PeakAllocated.Bytes || off > 0.02 {
				t.Errorf("rings of %d events, batch %d: allocated %d, reserved %d, want %d and %d", rings, p.At, p.AllocatedPeak,
					p.ReservedPeak, want.PeakAllocated.Bytes, want.PeakReserved.Bytes)
			}
		}
		if notes := strings.Join(got.Notes, " "); !strings.Contains(notes, "middle of the run") {
			t.Errorf("notes do not say that recordings begin in the middle of the run: %q", notes)
		}
	}
}

// TestStacks holds that recordings go together of which only one has frames of C++.
func TestStacks(t *testing.T) {
	run := func(batch int64, native ...string) *fit.Input {
		s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) { train(d, batch, 3, native...) }))
		return &fit.Input{Snapshot: s, Timeline: timeline.Main(s), At: fit.Point{batch}}
	}
	got, err := fit.Ask(t.Context(), []*fit.Input{run(4), run(8, "??:0:c10::cuda::malloc(unsigned long)")},
		fit.Question{Names: []string{"batch"}, To: []fit.Point{{16}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := run(16).Timeline.PeakAllocated.Bytes; got.Predictions[0].AllocatedPeak != want {
		t.Errorf("allocated peak %d, want %d", got.Predictions[0].AllocatedPeak, want)
	}
	if notes := strings.Join(got.Notes, " "); !strings.Contains(notes, "frames of C++") {
		t.Errorf("notes do not say how calls are matched: %q", notes)
	}
}

// TestSwapped holds that values in another order than the files are noticed.
func TestSwapped(t *testing.T) {
	a, b := recordingOf(t, 4, 3, 0), recordingOf(t, 8, 3, 0)
	for _, swapped := range []bool{false, true} {
		if swapped {
			a.At, b.At = b.At, a.At
		}
		got, err := fit.Ask(t.Context(), []*fit.Input{a, b}, fit.Question{Names: []string{"batch"}, To: []fit.Point{{16}}})
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(got.Notes, " "); strings.Contains(notes, "order of the files") != swapped {
			t.Errorf("swapped %v: notes %q", swapped, notes)
		}
	}
}

// TestAside holds that recordings of other parts of a run make no laws together: one tells, and is compared with the other.
func TestAside(t *testing.T) {
	part := func(batch int64, rows int, sizes func(i int) int64) *fit.Input {
		s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
			d.Stack = build.NewStack("/app/train.py:3:<module>")
			d.Alloc(1 << 20)
			d.Stack = nil
			for i := range rows {
				d.Free(d.Alloc(batch * sizes(i)))
			}
		}))
		return &fit.Input{Snapshot: s, Timeline: timeline.Main(s), At: fit.Point{batch}}
	}
	some := func(i int) int64 { return 1 + int64(i)*7919%10007 }
	others := func(i int) int64 { return 3 + int64(i)*104729%20011 }
	ask := func(a, b *fit.Input) *fit.Result {
		got, err := fit.Ask(t.Context(), []*fit.Input{a, b}, fit.Question{Names: []string{"batch"}, To: []fit.Point{{128}}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if r := ask(part(16, 300, some), part(64, 400, some)).Recorded; r[0].Aside || r[1].Aside {
		t.Errorf("two of one part: %+v", r)
	}
	got := ask(part(16, 300, some), part(64, 400, others))
	if r := got.Recorded; r[0].At != 64 || r[0].Aside || r[1].At != 16 || !r[1].Aside || got.ProvenShare > 0 {
		t.Errorf("two of other parts: %+v, proven share %v", r, got.ProvenShare)
	}
	if c := got.Checks; len(c) != 1 || c[0].Values[0] != 16 || !c[0].HeldOut || len(got.Notes) != 1 {
		t.Errorf("checks %+v, notes %q", c, got.Notes)
	}
}
