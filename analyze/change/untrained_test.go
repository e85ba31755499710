package change_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/snapana/snapana/fixtures/build"
)

// TestStateOfOthers holds that a generator keeps its optimizer's state where its samples are made without gradients for a critic's step
// only: another line trains it.
func TestStateOfOthers(t *testing.T) {
	const layers, saved = 3, 8 << 20
	sizes := map[string]int64{"gen": 20 << 20, "critic": 16 << 20}
	in := built(t, build.Options{}, func(d *build.Device) {
		var stays []*build.Block
		for _, net := range []string{"gen", "critic"} {
			for range layers {
				d.Stack = build.NewStack(torch+"nn/modules/linear.py:100:__init__", "/app/"+net+".py:5:__init__", "/app/train.py:2:main")
				stays = append(stays, d.Alloc(sizes[net]))
			}
		}
		call := func(net string, line int) (kept []*build.Block) {
			for i := range layers {
				d.Stack = build.NewStack(slices.Concat([]string{fmt.Sprintf("/app/%s.py:%d:forward", net, 11+i)}, called,
					[]string{fmt.Sprintf("/app/train.py:%d:main", line)})...)
				kept = append(kept, d.Alloc(saved))
			}
			return kept
		}
		for step := range 4 {
			for _, net := range []string{"critic", "gen"} {
				line := map[string]int{"critic": 3, "gen": 6}[net]
				kept := slices.Concat(call("gen", line), call("critic", line+1))
				d.Stack = engine
				var grads []*build.Block
				for i, b := range slices.Backward(kept) {
					of := "critic"
					if i < layers {
						of = "gen"
					}
					grads = append(grads, d.Alloc(sizes[of]))
					d.Free(b)
				}
				steps := []string{torch + "optim/adamw.py:200:step", torch + "optim/optimizer.py:4:wrapper",
					fmt.Sprintf("/app/train.py:%d:main", line+10)}
				for i := 0; step == 0 && i < 2*layers; i++ {
					group := fmt.Sprintf("%soptim/adamw.py:%d:_init_group", torch, 170+4*(i%2))
					d.Stack = build.NewStack(slices.Concat([]string{group}, steps)...)
					stays = append(stays, d.Alloc(sizes[net]))
				}
				d.Stack = build.NewStack(slices.Concat([]string{torch + "optim/adamw.py:6:_single_tensor_adamw"}, steps)...)
				d.Free(d.Alloc(1 << 20))
				d.Stack = after
				for _, b := range grads {
					d.Free(b)
				}
				d.Free(d.Alloc(1 << 20))
			}
		}
		for _, b := range stays {
			d.Free(b)
		}
	})
	a := ask(t, in, "no-grad=train.py:3")
	if a.Changes[0].Blocks == 0 || a.After.AllocatedPeak != a.Before.AllocatedPeak {
		t.Errorf("%d blocks, a peak of %d; want the peak of %d, of the generator's step", a.Changes[0].Blocks, a.After.AllocatedPeak,
			a.Before.AllocatedPeak)
	}
}
