package change_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/fixtures/build"
)

// graph allocates what two operations of a model keep, which code around it calls.
func graph(d *build.Device, around ...string) (rows []*build.Block) {
	for _, line := range []string{"3", "4"} {
		d.Stack = build.NewStack(slices.Concat([]string{"/app/block.py:" + line + ":forward"}, called, around)...)
		rows = append(rows, d.Alloc(4<<20))
	}
	return rows
}

// TestLeakedGraphs holds that graphs of several functions, and what threads without Python frames make of them, are let go of.
func TestLeakedGraphs(t *testing.T) {
	for name, step := range map[string]func(d *build.Device){
		"functions": func(d *build.Device) {
			for range 2 {
				graph(d, "/app/train.py:20:main")
				d.Stack = build.NewStack("/app/train.py:21:main")
				d.Alloc(4 << 20)
			}
			for range 2 {
				graph(d, "/app/train.py:50:evaluate", "/app/train.py:12:main")
				d.Stack = build.NewStack("/app/train.py:13:main")
				d.Free(d.Alloc(4 << 20))
			}
		},
		"threads": func(d *build.Device) {
			graph(d, "/app/train.py:9:main")
			d.Stack = build.NewStack("libworker.so:0:run()", "libc.so.6:0:clone")
			d.Alloc(4 << 20)
			d.Stack = build.NewStack("/app/train.py:10:main")
			d.Free(d.Alloc(4 << 20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := built(t, build.Options{}, func(d *build.Device) {
				for i := range 4 {
					d.Annotate(fmt.Sprintf("ProfilerStep#%d", i), func() { step(d) })
				}
			})
			if a := ask(t, in, "free-leak"); a.After.AllocatedPeak*2 > a.Before.AllocatedPeak {
				t.Errorf("allocated peak %d, before %d", a.After.AllocatedPeak, a.Before.AllocatedPeak)
			}
		})
	}
}

// TestHeldGraphs holds that graphs that stay in a few steps are taken for a leak, but none that there cannot be: of functions without
// gradients, or at a line that is not there.
func TestHeldGraphs(t *testing.T) {
	keeps := func(around ...string) *change.Input {
		return built(t, build.Options{}, func(d *build.Device) {
			for range 3 {
				backward(d, graph(d, "/app/train.py:5:main"), 1<<20)
				graph(d, around...)
				d.Stack = after
				d.Free(d.Alloc(1 << 20))
			}
		})
	}
	in := keeps("/app/train.py:9:evaluate", "/app/train.py:30:main")
	a := ask(t, in, "free-leak")
	held := func(v change.Assumption) bool { return v.Kind == change.HeldGraphs }
	if !slices.ContainsFunc(a.Changes[0].Assumptions, held) || a.After.AllocatedPeak >= a.Before.AllocatedPeak {
		t.Errorf("%+v, allocated peak %d, before %d", a.Changes[0].Assumptions, a.After.AllocatedPeak, a.Before.AllocatedPeak)
	}
	var line *change.LineError
	if _, err := change.Ask(t.Context(), in, []change.Change{parse(t, "free-leak=nowhere.py:5")}); !errors.As(err, &line) {
		t.Errorf("of a line that is not there: %v", err)
	}
	in = keeps("/app/train.py:9:evaluate", torch+"utils/_contextlib.py:116:decorate_context", "/app/train.py:30:main")
	var refused *change.RefusedError
	if _, err := change.Ask(t.Context(), in, []change.Change{parse(t, "free-leak")}); !errors.As(err, &refused) {
		t.Errorf("without gradients: %v", err)
	}
}
