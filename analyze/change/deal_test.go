package change_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/fixtures/build"
)

// adam trains parameters of some groups, in MiB, with so many states for each and a list of roots for each group.
func adam(d *build.Device, states int, groups ...[]int64) {
	const optim = torch + "optim/adam.py:"
	var made []*build.Block
	for step := range 3 {
		d.Stack = within([]string{torch + "nn/modules/linear.py:9:forward"}...)
		out := d.Alloc(1 << 20)
		d.Stack = engine
		var grads []*build.Block
		for _, sizes := range groups {
			for _, mib := range sizes {
				grads = append(grads, d.Alloc(mib<<20))
			}
		}
		d.Free(out)
		for _, sizes := range groups {
			for _, mib := range sizes {
				for k := range states {
					if d.Stack = build.NewStack(optim+[]string{"170", "174", "178"}[k]+":_init_group", optim+"220:step",
						"/app/train.py:9:main"); step == 0 {
						made = append(made, d.Alloc(mib<<20))
					}
				}
			}
			d.Stack = build.NewStack(optim+"600:_multi_tensor_adam", optim+"240:step", "/app/train.py:9:main")
			var roots []*build.Block
			for _, mib := range sizes {
				roots = append(roots, d.Alloc(mib<<20))
			}
			for _, b := range roots {
				d.Free(b)
			}
		}
		d.Stack = after
		for _, b := range grads {
			d.Free(b)
		}
	}
	for _, b := range made {
		d.Free(b)
	}
}

// TestDeal holds what of an optimizer's state a rank has that is dealt whole parameters.
func TestDeal(t *testing.T) {
	for _, c := range []struct {
		name   string
		states int
		groups [][]int64
		asked  string
		want   int64 // MiB: gradients, states, and the roots of the largest group
	}{
		{"the largest first", 2, [][]int64{{8, 4, 32, 16}}, "zero=torch,2", 60 + 2*32 + 32},
		{"those that make up for it", 2, [][]int64{{20, 18, 16, 14}}, "zero=torch,2", 68 + 2*34 + 34},
		{"of one size", 2, [][]int64{{8, 8, 8}}, "zero=torch,2", 24 + 2*16 + 16},
		{"of one size, one state", 1, [][]int64{{64, 64, 64}}, "zero=torch,3", 192 + 64 + 64},
		{"three states", 3, [][]int64{{8, 8, 8, 8}}, "zero=torch,4", 32 + 3*8 + 8},
		{"group after group", 2, [][]int64{{32, 2}, {16, 8}}, "zero=torch,2", 58 + 2*32 + 32},
		{"more ranks than parameters", 2, [][]int64{{8, 4}}, "zero=torch,1000000", 12 + 2*8 + 8},
		{"with one after another", 2, [][]int64{{8, 4, 32, 16}}, "foreach=off zero=torch,2", 60 + 2*32 + 2*32},
	} {
		in := built(t, build.Options{}, func(d *build.Device) { adam(d, c.states, c.groups...) })
		var changes []change.Change
		for text := range strings.FieldsSeq(c.asked) {
			changes = append(changes, parse(t, text))
		}
		a, err := change.Ask(t.Context(), in, changes)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := a.After.AllocatedPeak >> 20; got != c.want {
			t.Errorf("%s: %d MiB, want %d", c.name, got, c.want)
		}
	}
}
