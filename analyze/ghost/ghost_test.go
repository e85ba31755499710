package ghost_test

import (
	"testing"

	"snapana/analyze/ghost"
	"snapana/analyze/timeline"
	"snapana/fixtures/build"
	"snapana/fixtures/build/buildtest"
	"snapana/snapshot"
)

const mib = 1 << 20

// The stacks of a small training program.
var (
	frames  = []string{"/app/train.py:90:main", "/app/train.py:99:<module>"}
	module  = []string{"/lib/python3/site-packages/torch/nn/modules/module.py:1750:_call_impl"}
	weights = stack("/lib/python3/site-packages/torch/nn/modules/linear.py:100:__init__", "/app/model.py:10:__init__", "/app/train.py:20:main")
	input   = stack("/app/data.py:5:collate", "/app/train.py:30:main")
	layer   = stack(append(append([]string{"/app/model.py:40:forward"}, module...), "/app/model.py:60:forward", module[0], "/app/train.py:31:main")...)
	state   = stack("/lib/python3/site-packages/torch/optim/adamw.py:150:_init_group", "/lib/python3/site-packages/torch/optim/adamw.py:240:step", "/app/train.py:33:main")
	keep    = stack("/app/train.py:34:main")
)

func stack(inner ...string) *build.Stack {
	return build.NewStack(append(inner, frames[1])...)
}

func alloc(d *build.Device, s *build.Stack, n int64) *build.Block {
	d.Stack = s
	return d.Alloc(n)
}

// train runs laps of a loop with ordinary memory, and each once per lap.
func train(d *build.Device, laps int, each func(lap int)) {
	for range 6 {
		alloc(d, weights, 4*mib)
	}
	for lap := range laps {
		x := alloc(d, input, mib)
		var acts []*build.Block
		for range 5 {
			acts = append(acts, alloc(d, layer, 2*mib))
		}
		for _, a := range acts {
			d.Free(a)
		}
		d.Free(x)
		if lap == 0 {
			for range 12 {
				alloc(d, state, 4*mib)
			}
		}
		each(lap)
	}
}

func TestFind(t *testing.T) {
	type grown struct {
		laps   int
		bytes  int64
		perLap int64
	}
	for _, c := range []struct {
		name    string
		program func(d *build.Device)
		want    []grown
	}{
		{"nothing kept", func(d *build.Device) {
			train(d, 20, func(int) {})
		}, nil},
		{"one tensor kept per lap", func(d *build.Device) {
			train(d, 20, func(int) { alloc(d, keep, 3*mib) })
		}, []grown{{20, 60 * mib, 3 * mib}}},
		{"kept from every second lap on", func(d *build.Device) {
			train(d, 20, func(lap int) {
				if lap%2 == 1 {
					alloc(d, keep, 3*mib)
				}
			})
		}, []grown{{10, 30 * mib, 3 * mib}}},
		{"a buffer that is full after some laps", func(d *build.Device) {
			train(d, 40, func(lap int) {
				if lap < 8 {
					alloc(d, keep, 3*mib)
				}
			})
		}, nil},
		{"a history of bounded length", func(d *build.Device) {
			var ring []*build.Block
			train(d, 40, func(lap int) {
				if len(ring) == 6 {
					d.Free(ring[0])
					ring = ring[1:]
				}
				ring = append(ring, alloc(d, keep, 3*mib))
			})
		}, nil},
		{"a cache that is built again", func(d *build.Device) {
			var cache []*build.Block
			train(d, 40, func(lap int) {
				if lap%10 == 0 {
					for _, b := range cache {
						d.Free(b)
					}
					cache = nil
				}
				cache = append(cache, alloc(d, keep, 3*mib))
			})
		}, nil},
		{"activations kept", func(d *build.Device) {
			train(d, 10, func(int) {
				for range 4 {
					alloc(d, layer, 2*mib)
				}
			})
		}, []grown{{10, 80 * mib, 8 * mib}}},
		{"too short to tell", func(d *build.Device) {
			train(d, ghost.MinLaps-1, func(int) { alloc(d, keep, 3*mib) })
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := buildtest.Read(t, build.Run(build.Options{}, c.program))
			tl := timeline.Build(s, 0)
			var got []grown
			for _, g := range ghost.Find(s, tl) {
				got = append(got, grown{g.Laps, g.Bytes, g.PerLap})
				for _, e := range g.Events {
					if ev := tl.Trace.At(e); ev.Action != snapshot.Alloc || ev.Stack != g.Stacks[0] {
						t.Errorf("event %d is no proof", e)
					}
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("growth %d: %+v, want %+v", i, got[i], c.want[i])
				}
			}
		})
	}
}
