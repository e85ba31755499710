package sample

import (
	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/snapshot"
)

// Held is Result with what a recorder saw: two ghosts, one of them with a hostile name, memory
// that grows without a ghost, and memory that could not be joined.
func Held() *analyze.Result {
	r := Result()
	s := r.Snapshot
	for _, f := range []struct {
		file, name string
		line       int32
	}{{"/app/train.py", "validate", 88}, {"/app/model.py", "forward", 39}, {"/app/embed.py", "embed", 4}, {"/app/model.py", "__init__", 7}} {
		frame := s.Frames.Intern(snapshot.Frame{File: s.Strings.Intern([]byte(f.file)), Name: s.Strings.Intern([]byte(f.name)), Line: f.line})
		s.Stacks.Intern([]snapshot.FrameID{frame})
	}
	sum := func(count, mibs int64) holder.Sum { return holder.Sum{Count: count, Bytes: mibs * mib} }
	history := holder.Holder{
		Reference: holder.Reference{Kind: holder.Closure, Variable: "history", Function: "make.<locals>.validate", File: "train.py", Line: 88, Object: "list"},
		Standing:  holder.Ghost, Devices: []int{0}, Count: 12, Bytes: 512 * mib, Graph: 500 * mib, Tensors: 3, Objects: 1,
		Frees: 448 * mib, Shared: 64 * mib, SharedWith: []string{"list `recent`, local of main (train.py:9)", "tensor `x`, local of main (train.py:9)"},
		Also:  []string{"list `losses`, local of main (train.py:9)"},
		Chain: "main (train.py:9) > validate > closure cell history[2] > autograd graph (23 nodes) > saved _saved_self",
		Sites: []holder.Site{{Stack: 1, Sum: sum(8, 400)}, {Stack: 2, Sum: sum(4, 112)}},
		Uses:  []holder.Use{{Name: "autograd saved", Sum: sum(9, 500)}, {Name: "activation", Sum: sum(3, 12)}},
		Grown: 512 * mib, GrownBlocks: 12, PerLap: 64 * mib, Laps: 8, Loop: 1,
		Storage: sum(12, 512), Before: sum(4, 128),
		Formerly: &holder.Reference{Kind: holder.Local, Variable: "results", Function: "infer", File: "train.py", Line: 4, Object: "list"},
	}
	hostile := holder.Holder{
		Reference: holder.Reference{Kind: holder.Attribute, Variable: "</section><script>alert(1)</script>\x1b[2J\u202e", Class: "Tracker", Object: "dict", Owner: "local `t` of main"},
		Standing:  holder.Ghost, Devices: []int{0}, Count: 2, Bytes: 6 * mib, Tensors: 2, Objects: 2, Frees: 6 * mib, Alone: 6 * mib,
		Chain: "main (train.py:9) > t > .</section>\x1b]0;x\x07", Sites: []holder.Site{{Sum: sum(2, 6)}},
		Storage: sum(2, 6), Before: sum(1, 3),
	}
	cache := holder.Holder{
		Reference: holder.Reference{Kind: holder.Cache, Function: "embed", File: "embed.py", Line: 4, Object: "tensor"},
		Standing:  holder.Other, Devices: []int{0}, Count: 3, Bytes: 24 * mib, Tensors: 3, Objects: 3, Frees: 24 * mib, Alone: 24 * mib,
		Chain: "module embed > embed > cache", Sites: []holder.Site{{Stack: 3, Sum: sum(3, 24)}}, Storage: sum(3, 24),
		Bound: &holder.Bound{Length: 3, Limit: 128, Full: 1024 * mib},
	}
	weights := holder.Holder{
		Reference: holder.Reference{Kind: holder.Local, Variable: "model", Function: "main", File: "train.py", Line: 9, Object: "GPT"},
		Standing:  holder.Parameter, Devices: []int{0}, Count: 65, Bytes: 109 * mib, Tensors: 65, Objects: 1,
		Chain: "main (train.py:9) > model > ._parameters['w']", Sites: []holder.Site{{Stack: 4, Sum: sum(65, 109)}}, Storage: sum(65, 109), Before: sum(65, 109),
	}
	batch := holder.Holder{
		Reference: holder.Reference{Kind: holder.Local, Variable: "x", Function: "main", File: "train.py", Line: 9, Object: "tensor"},
		Standing:  holder.Running, Devices: []int{0}, Count: 1, Bytes: 8 << 10, Tensors: 1, Objects: 1, Frees: 8 << 10, Alone: 8 << 10,
		Chain: "main (train.py:9) > x", Sites: []holder.Site{{Stack: 4, Sum: holder.Sum{Count: 1, Bytes: 8 << 10}}}, Storage: holder.Sum{Count: 1, Bytes: 8 << 10},
	}
	held := holder.Sum{Count: 83, Bytes: 651*mib + 8<<10}
	r.Holders = &holder.Result{
		Devices: []holder.Device{{
			Ordinal: 0, Allocated: holder.Sum{Count: 84, Bytes: held.Bytes + 8*mib}, Held: held, Unheld: sum(1, 8),
			UnheldSites: []holder.Site{{Stack: 2, Sum: sum(1, 8)}},
		}},
		Holders: []holder.Holder{history, hostile, cache, weights, batch},
		Stray:   sum(2, 1), Dump: "dump 1, in step 8", Earlier: "dump 0, in step 4", File: "job.snapana",
		Unproven: []holder.Unproven{
			{Device: 0, Growth: &ghost.Growth{Loop: 1, Stacks: []snapshot.StackID{3}, Bytes: 24 * mib, PerLap: 8 * mib, Laps: 3}, Holders: []int{2}},
		},
		Notes: []string{"2 saved tensors are behind unpack hooks"},
	}
	r.Holders.Name(s)
	return r
}
