package category_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestTwoPasses holds that what the first of two backward passes of a step makes for parameters are gradients, though they are let go
// of before the second begins, and that what it passes on is none.
func TestTwoPasses(t *testing.T) {
	const param, hidden = 3 << 20, 5 << 20
	engine := build.NewStack("torch/autograd/graph.py:8:_engine_run_backward", "torch/_tensor.py:7:backward", "/app/gan.py:9:train",
		"/app/gan.py:40:main")
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		module := "torch/nn/modules/module.py:1751:_call_impl"
		d.Stack = build.NewStack("torch/nn/modules/module.py:1340:convert", "torch/nn/modules/module.py:930:_apply",
			"/app/gan.py:5:main")
		d.Alloc(param)
		for range 3 {
			for _, line := range []string{"20", "30"} {
				d.Stack = build.NewStack("/app/model.py:10:forward", module, "/app/gan.py:"+line+":main")
				out := d.Alloc(hidden)
				d.Stack = engine
				passed := d.Alloc(hidden)
				grad := d.Alloc(param)
				d.Free(out)
				d.Free(passed)
				d.Stack = build.NewStack("/app/gan.py:" + line[:1] + "1:main")
				d.Free(d.Alloc(1 << 10))
				d.Free(grad)
			}
		}
	}))
	tl := timeline.Build(s, 0)
	found := steps.Find(s, tl)
	table := category.Find(s, tl, &found, nil)
	grads := 0
	for row := range tl.Lives {
		of, trust := table.Of(int32(row))
		if n := tl.Lives[row].Requested; of == category.Gradient && trust > category.Low {
			if grads++; n != param {
				t.Errorf("row %d of %d bytes is a gradient with confidence %v", row, n, trust)
			}
		}
	}
	if len(found.Steps) != 3 || grads != 6 {
		t.Errorf("%d steps, %d gradients", len(found.Steps), grads)
	}
}

// TestOwnBackward holds that what backward code of the program's own works in is temporary, and what outlives the pass a gradient.
func TestOwnBackward(t *testing.T) {
	const param, hidden, tile = 3 << 20, 5 << 20, 7 << 20
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		module := "torch/nn/modules/module.py:1751:_call_impl"
		d.Stack = build.NewStack("torch/nn/modules/module.py:1340:convert", "torch/nn/modules/module.py:930:_apply",
			"/app/train.py:5:main")
		d.Alloc(param)
		for range 3 {
			d.Stack = build.NewStack("/app/loss.py:10:forward", "torch/autograd/function.py:596:apply", "/app/model.py:10:forward",
				module, "/app/train.py:20:main")
			out := d.Alloc(hidden)
			d.Stack = build.NewStack("/app/loss.py:30:backward", "torch/autograd/function.py:440:apply")
			var tiles []*build.Block
			for range 20 {
				tiles = append(tiles, d.Alloc(tile))
			}
			grad := d.Alloc(param)
			for _, b := range tiles {
				d.Free(b)
			}
			d.Free(out)
			d.Stack = build.NewStack("torch/autograd/graph.py:8:_engine_run_backward", "torch/_tensor.py:7:backward",
				"/app/train.py:21:main")
			d.Free(d.Alloc(1 << 20))
			d.Stack = build.NewStack("torch/optim/sgd.py:50:step", "/app/train.py:22:main")
			d.Free(d.Alloc(1 << 10))
			d.Free(grad)
		}
	}))
	tl := timeline.Build(s, 0)
	found := steps.Find(s, tl)
	table := category.Find(s, tl, &found, nil)
	want := map[int64]category.Category{param: category.Gradient, hidden: category.AutogradSaved, tile: category.Temporary}
	for row := range tl.Lives {
		l := &tl.Lives[row]
		if of, _ := table.Of(int32(row)); row > 0 && want[l.Requested] != category.Unknown && of != want[l.Requested] {
			t.Errorf("row %d of %d MiB is %v, want %v", row, l.Requested>>20, of, want[l.Requested])
		}
	}
}
