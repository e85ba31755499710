package text

import (
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

const mib = 1 << 20

// program trains a little, from before the trace on.
func program(d *build.Device) {
	const (
		module = "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py:1750:_call_impl"
		linear = "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py:125:forward"
		main   = "/app/train.py:9:main"
	)
	d.Alloc(600)
	d.Record()
	d.Stack = build.NewStack("/app/data.py:3:load", main)
	d.Alloc(2 * mib)
	block := []string{"/app/a folder/model.py:38:forward", module, "/app/a folder/model.py:55:forward", module, main}
	d.Stack = build.NewStack(append([]string{linear, module}, block...)...)
	d.Alloc(13 * mib)
	d.Stack, d.Region = build.NewStack(block...), "Torch-Compiled Region: 0/0"
	d.Alloc(4 * mib)
	deep := "/venv/lib/python3.12/site-packages/torch/" + strings.Repeat("deep/", 30) + "x.py:1:f"
	d.Stack, d.Region = build.NewStack(append([]string{deep}, block...)...), ""
	d.Alloc(100)
}

func answer(t *testing.T, opt build.Options, program func(*build.Device), at string, q attribution.Query,
	tree bool,
) *attribution.Answer {
	t.Helper()
	s := buildtest.Read(t, build.Run(opt, program))
	return ask(t, s, at, q, tree)
}

func ask(t *testing.T, s *snapshot.Snapshot, at string, q attribution.Query, tree bool) *attribution.Answer {
	t.Helper()
	tl := timeline.Build(s, 0)
	m, err := attribution.Locate(s, tl, at)
	if err != nil {
		t.Fatal(err)
	}
	return attribution.Ask(s, tl, m, q, tree)
}

func stateOf(t *testing.T, a *attribution.Answer, o Options) string {
	return render(t, func(w io.Writer) error { return State(w, a, o) })
}

func TestStateGolden(t *testing.T) {
	late := build.Options{Torch: 212, Late: true}
	var all strings.Builder
	for _, c := range []struct {
		title, at string
		opt       build.Options
		q         attribution.Query
		tree      bool
		o         Options
	}{
		{"by stack, with what torch.compile recorded", "end", late, attribution.Query{}, false, Options{}},
		{"by site, the first two, filtered", "peak", late, attribution.Query{By: attribution.BySite,
			Exclude: regexp.MustCompile("data")}, false, Options{Top: 2}},
		{"by module", "3", late, attribution.Query{By: attribution.ByModule}, false, Options{}},
		{"a tree", "end", late, attribution.Query{}, true, Options{Color: true}},
		{"a tree of modules, filtered", "end", late, attribution.Query{By: attribution.ByModule,
			Match: regexp.MustCompile("model")}, true, Options{}},
		{"a tree with internals, one call each", "end", late, attribution.Query{Internals: true}, true,
			Options{Top: 1}},
		{"before the trace", "start", late, attribution.Query{By: attribution.ByPool}, false, Options{}},
		{"no trace", "end", build.Options{NoTrace: true}, attribution.Query{By: attribution.BySite}, false,
			Options{}},
		{"nothing live", "start", build.Options{}, attribution.Query{}, false, Options{}},
	} {
		a := answer(t, c.opt, program, c.at, c.q, c.tree)
		all.WriteString("== " + c.title + "\n" + stateOf(t, a, c.o) + "\n")
	}
	golden.Check(t, "state.txt", []byte(all.String()))
}

// TestStateHead checks the lines that say how far the figures can be trusted.
func TestStateHead(t *testing.T) {
	a := answer(t, build.Options{}, program, "end", attribution.Query{}, false)
	const sound = "\nverified: the replay matches the snapshot byte for byte\n"
	if out := stateOf(t, a, Options{}); !strings.Contains(out, sound) {
		t.Errorf("a sound file:\n%s", out)
	}
	a.Why = "of 2"
	a.Timeline.Checks.Overlaps, a.Timeline.Checks.Residual = 2, -512
	a.State.Outside = []int32{0}
	a.Snapshot.Partial = errors.New("cut at byte 7")
	out := stateOf(t, a, Options{})
	for _, want := range []string{"made.pickle, GPU 0 (of 2) at the end\n",
		"not verified: the file contradicts itself in 2 places, and the replay is off by 512 B\n",
		"1 live block in no known segment", "only part of the file was read: cut at byte 7\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

// TestStateFits holds the width, and keeps control characters of a file from the terminal.
func TestStateFits(t *testing.T) {
	nasty := func(d *build.Device) {
		for i := range 40 {
			deep := []string{"/app/\x1b]0;x\a" + strings.Repeat("long ", 60) + ".py:1:f",
				"??:0:at::f<" + strings.Repeat("int, ", 80) + ">()"}
			for k := range 30 + i {
				deep = append(deep, "/app/"+strings.Repeat("d/", k*4)+"m.py:"+string(rune('1'+k%9))+":forward",
					"/torch/nn/modules/module.py:9:_call_impl")
			}
			d.Stack, d.Note = build.NewStack(deep...), "n\r\n"+strings.Repeat("ü", i*7)
			d.Alloc(int64(i+1) * mib)
		}
	}
	answers := map[string]*attribution.Answer{}
	for _, k := range attribution.Kinds() {
		q := attribution.Query{By: k, Category: func(int32) string { return strings.Repeat("category ", 50) }}
		answers["by "+string(k)] = answer(t, build.Options{Torch: 212}, nasty, "end", q, false)
		q.Internals = true
		answers["tree by "+string(k)] = answer(t, build.Options{Torch: 212}, nasty, "end", q, true)
	}
	files, _ := filepath.Glob("../../fixtures/*.pickle")
	for _, file := range files {
		s, err := load.Open(t.Context(), file, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		answers[file] = ask(t, s, "peak", attribution.Query{}, false)
		answers[file+" tree"] = ask(t, s, "peak", attribution.Query{}, true)
	}
	for name, a := range answers {
		out := stateOf(t, a, Options{Top: 20})
		if strings.ContainsAny(out, "\x1b\a\r\t") {
			t.Errorf("%s: control characters", name)
		}
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > usualWidth {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
	}
}

func TestJoin(t *testing.T) {
	chain := []string{"/a/one.py:1 f", "two.py:2 g", "c/three.py:3 h", "four.py:4 i"}
	for n, want := range map[int]string{
		80: "one.py:1 f > two.py:2 g > three.py:3 h > four.py:4 i",
		50: "one.py:1 f > (1 more) > three.py:3 h > four.py:4 i",
		40: "one.py:1 f > (2 more) > four.py:4 i",
		20: "(3 more) > four.py:4 i",
	} {
		if got := join(chain, n); got != want {
			t.Errorf("%d columns: %q, want %q", n, got, want)
		}
	}
	if got := join(chain[:2], 5); got != "(1 more) > two.py:2 g" {
		t.Errorf("a pair: %q", got)
	}
}
