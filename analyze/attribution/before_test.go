package attribution_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestBefore guesses what was there before the trace from how often sizes occur.
func TestBefore(t *testing.T) {
	const kib = 1 << 10
	model := func(d *build.Device, layers int) {
		d.Alloc(30_000 * kib) // the embedding
		for range layers {
			for _, size := range []int64{4000, 4000, 4000, 4000, 16000, 16000, 4} {
				d.Alloc(size * kib)
			}
		}
		d.Alloc(4 * kib) // the last norm
	}
	for _, c := range []struct {
		name   string
		before func(d *build.Device)
		copies int
	}{
		{"nothing", func(d *build.Device) {}, 0},
		{"a model", func(d *build.Device) { model(d, 12) }, 1},
		{"a head as large as the embedding", func(d *build.Device) { model(d, 12); d.Alloc(30_000 * kib) }, 1},
		{"and its gradients", func(d *build.Device) { model(d, 12); model(d, 12) }, 2},
		{"and two states", func(d *build.Device) { model(d, 6); model(d, 6); model(d, 6) }, 3},
		{"and gradients", func(d *build.Device) { model(d, 5); model(d, 5); model(d, 5); model(d, 5) }, 4},
		{"with a workspace", func(d *build.Device) { model(d, 6); model(d, 6); model(d, 6); d.Alloc(8519680) }, 3},
		{"four layers and no embedding", func(d *build.Device) {
			for range 4 {
				for _, size := range []int64{4000, 9000, 16000, 4} {
					d.Alloc(size * kib)
				}
			}
		}, 1},
		{"a batch", func(d *build.Device) { d.Alloc(500_000 * kib) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := buildtest.Read(t, build.Run(build.Options{Late: true}, func(d *build.Device) {
				c.before(d)
				d.Record()
				for range 20 {
					d.Free(d.Alloc(1 << 20))
				}
			}))
			if b := attribution.FindBefore(timeline.Build(s, 0)); b.Copies != c.copies {
				t.Errorf("%+v", b)
			}
		})
	}
}
