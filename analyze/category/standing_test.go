package category_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestStandingWorkspaces holds that a workspace as large as on Hopper is one where a thread asks for it at its first
// product and never again, and that tensors of that size which the program makes once are none.
func TestStandingWorkspaces(t *testing.T) {
	const workspace = 32 << 20
	stack := func(line string) *build.Stack {
		return build.NewStack("/app/model.py:"+line+":forward", "torch/nn/modules/module.py:1751:_call_impl",
			"/app/train.py:9:main")
	}
	step := func(d *build.Device, between func()) {
		d.Stack = stack("10")
		x := d.Alloc(8 << 20)
		between()
		d.Stack = stack("20")
		y := d.Alloc(4 << 20)
		d.Stack = nil
		g := d.Alloc(2 << 20)
		d.Free(y)
		d.Free(x)
		d.Free(g)
	}
	for name, c := range map[string]struct {
		want int
		run  func(d *build.Device)
	}{
		"of both threads": {2, func(d *build.Device) {
			for i := range 3 {
				step(d, func() {
					if i == 0 {
						d.Alloc(workspace) // behind the result of line 10
					}
				})
				if i == 0 {
					d.Stack = nil
					d.Alloc(workspace)
				}
			}
		}},
		"a mask that is made when it is needed first": {0, func(d *build.Device) {
			for i := range 3 {
				step(d, func() {
					if d.Stack = stack("14"); i == 0 {
						d.Alloc(8192)
						d.Alloc(workspace)
					}
				})
			}
		}},
		"half of a cache of one line": {0, func(d *build.Device) {
			d.Stack = build.NewStack("/app/gen.py:30:new_cache", "/app/gen.py:9:main")
			d.Alloc(4 * workspace)
			d.Alloc(workspace)
			for range 3 {
				step(d, func() {})
			}
		}},
		"a mask of dropout, where the recording stops before backward": {0, func(d *build.Device) {
			d.Stack = stack("12")
			d.Alloc(4 * workspace)
			d.Alloc(workspace)
		}},
		"what a line keeps of each step": {0, func(d *build.Device) {
			for range 3 {
				step(d, func() { d.Alloc(workspace) })
			}
		}},
	} {
		s := buildtest.Read(t, build.Run(build.Options{}, c.run))
		tl := timeline.Build(s, 0)
		found := steps.Find(s, tl)
		table, n := category.Find(s, tl, &found, nil), 0
		for row := range tl.Lives {
			if of, _ := table.Of(int32(row)); of == category.Workspace {
				n++
			}
		}
		if n != c.want || table.Hopper() != (n > 0) {
			t.Errorf("%s: %d workspaces, Hopper %v; want %d", name, n, table.Hopper(), c.want)
		}
	}
}
