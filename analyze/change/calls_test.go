package change_test

import (
	"slices"
	"testing"

	"github.com/snapana/snapana/fixtures/build"
)

// TestCalls holds how many modules lines are found to call, by what blocks allocate one after another.
func TestCalls(t *testing.T) {
	module := func(line, inner string) []string {
		return slices.Concat([]string{torch + "nn/modules/conv.py:" + inner + ":forward"}, called,
			[]string{"/app/block.py:" + line + ":forward"})
	}
	own := func(line string) []string { return []string{"/app/block.py:" + line + ":forward"} }
	body := func(inner string) []string {
		return slices.Concat([]string{torch + "nn/modules/conv.py:" + inner + ":forward"}, called,
			[]string{torch + "nn/modules/container.py:250:forward"}, called, []string{"/app/block.py:10:forward"})
	}
	// The statement (a(x)\n + b(x)); x + body(x), and what comes behind; and that with a module for x.
	plain := [][]string{module("10", "1"), module("11", "2"), own("10")}
	identity := [][]string{body("1"), body("2"), body("1"), body("2"), own("10"), module("12", "3")}
	// Two modules in one statement, of classes that the file has in the other order, the second with a list of layers.
	in := func(line, inner string) []string {
		return slices.Concat([]string{torch + "nn/modules/conv.py:" + inner + ":forward"}, called,
			[]string{"/app/block.py:" + line + ":forward"}, called, []string{"/app/block.py:61:forward"})
	}
	listed := slices.Concat([]string{torch + "nn/modules/conv.py:1:forward"}, called,
		[]string{torch + "nn/modules/container.py:250:forward"}, called, []string{"/app/block.py:20:forward"}, called,
		[]string{"/app/block.py:61:forward"})
	composed := [][]string{in("39", "1"), in("51", "2"), listed, in("20", "3"), listed, in("20", "2")}
	shortcut := slices.Concat([][]string{module("10", "4")}, identity)
	for _, c := range []struct {
		name   string
		blocks [][][]string
		asked  string
		want   int
	}{
		{"a statement of two lines", [][][]string{plain, plain, plain, plain, plain, plain}, "model.py:7.*", 6},
		{"bodies that repeat", [][][]string{identity, identity, identity, identity}, "model.py:7.*", 4},
		{"with a shortcut, or none", [][][]string{identity, shortcut, shortcut, identity}, "model.py:7.*", 4},
		{"of two classes", [][][]string{composed, composed, composed, composed}, "model.py:7.*", 4},
		{"by its caller", [][][]string{plain, plain, plain}, "model.py:20.*", 3},
	} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 3 {
				var kept []*build.Block
				for _, block := range c.blocks {
					for _, code := range block {
						d.Stack = build.NewStack(slices.Concat(code, called, []string{"/app/model.py:7:run",
							"/app/model.py:20:forward"}, called, []string{"/app/train.py:9:main"})...)
						kept = append(kept, d.Alloc(2<<20))
					}
				}
				backward(d, kept, 1<<20)
			}
		})
		if got := ask(t, in, "checkpoint="+c.asked).Changes[0].Modules; got != c.want {
			t.Errorf("%s: %d modules, want %d", c.name, got, c.want)
		}
	}
}
