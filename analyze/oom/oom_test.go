package oom_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// explain reports on the last request of a program that failed. change, if any, edits what the
// snapshot says.
func explain(t *testing.T, opt build.Options, total int64, program func(*build.Device),
	change func(*snapshot.Snapshot, *timeline.OOMEvent)) *oom.Report {
	t.Helper()
	s := buildtest.Read(t, build.Run(opt, program))
	tl := timeline.Build(s, 0)
	if len(tl.OOMs) == 0 {
		t.Fatal("nothing failed")
	}
	last := tl.OOMs[len(tl.OOMs)-1]
	if change != nil {
		change(s, &last)
	}
	st := tl.StateAt(last.Event)
	free := fragmentation.Measure(tl, st)
	return oom.Explain(s, last, &oom.Evidence{Timeline: tl, State: st, Free: &free, Growth: ghost.Find(s, tl, nil),
		Total: total})
}

func fill(d *build.Device, n int, size int64) (blocks []*build.Block) {
	for range n {
		blocks = append(blocks, d.Alloc(size))
	}
	return blocks
}

func TestCause(t *testing.T) {
	full := func(d *build.Device) {
		fill(d, 9, 100*mib)
		d.Alloc(200 * mib)
	}
	pieces := func(d *build.Device) {
		for i, b := range fill(d, 200, 5*mib) {
			if i%4 != 0 {
				d.Free(b)
			}
		}
		d.Alloc(100 * mib)
	}
	for _, c := range []struct {
		name    string
		opt     build.Options
		total   int64
		program func(*build.Device)
		change  func(*snapshot.Snapshot, *timeline.OOMEvent)
		want    oom.Cause
	}{
		{name: "tensors fill the device", program: full, want: oom.Capacity},
		{name: "of a device that is told, too", total: gib + 300*mib, program: full, want: oom.Capacity},
		{name: "most of the device is not PyTorch's", total: 8 * gib, program: full, want: oom.Others},
		{name: "a total that cannot be is left aside", total: 100 * mib, program: full, want: oom.Capacity},
		{name: "another process came", program: func(d *build.Device) {
			for _, b := range fill(d, 9, 100*mib) {
				d.Free(b)
			}
			d.Foreign = 700 * mib
			d.Alloc(500 * mib)
		}, want: oom.Others},
		{name: "pieces", program: pieces, want: oom.Fragmentation},
		{name: "pieces and the rest of the device", program: func(d *build.Device) {
			for i, b := range fill(d, 200, 5*mib) {
				if i%10 == 0 {
					d.Free(b)
				}
			}
			d.Alloc(110 * mib)
		}, want: oom.Joined},
		{name: "a size that overflowed", program: full,
			change: func(_ *snapshot.Snapshot, o *timeline.OOMEvent) { o.Requested = 1 << 62 }, want: oom.Absurd},
		{name: "more than the device has", total: 2 * gib, program: full,
			change: func(_ *snapshot.Snapshot, o *timeline.OOMEvent) { o.Requested = 3 * gib }, want: oom.Absurd},
		{name: "more than the process ever had", program: full,
			change: func(_ *snapshot.Snapshot, o *timeline.OOMEvent) { o.Requested = 3 * gib }, want: oom.TooLarge},
		{name: "room on the device", program: full, change: func(_ *snapshot.Snapshot,
			o *timeline.OOMEvent) {
			o.DeviceFree = 5 * gib
		}, want: oom.Room},
		{name: "just enough room, and nothing else", program: func(d *build.Device) {
			d.Foreign = 600 * mib
			d.Alloc(500 * mib)
		}, change: func(_ *snapshot.Snapshot, o *timeline.OOMEvent) { o.Requested = 423 * mib }, want: oom.Room},
		{name: "room, and a fraction", program: full, change: func(s *snapshot.Snapshot, o *timeline.OOMEvent) {
			o.DeviceFree = 5 * gib
			s.Writer, s.Settings.Conf = snapshot.Writer{}, "per_process_memory_fraction:0.5"
		}, want: oom.Fraction},
		{name: "a private pool", program: func(d *build.Device) {
			d.Pool = build.Pool{A: 0, B: 1}
			b := fill(d, 6, 100*mib)
			for _, x := range b[1:] {
				d.Free(x)
			}
			d.Pool = build.Pool{}
			d.Alloc(450 * mib)
		}, want: oom.Pools},
		{name: "another stream's piece", program: func(d *build.Device) {
			d.Stream = 0x100
			d.Free(d.Alloc(600 * mib))
			d.Alloc(4 * mib)
			d.Stream = 0
			d.Alloc(500 * mib)
		}, want: oom.OtherStream},
		{name: "what a loop leaves", program: leaking, want: oom.Growth},
		{name: "a device of which nothing is known", program: full,
			change: func(_ *snapshot.Snapshot, o *timeline.OOMEvent) { o.DeviceFree = -1 }, want: oom.Capacity},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.opt.Capacity == 0 {
				c.opt.Capacity = gib
			}
			r := explain(t, c.opt, c.total, c.program, c.change)
			if r.Cause != c.want {
				t.Errorf("%s, want %s: %+v", r.Cause, c.want, r)
			}
		})
	}
}

// leaking keeps a tensor of each of its laps, and frees others.
func leaking(d *build.Device) {
	for range 9 {
		d.Stack = build.NewStack("/app/train.py:30:step", "/app/train.py:9:main")
		d.Free(d.Alloc(30 * mib))
		d.Stack = build.NewStack("/app/train.py:31:keep", "/app/train.py:9:main")
		d.Alloc(100 * mib)
	}
	d.Stack = build.NewStack("/app/train.py:32:attend", "/app/train.py:9:main")
	d.Alloc(200 * mib)
}

func TestAnswers(t *testing.T) {
	find := func(r *oom.Report, id string) oom.Answer {
		for _, a := range r.Answers {
			if a.ID == id {
				return a
			}
		}
		t.Fatalf("no answer %q", id)
		return oom.Answer{}
	}
	leak := explain(t, build.Options{Capacity: gib}, 0, leaking, nil)
	for id, want := range map[string]oom.Fits{
		"piece": oom.No, "segment": oom.No, "stream": oom.No, "device": oom.No, "alone": oom.NotKnown,
		"ghosts": oom.Yes,
	} {
		if a := find(leak, id); a.Fits != want {
			t.Errorf("%s: %+v, want %s", id, a, want)
		}
	}
	if g := leak.Ghosts; g.Blocks != 9 || g.Bytes != 900*mib || g.Returned != 900*mib {
		t.Errorf("ghosts %+v", g)
	}
	if r := leak.Released; r.Segments != 1 || r.Bytes != 30*mib || leak.Before.Reserved-leak.After.Reserved != 30*mib {
		t.Errorf("released %+v, before %+v, after %+v", r, leak.Before, leak.After)
	}
	if p := leak.Plan; p.Blocks != 1 || p.Returned != 100*mib || !p.Fewest {
		t.Errorf("plan %+v", p)
	}
	for total, want := range map[int64]oom.Fits{gib: oom.No, gib + 600*mib: oom.NotKnown, 8 * gib: oom.Yes} {
		if a := find(explain(t, build.Options{Capacity: gib}, total, leaking, nil), "alone"); a.Fits != want {
			t.Errorf("alone on %d MiB: %+v, want %s", total/mib, a, want)
		}
	}
}
