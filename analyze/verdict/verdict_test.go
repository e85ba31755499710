package verdict_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

func at(d *build.Device, line string) { d.Stack = build.NewStack(line, "/app/train.py:9:<module>") }

// TestJudge runs small programs and holds what is said of them.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name    string
		opt     build.Options
		program func(d *build.Device)
		status  finding.Status
		id      string // of the first finding, "" when there is none
		says    string // in its title, reasons and next steps
	}{
		{"live memory fills the device", build.Options{Capacity: gib}, func(d *build.Device) {
			at(d, "/app/model.py:7:forward")
			for range 12 {
				d.Alloc(100 * mib)
			}
		}, finding.Capacity, "oom", "1000 MiB in 10 blocks, came from model.py:7 forward"},

		{"free memory in pieces", build.Options{Capacity: gib}, func(d *build.Device) {
			at(d, "/app/load.py:7:read")
			var blocks []*build.Block
			for range 200 {
				blocks = append(blocks, d.Alloc(5*mib))
			}
			for i, b := range blocks {
				if i%4 != 0 {
					d.Free(b)
				}
			}
			d.Alloc(100 * mib)
		}, finding.Fragmentation, "oom", "most come from load.py:7 read"},

		{"the pieces and the rest of the device, which no setting joins", build.Options{Capacity: 1100 * mib}, func(d *build.Device) {
			at(d, "/app/load.py:7:read")
			var blocks []*build.Block
			for range 200 {
				blocks = append(blocks, d.Alloc(5*mib))
			}
			for i, b := range blocks {
				if i%20 == 0 {
					d.Free(b)
				}
			}
			d.Alloc(130 * mib)
		}, finding.Capacity, "oom", "no allocator setting would have helped"},

		{"the free piece is another stream's", build.Options{Capacity: gib}, func(d *build.Device) {
			at(d, "/app/load.py:7:read")
			d.Stream = 0x100
			big := d.Alloc(600 * mib)
			d.Free(big)
			d.Alloc(4 * mib)
			d.Stream = 0
			d.Alloc(500 * mib)
		}, finding.Limit, "oom", "its own stream"},

		{"memory that a loop leaves behind", build.Options{Capacity: gib}, func(d *build.Device) {
			for range 9 {
				at(d, "/app/train.py:30:step")
				d.Free(d.Alloc(30 * mib))
				at(d, "/app/train.py:31:keep")
				d.Alloc(100 * mib)
			}
			at(d, "/app/train.py:32:attend")
			d.Alloc(200 * mib)
		}, finding.Ghost, "oom", "train.py:31 keep"},

		{"the free memory is a private pool's", build.Options{Capacity: gib}, func(d *build.Device) {
			at(d, "/app/graph.py:7:capture")
			d.Pool = build.Pool{A: 0, B: 1}
			for range 6 {
				d.Free(d.Alloc(100 * mib))
			}
			d.Alloc(4 * mib)
			d.Free(d.Alloc(600 * mib))
			d.Pool = build.Pool{}
			d.Alloc(500 * mib)
		}, finding.Pools, "oom", "share a pool"},

		{"another process came", build.Options{Capacity: gib}, func(d *build.Device) {
			at(d, "/app/load.py:7:read")
			var blocks []*build.Block
			for range 9 {
				blocks = append(blocks, d.Alloc(100*mib))
			}
			for _, b := range blocks {
				d.Free(b)
			}
			d.Foreign = 700 * mib
			d.Alloc(500 * mib)
		}, finding.Others, "oom", "nvidia-smi"},

		{"one request for more than there ever was", build.Options{Capacity: gib}, func(d *build.Device) {
			at(d, "/app/model.py:7:attend")
			d.Alloc(20 * gib)
		}, finding.Capacity, "oom", "quadratic intermediate"},

		{"a size that overflowed", build.Options{Capacity: gib}, func(d *build.Device) {
			at(d, "/app/model.py:7:attend")
			d.Alloc(3 << 40)
		}, finding.Absurd, "oom", "Even an empty GPU could not serve it"},

		{"a cache that may grow on purpose", build.Options{}, func(d *build.Device) {
			const module = "/lib/python3/site-packages/torch/nn/modules/module.py:1750:_call_impl"
			for range 20 {
				d.Stack = build.NewStack("/app/gen.py:30:generate", "/app/gen.py:9:<module>")
				d.Free(d.Alloc(mib))
				d.Stack = build.NewStack("/app/model.py:7:forward", module, "/app/gen.py:31:generate",
					"/app/gen.py:9:<module>")
				d.Alloc(5 * mib)
			}
		}, finding.Ghost, "growth", "key-value cache of a running generation"},

		{"cached", build.Options{}, func(d *build.Device) {
			at(d, "/app/model.py:7:forward")
			d.Alloc(3 * mib)
			d.Free(d.Alloc(500 * mib))
		}, finding.Cached, "cached", "empty_cache"},

		{"an empty trace and nothing live", build.Options{}, func(d *build.Device) {}, finding.NoData, "", ""},

		{"ordinary", build.Options{}, func(d *build.Device) {
			at(d, "/app/model.py:7:forward")
			for range 20 {
				d.Free(d.Alloc(50 * mib))
			}
			d.Alloc(40 * mib)
		}, finding.Healthy, "", ""},

		{"no stacks: out of memory is told all the same", build.Options{Capacity: gib, NoStacks: true},
			func(d *build.Device) {
				for range 12 {
					d.Alloc(100 * mib)
				}
			}, finding.Capacity, "oom", "no recorded stack"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge(t, build.Run(c.opt, c.program))
			if v.Status != c.status {
				t.Errorf("status %s, want %s: %s", v.Status, c.status, v.Headline)
			}
			if c.id == "" {
				if len(v.Findings) > 0 {
					t.Errorf("accuses: %+v", v.Findings)
				}
				return
			}
			if len(v.Findings) == 0 {
				t.Fatal("no findings")
			}
			f := v.Findings[0]
			text := strings.Join(append(append([]string{f.Title}, f.Why...), f.Next...), "\n")
			if f.ID != c.id || !strings.Contains(text, c.says) {
				t.Errorf("finding %q does not say %q:\n%s", f.ID, c.says, text)
			}
			if f.Title != v.Headline || len(f.Why) == 0 || len(f.Next) == 0 || f.Confidence == "" {
				t.Errorf("finding lacks a part: %+v", f)
			}
		})
	}
}

func judge(t *testing.T, made *build.Snapshot) verdict.Verdict {
	t.Helper()
	s := buildtest.Read(t, made)
	return analyzetest.Run(t, s, analyze.Options{}).Verdict
}

// TestPrograms holds the verdict on kinds of runs that are known from practice.
func TestPrograms(t *testing.T) {
	for _, p := range build.Programs() {
		for _, events := range []int{2000, 6000} {
			made, ok := build.Named(p.Name, 3, build.RandomOptions{Events: events})
			if !ok {
				t.Fatal(p.Name)
			}
			if v := judge(t, made); string(v.Status) != p.Verdict {
				t.Errorf("%s, %d events: %s, want %s: %s", p.Name, events, v.Status, p.Verdict, v.Headline)
			}
		}
	}
}

// TestOneMoment has more reserved before most is in use: a headline must not put the two together.
func TestOneMoment(t *testing.T) {
	v := judge(t, build.Run(build.Options{}, func(d *build.Device) {
		at(d, "/app/train.py:7:main")
		for range 2 {
			d.Free(d.Alloc(300 * mib))
		}
		kept := d.Alloc(720 * mib) // 1020 MiB reserved
		at(d, "/app/train.py:8:main")
		d.EmptyCache()
		at(d, "/app/train.py:9:main")
		d.Free(d.Alloc(240 * mib))
		d.Free(kept)
		d.EmptyCache()
	}))
	if want := "peaked at 960 MiB (960 MiB reserved)"; !strings.Contains(v.Headline, want) {
		t.Error(v.Headline)
	}
}

// TestLasting has segments that are kept by blocks that are there for good, or by those of a moment: advice to allocate
// early names the former, or nothing.
func TestLasting(t *testing.T) {
	for _, lasting := range []bool{true, false} {
		v := judge(t, build.Run(build.Options{Capacity: gib}, func(d *build.Device) {
			const laps = 10
			for lap := range laps {
				var passing []*build.Block
				for i := range 200 { // 4 to a segment
					at(d, "/app/model.py:7:forward")
					if i%4 > 0 || !lasting {
						passing = append(passing, d.Alloc(5*mib))
					} else if lap == 0 {
						at(d, "/app/table.py:5:fill")
						d.Alloc(5 * mib)
					}
				}
				for i, b := range passing {
					if i%4 > 0 || lasting || lap < laps-1 {
						d.Free(b)
					}
				}
			}
			d.Alloc(100 * mib)
		}))
		next := strings.Join(v.Findings[0].Next, "\n")
		if v.Status != finding.Fragmentation || lasting != strings.Contains(next, "long-lived tensors (table.py:5 fill)") ||
			strings.Contains(next, "long-lived tensors (model") {
			t.Errorf("lasting %t, %s: %s", lasting, v.Headline, next)
		}
	}
}

// TestImbalance has one device of four nearly full, or only one in use, without a reason in the stacks.
func TestImbalance(t *testing.T) {
	for others, want := range map[int64]finding.Status{500 * mib: finding.Unbalanced, 60 * gib: finding.Healthy,
		2 * mib: finding.Healthy, 0: finding.Healthy} {
		v := judge(t, build.Run(build.Options{Devices: 4}, func(d *build.Device) {
			at(d, "/app/model.py:7:forward")
			n := others
			if d.Index == 0 {
				n = 78 * gib
			}
			if n > 0 {
				d.Alloc(n)
				d.Free(d.Alloc(mib))
			}
		}))
		if v.Status != want {
			t.Errorf("%d on the others: %s: %s", others, v.Status, v.Headline)
		}
		if want == finding.Unbalanced && (v.Findings[0].Confidence != finding.Low ||
			v.Headline != "Imbalance: GPU 0 peaked at 78.0 GiB, the 3 others at 501 MiB or less.") {
			t.Errorf("%s, %s", v.Findings[0].Confidence, v.Headline)
		}
	}
}

// TestOneCause reports a loop that leaves memory on each of two devices once, with the memory of both.
func TestOneCause(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{Devices: 2}, func(d *build.Device) {
		for range 20 {
			d.Stack = build.NewStack("/app/train.py:31:store", "/app/train.py:9:main", "/app/train.py:20:<module>")
			d.Alloc(mib)
			d.Stack = build.NewStack("/app/train.py:12:main", "/app/train.py:20:<module>")
			d.Free(d.Alloc(mib))
		}
	}))
	v := analyzetest.Run(t, s, analyze.Options{NoReplay: true}).Verdict
	if len(v.Findings) != 1 || v.Findings[0].Bytes != 40*mib || !strings.Contains(strings.Join(v.Findings[0].Why, "\n"),
		"GPU 1: the same, 20.0 MiB in 20 blocks.") {
		t.Errorf("%+v", v.Findings)
	}
}

// TestEvery says how often a loop leaves memory, beside how much it leaves each time: the two make the slope.
func TestEvery(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		for i := range 60 {
			d.Stack = build.NewStack("/app/train.py:31:store", "/app/train.py:9:main", "/app/train.py:20:<module>")
			if b := d.Alloc(mib); i%3 != 2 {
				d.Free(b)
			}
			d.Stack = build.NewStack("/app/train.py:12:main", "/app/train.py:20:<module>")
			d.Free(d.Alloc(mib))
		}
	}))
	v := analyzetest.Run(t, s, analyze.Options{NoReplay: true}).Verdict
	if !strings.Contains(v.Headline, "main() retains 1.00 MiB more about every 3 steps") {
		t.Error(v.Headline)
	}
	if g := v.Findings[0].Evidence.Growth; g.Slope < mib/4 || g.Slope > mib/2 {
		t.Errorf("%.0f bytes an iteration", g.Slope)
	}
}
