package ghost_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

const mib = 1 << 20

// The stacks of a small training program.
var (
	frames  = []string{"/app/train.py:90:main", "/app/train.py:99:<module>"}
	module  = []string{"/lib/python3/site-packages/torch/nn/modules/module.py:1750:_call_impl"}
	weights = stack("/lib/python3/site-packages/torch/nn/modules/linear.py:100:__init__", "/app/model.py:10:__init__",
		"/app/train.py:20:main")
	input = stack("/app/data.py:5:collate", "/app/train.py:30:main")
	layer = stack(append(append([]string{"/app/model.py:40:forward"}, module...), "/app/model.py:60:forward",
		module[0], "/app/train.py:31:main")...)
	state = stack("/lib/python3/site-packages/torch/optim/adamw.py:150:_init_group",
		"/lib/python3/site-packages/torch/optim/adamw.py:240:step", "/app/train.py:33:main")
	keep   = stack("/app/train.py:34:main")
	other  = stack("/app/train.py:35:main")
	loss   = stack("/lib/python3/site-packages/torch/nn/functional.py:3479:cross_entropy", "/app/train.py:32:main")
	worker = build.NewStack("/app/load.py:9:fill", "/usr/lib/python3.12/threading.py:1012:run",
		"/usr/lib/python3.12/threading.py:1032:_bootstrap")
	hidden = stack("/app/eval.py:5:evaluate",
		"/lib/python3/site-packages/torch/utils/_contextlib.py:116:decorate_context", "/app/train.py:36:main")
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
		{"the history is full near the end", func(d *build.Device) {
			var ring []*build.Block
			train(d, 33, func(int) {
				if len(ring) == 30 {
					d.Free(ring[0])
					ring = ring[1:]
				}
				ring = append(ring, alloc(d, keep, 3*mib))
			})
		}, nil},
		{"a queue that is filled twice as fast as it is emptied", func(d *build.Device) {
			var queue []*build.Block
			train(d, 20, func(int) {
				for _, s := range []*build.Stack{keep, other} {
					queue = append(queue, alloc(d, s, 3*mib))
				}
				d.Free(queue[0])
				queue = queue[1:]
			})
		}, []grown{{10, 60 * mib, 6 * mib}}},
		{"a bank whose entries are replaced by other code", func(d *build.Device) {
			var bank []*build.Block
			for range 30 {
				bank = append(bank, alloc(d, other, 3*mib))
			}
			train(d, 20, func(lap int) {
				d.Free(bank[lap])
				bank[lap] = alloc(d, keep, 3*mib)
			})
		}, nil},
		{"averages of classes, each replaced now and then", func(d *build.Device) {
			rng, classes := rand.New(rand.NewPCG(1, 2)), map[int]*build.Block{}
			train(d, 80, func(int) {
				c := rng.IntN(20)
				if old := classes[c]; old != nil {
					classes[c] = alloc(d, keep, 3*mib)
					d.Free(old)
				} else {
					classes[c] = alloc(d, other, 3*mib)
				}
			})
		}, nil},
		{"a cache by key, which fills", func(d *build.Device) {
			rng, cache := rand.New(rand.NewPCG(1, 2)), map[int]bool{}
			train(d, 80, func(int) {
				if c := rng.IntN(30); !cache[c] {
					cache[c] = true
					alloc(d, keep, 3*mib)
				}
			})
		}, nil},
		{"kept from the middle on", func(d *build.Device) {
			train(d, 20, func(lap int) {
				if lap >= 10 {
					alloc(d, keep, 3*mib)
				}
			})
		}, []grown{{10, 30 * mib, 3 * mib}}},
		{"tiny, under heavy traffic", func(d *build.Device) {
			train(d, 20, func(int) { alloc(d, loss, 4) })
		}, []grown{{20, 20 * 512, 512}}},
		{"gradients, one for each parameter", func(d *build.Device) {
			train(d, 20, func(lap int) {
				if lap%4 == 3 {
					alloc(d, nil, 4*mib)
				}
			})
		}, nil},
		{"gradients of every step", func(d *build.Device) {
			train(d, 20, func(int) {
				alloc(d, nil, 4*mib)
				alloc(d, nil, 4*mib)
			})
		}, []grown{{20, 160 * mib, 8 * mib}}},
		{"kept by another thread", func(d *build.Device) {
			train(d, 20, func(int) { alloc(d, worker, 3*mib) })
		}, []grown{{20, 60 * mib, 3 * mib}}},
		{"kept in a decorated function", func(d *build.Device) {
			train(d, 20, func(int) { alloc(d, hidden, 3*mib) })
		}, []grown{{20, 60 * mib, 3 * mib}}},
		{"one list, filled at once", func(d *build.Device) {
			for range 30 {
				alloc(d, keep, 3*mib)
			}
		}, nil},
		{"built by a loop, and used by the next", func(d *build.Device) {
			for range 10 {
				d.Free(alloc(d, input, mib))
				alloc(d, keep, 3*mib)
			}
			for range 60 {
				d.Free(alloc(d, stack("/app/train.py:50:main"), mib))
			}
		}, nil},
		{"kept by a loop that trains, and another loop", func(d *build.Device) {
			for range 10 {
				d.Free(alloc(d, input, mib))
				alloc(d, keep, 3*mib)
				d.Free(alloc(d, nil, mib))
			}
			for range 60 {
				d.Free(alloc(d, stack("/app/train.py:50:main"), mib))
			}
		}, []grown{{10, 30 * mib, 3 * mib}}},
		{"losses of a loop, and another loop", func(d *build.Device) {
			for range 10 {
				d.Free(alloc(d, input, mib))
				alloc(d, loss, 4)
			}
			for range 60 {
				d.Free(alloc(d, stack("/app/train.py:50:main"), mib))
			}
		}, []grown{{10, 5120, 512}}},
		{"a pool for each captured graph", func(d *build.Device) {
			train(d, 10, func(lap int) {
				d.Pool = build.Pool{A: int64(lap + 1)}
				alloc(d, keep, 3*mib)
				d.Pool = build.Pool{}
			})
		}, nil},
		{"one tensor that grows by another", func(d *build.Device) {
			queue := alloc(d, other, mib)
			train(d, 12, func(lap int) {
				added := alloc(d, loss, 2*mib)
				longer := alloc(d, keep, int64(3+2*lap)*mib)
				d.Free(queue)
				d.Free(added)
				queue = longer
			})
		}, []grown{{12, 26 * mib, 2 * mib}}},
		{"one tensor that grows by another, and is cut", func(d *build.Device) {
			queue := alloc(d, other, mib)
			train(d, 12, func(lap int) {
				added := alloc(d, loss, 2*mib)
				longer := alloc(d, keep, int64(3+2*min(lap, 5))*mib)
				d.Free(queue)
				d.Free(added)
				queue = longer
			})
		}, nil},
		{"outputs of inputs that become longer", func(d *build.Device) {
			out := alloc(d, other, mib)
			train(d, 12, func(lap int) {
				next := alloc(d, keep, int64(7+7*lap)*mib/4)
				d.Free(out)
				out = next
			})
		}, nil},
		{"too short to tell", func(d *build.Device) {
			train(d, ghost.MinLaps-1, func(int) { alloc(d, keep, 3*mib) })
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := buildtest.Read(t, build.Run(build.Options{}, c.program))
			tl := timeline.Build(s, 0)
			var got []grown
			for _, g := range ghost.Find(s, tl, nil) {
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

// find analyzes a made-up program, which must have one growth.
func find(t *testing.T, opt build.Options, program func(d *build.Device)) (*timeline.Timeline, ghost.Growth) {
	t.Helper()
	s := buildtest.Read(t, build.Run(opt, program))
	tl := timeline.Build(s, 0)
	all := ghost.Find(s, tl, nil)
	if len(all) != 1 {
		t.Fatalf("%d growths, want 1", len(all))
	}
	st := steps.Find(s, tl)
	ghost.CountSteps(all, &st)
	return tl, all[0]
}

// A growth goes by the line that left most bytes, and by its largest stack, though another line has a larger one.
func TestLineOfMost(t *testing.T) {
	tl, g := find(t, build.Options{}, func(d *build.Device) {
		train(d, 8, func(int) {
			alloc(d, keep, 5*mib)
			for i, op := range []string{"relu", "linear", "dropout"} {
				alloc(d, stack("/lib/python3/site-packages/torch/nn/functional.py:9:"+op, "/app/model.py:40:forward",
					"/app/train.py:31:main"), int64(2+i)*mib)
			}
		})
	})
	trace := tl.Trace
	if n := trace.At(g.Events[0]).Size; n != 4*mib || trace.At(g.Events[0]).Stack != g.Stack || len(g.Stacks) != 4 {
		t.Errorf("goes by an allocation of %d bytes, of %d stacks; want 4 MiB: the line has 9 of 14 MiB", n, len(g.Stacks))
	}
}

// TestTrend holds the figures of a growth whose truth is simple.
func TestTrend(t *testing.T) {
	_, g := find(t, build.Options{}, func(d *build.Device) {
		train(d, 4, func(int) { alloc(d, keep, 3*mib) })
	})
	if g.Slope != 3*mib || math.Abs(g.Chance-1.0/24) > 1e-9 {
		t.Errorf("slope %v, chance %v, want 3 MiB, and 1 of the 24 orders of 4 values", g.Slope, g.Chance)
	}
	want := []ghost.Lifetime{{Laps: 0, Of: 3, Count: 3, Bytes: 9 * mib}, {Laps: 1, Of: 2, Count: 2, Bytes: 6 * mib},
		{Laps: 2, Of: 1, Count: 1, Bytes: 3 * mib}}
	if !slices.Equal(g.Lifetimes, want) {
		t.Errorf("lifetimes %+v, want %+v", g.Lifetimes, want)
	}
	_, g = find(t, build.Options{}, func(d *build.Device) {
		train(d, 40, func(lap int) {
			d.Wait(1000)
			if lap%5 == 0 {
				alloc(d, keep, 3*mib)
			}
		})
	})
	if g.Every != 5 || g.LapTime < 5000 || g.LapTime > 7000 {
		t.Errorf("every %d steps in %d us, want 5 in somewhat more than 5000", g.Every, g.LapTime)
	}
}

// TestProtocol names a loop by who runs it, not by what Python calls in it.
func TestProtocol(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		for range 10 {
			d.Free(alloc(d, stack("/app/data.py:10:__getitem__", "/app/train.py:30:main"), mib))
			alloc(d, stack("/app/data.py:11:__getitem__", "/app/train.py:30:main"), mib)
		}
	}))
	all := ghost.Find(s, timeline.Build(s, 0), nil)
	if len(all) != 1 || s.Strings.Get(s.Frames.Get(all[0].Loop).Name) != "main" {
		t.Errorf("%+v, want one loop of main", all)
	}
}

// TestStale tells what a model made that trains from what may be kept on purpose: results of one evaluation, and what
// comes now and then, as a table for each new length does.
func TestStale(t *testing.T) {
	inside := stack("/app/model.py:70:forward", module[0], "/app/model.py:60:forward", module[0], "/app/train.py:36:main")
	backward := stack("/lib/python3/site-packages/torch/autograd/graph.py:824:_engine_run_backward",
		"/lib/python3/site-packages/torch/_tensor.py:626:backward", "/app/train.py:37:main")
	for _, c := range []struct {
		name string
		keep func(lap int) int // how many evaluations keep something in this lap
		want bool
	}{
		{"in each lap", func(int) int { return 1 }, true},
		{"in each evaluation, between which it trains", func(lap int) int { return map[bool]int{true: 4}[lap%6 == 5] }, true},
		{"in one evaluation", func(lap int) int { return map[bool]int{true: 24}[lap == 29] }, false},
		{"now and then", func(lap int) int { return map[int]int{1: 1, 2: 1, 6: 1, 7: 1, 15: 1, 17: 1, 24: 1, 29: 1}[lap] }, false},
	} {
		s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
			train(d, 30, func(lap int) {
				d.Free(alloc(d, backward, mib))
				for range c.keep(lap) {
					for range 8 {
						d.Free(alloc(d, layer, 2*mib))
					}
					alloc(d, inside, 3*mib)
					d.Free(alloc(d, loss, mib))
				}
			})
		}))
		all := ghost.Find(s, timeline.Build(s, 0), nil)
		if len(all) != 1 || all[0].Stale() != c.want {
			t.Errorf("%s: %+v", c.name, all)
		}
	}
}

// TestRing looks at traces that have lost their beginning: a leak shows with its older blocks,
// and a history that is longer than the trace does not.
func TestRing(t *testing.T) {
	opt := build.Options{Ring: 400}
	_, g := find(t, opt, func(d *build.Device) {
		train(d, 60, func(int) { alloc(d, keep, 3*mib) })
	})
	if g.OlderCount == 0 || int(g.OlderCount)+int(g.Count) != 60 {
		t.Errorf("%d in the trace and %d before, want 60", g.Count, g.OlderCount)
	}
	s := buildtest.Read(t, build.Run(opt, func(d *build.Device) {
		var ring []*build.Block
		train(d, 90, func(int) {
			if len(ring) == 50 {
				d.Free(ring[0])
				ring = ring[1:]
			}
			ring = append(ring, alloc(d, keep, 3*mib))
		})
	}))
	if all := ghost.Find(s, timeline.Build(s, 0), nil); len(all) > 0 {
		t.Errorf("a history of 50 grows: %+v", all)
	}
}

// TestOutOfMemory looks at what was live when a request failed, not at what unwinding left.
func TestOutOfMemory(t *testing.T) {
	tl, g := find(t, build.Options{Capacity: 200 * mib}, func(d *build.Device) {
		var list []*build.Block
		train(d, 20, func(int) { list = append(list, alloc(d, keep, 3*mib)) })
		alloc(d, other, 500*mib)
		for _, b := range list {
			d.Free(b)
		}
	})
	if g.Bytes != 60*mib || len(tl.OOMs) != 1 || g.Horizon != tl.OOMs[0].Event {
		t.Errorf("%d bytes at event %d, want 60 MiB at the failure", g.Bytes, g.Horizon)
	}
}

// TestReleased looks at what a run kept until its model was freed, as when the function returns that has both; a list
// that is emptied while the model stays is none.
func TestReleased(t *testing.T) {
	run := func(model bool) []ghost.Growth {
		s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
			var all []*build.Block
			for range 4 {
				if b := alloc(d, state, 8*mib); model {
					all = append(all, b)
				}
			}
			for range 12 {
				d.Free(alloc(d, input, mib))
				all = append(all, alloc(d, keep, 3*mib))
				d.Free(alloc(d, other, mib))
			}
			for _, b := range all {
				d.Free(b)
			}
			d.Free(alloc(d, stack("/app/train.py:50:main"), mib))
		}))
		return ghost.Find(s, timeline.Build(s, 0), nil)
	}
	if all := run(true); len(all) != 1 || !all[0].Released || all[0].Count != 12 {
		t.Errorf("%+v, want 12 that were released with the model", all)
	}
	if all := run(false); len(all) > 0 {
		t.Errorf("a list that is emptied: %+v", all)
	}
}

// TestCause holds what is taken for the cause, by the memory that stays.
func TestCause(t *testing.T) {
	forward := func(line string) *build.Stack {
		return stack(line, module[0], "/app/model.py:60:forward", module[0], "/app/train.py:31:main")
	}
	places := []*build.Stack{forward("/app/model.py:41:forward"), forward("/app/model.py:42:forward"),
		forward("/app/model.py:43:forward")}
	elsewhere := stack("/app/model.py:44:forward", module[0], "/app/train.py:38:main")
	var ungraded []*build.Stack
	for _, line := range []string{"41", "42", "43"} {
		ungraded = append(ungraded, stack("/app/model.py:"+line+":forward", module[0], "/app/eval.py:5:evaluate",
			"/lib/python3/site-packages/torch/utils/_contextlib.py:158:no_grad", "/app/train.py:36:main"))
	}
	graph := func(d *build.Device) {
		for _, s := range places {
			alloc(d, s, 2*mib)
		}
	}
	for _, c := range []struct {
		want   ghost.Kind
		each   func(d *build.Device)
		places int
		hint   string
	}{
		{ghost.Graph, graph, 3, ""},
		{ghost.Retained, func(d *build.Device) {
			graph(d)
			d.Free(alloc(d, nil, mib))
		}, 3, ""},
		{ghost.Graph, func(d *build.Device) { // the backward pass is of another forward pass
			graph(d)
			d.Free(alloc(d, elsewhere, mib))
			d.Free(alloc(d, nil, mib))
		}, 3, ""},
		{ghost.Captured, func(d *build.Device) { // the backward pass frees what it had saved beside them
			var saved []*build.Block
			for _, s := range places {
				alloc(d, s, 2*mib)
				saved = append(saved, alloc(d, s, 3*mib))
			}
			d.Free(alloc(d, nil, mib))
			for _, b := range saved {
				d.Free(b)
			}
		}, 3, ""},
		{ghost.Captured, func(d *build.Device) { // next to nothing of what the forward pass allocates
			for _, s := range places {
				alloc(d, s, 2*mib)
				for range 40 {
					d.Free(alloc(d, s, mib))
				}
			}
		}, 3, ""},
		{ghost.Captured, func(d *build.Device) { // no graph is made
			for _, s := range ungraded {
				alloc(d, s, 2*mib)
			}
		}, 3, ""},
		{ghost.Loss, func(d *build.Device) { alloc(d, loss, 4) }, 0, ""},
		{ghost.Output, func(d *build.Device) {
			d.Free(alloc(d, places[0], 2*mib))
			alloc(d, places[1], 2*mib)
		}, 1, ""},
		{ghost.Captured, func(d *build.Device) {
			alloc(d, places[0], 2*mib)
			d.Free(alloc(d, places[1], 2*mib))
		}, 1, ""},
		{ghost.Gradients, func(d *build.Device) { alloc(d, nil, 2*mib) }, 0, ""},
		{ghost.Cached, func(d *build.Device) {
			alloc(d, stack("/app/rope.py:8:cached_table", "/app/train.py:34:main"), mib)
		}, 0, "cached_table"},
		{ghost.Object, func(d *build.Device) { // no cache
			alloc(d, stack("/app/probe.py:8:read_memory", "/app/train.py:34:main"), mib)
		}, 0, ""},
		{ghost.Cached, func(d *build.Device) {
			alloc(d, stack("/app/rope.py:8:tableMemo", "/app/train.py:34:main"), mib)
		}, 0, "tableMemo"},
		{ghost.Batch, func(d *build.Device) {
			alloc(d, stack("/app/data.py:8:next_batch", "/app/train.py:34:main"), mib)
		}, 0, "next_batch"},
		{ghost.Object, func(d *build.Device) { // a server's functions load nothing
			alloc(d, stack("/app/serve.py:8:run_batch", "/app/serve.py:12:generate_logits", "/app/serve.py:20:restore_next",
				"/app/train.py:34:main"), mib)
		}, 0, ""},
		{ghost.Object, func(d *build.Device) { alloc(d, keep, mib) }, 0, ""},
		{ghost.Output, func(d *build.Device) { // what was made outside of the model and is kept with its output is no graph
			alloc(d, keep, 4*mib)
			alloc(d, stack("/app/train.py:33:main"), 3*mib)
			d.Free(alloc(d, places[0], mib))
			alloc(d, places[2], mib)
		}, 1, ""},
	} {
		_, g := find(t, build.Options{}, func(d *build.Device) {
			train(d, 12, func(int) { c.each(d) })
		})
		if o := &g.Cause; o.Kind != c.want || o.Places != c.places || strings.Join(o.Hints, " ") != c.hint {
			t.Errorf("cause %+v, want %s of %d places and hint %q", g.Cause, c.want, c.places, c.hint)
		}
	}
}

// TestLate tells what a collector frees from what the program empties: both in heaps, but one
// at any place, and the other at one of its own.
func TestLate(t *testing.T) {
	run := func(release func(lap int) int) *ghost.Late {
		s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
			var waiting []*build.Block
			lines := []*build.Stack{keep, other, stack("/app/train.py:36:main"), stack("/app/train.py:37:main")}
			train(d, 60, func(lap int) {
				waiting = append(waiting, alloc(d, loss, 3*mib))
				for i, s := range lines {
					d.Free(alloc(d, s, mib))
					if release(lap) == i {
						for _, b := range waiting {
							d.Free(b)
						}
						waiting = nil
					}
				}
			})
		}))
		tl := timeline.Build(s, 0)
		st := steps.Find(s, tl)
		if all := ghost.Find(s, tl, nil); len(all) > 0 {
			t.Errorf("grows: %+v", all)
		}
		late := ghost.FindLate(s, tl, &st)
		if got := ghost.OneOffs(s, tl, nil, late); late != nil && len(got) > 0 {
			t.Errorf("both late and no accusation: %+v", got)
		}
		return late
	}
	places := map[int]int{9: 0, 19: 2, 31: 1, 44: 3, 55: 0}
	got := run(func(lap int) int {
		if line, ok := places[lap]; ok {
			return line
		}
		return -1
	})
	if got == nil || got.Moments != 5 || got.Steps != 11 || got.Bytes != 33*mib {
		t.Errorf("a collector's: %+v, want 5 times, and of 13 steps the 11 that had waited, 33 MiB", got)
	}
	if got := run(func(lap int) int {
		if lap%10 == 9 {
			return 3
		}
		return -1
	}); got != nil {
		t.Errorf("a list that is cleared every 10 steps: %+v", got)
	}
}

func TestOneOffs(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		train(d, 20, func(lap int) {
			alloc(d, loss, 4)
			if lap == 7 {
				alloc(d, keep, 300*mib)
			}
		})
	}))
	tl := timeline.Build(s, 0)
	got := ghost.OneOffs(s, tl, ghost.Find(s, tl, nil), nil)
	if len(got) != 1 || got[0].Bytes != 300*mib || got[0].Count != 1 || tl.Trace.At(got[0].First).Size != 300*mib {
		t.Errorf("%+v, want the one of 300 MiB: weights and optimizer state are made to stay", got)
	}
}
