package html

import (
	"fmt"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestSources checks that the many stacks of a compiled line are one row, and so are stacks that only torch's inside
// tells apart.
func TestSources(t *testing.T) {
	r, err := analyze.Run(t.Context(), buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		for i := range 40 {
			d.Stack = build.NewStack(fmt.Sprintf("/tmp/torchinductor_me/ab/cabc.py:%d:call", i+1), "/app/model.py:38:forward")
			d.Alloc(8 << 20)
		}
		for i := range 3 {
			inside := []string{"/lib/python3.11/site-packages/torch/_tensor.py:9:to"}
			for range i {
				inside = append(inside, "/lib/python3.11/site-packages/torch/nn/modules/module.py:933:_apply")
			}
			d.Stack = build.NewStack(append(inside, "/app/train.py:7:main")...)
			d.Alloc(16 << 20)
		}
	})), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	contains(t, visible(write(t, r)), "320 MiB 87% 40 1 model.py:38 forward",
		"40 compiled stacks; the largest is listed", "48.0 MiB 13% 3 2 train.py:7 main", "3 stacks; the largest is listed")
}
