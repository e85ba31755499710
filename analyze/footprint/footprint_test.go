package footprint_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/snapshot/load"
)

func random(t *testing.T, seed uint64, shape build.Shape) []*footprint.Footprint {
	t.Helper()
	return taken(t, build.Random(seed, shape.Options))
}

// taken are the footprints of the end of a snapshot, by device.
func taken(t *testing.T, of *build.Snapshot) []*footprint.Footprint {
	t.Helper()
	var b bytes.Buffer
	if err := of.Write(&b, pickler.Options{Protocol: 4}); err != nil {
		t.Fatal(err)
	}
	s, err := load.Read(t.Context(), &b, "random.pickle", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out []*footprint.Footprint
	for _, device := range s.UsedDevices() {
		tl := timeline.Build(s, device)
		found := steps.Find(s, tl)
		f, err := footprint.Take(&footprint.Subject{
			Name: "random.pickle", Snapshot: s, Timeline: tl, Uses: category.Find(s, tl, &found, nil), Steps: &found,
		}, "end")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// TestSums holds that the groups of a footprint are all of the active memory, in blocks and bytes.
func TestSums(t *testing.T) {
	for i, shape := range build.Shapes() {
		for _, f := range random(t, uint64(i), shape) {
			var rounded, requested int64
			for _, g := range f.Groups {
				rounded, requested = rounded+g.Rounded, requested+g.Requested
				var count, bytes int64
				for _, s := range g.Sizes {
					count, bytes = count+s.Count, bytes+s.Count*s.Rounded
				}
				if count != g.Count || bytes != g.Rounded {
					t.Errorf("%s: sizes of %s are %d blocks of %d bytes, want %d of %d", shape.Name, g.Site, count, bytes,
						g.Count, g.Rounded)
				}
			}
			if rounded != f.Totals.Active || requested != f.Totals.Requested {
				t.Errorf("%s: %d and %d bytes, want %d and %d", shape.Name, rounded, requested, f.Totals.Active,
					f.Totals.Requested)
			}
		}
	}
}

// TestShown holds that stacks which differ in frames that nobody is shown, such as the two ways in which modules are called,
// are one group, as in a file.
func TestShown(t *testing.T) {
	module := "/usr/lib/python3/dist-packages/torch/nn/modules/module.py:"
	f := taken(t, build.Run(build.Options{}, func(d *build.Device) {
		for _, line := range []string{"1747", "1857", "1747"} {
			d.Stack = build.NewStack("/app/model.py:7:forward", module+line+":_call_impl", module+"9:_wrapped_call_impl",
				"/app/train.py:3:main")
			d.Alloc(4096)
		}
	}))[0]
	if len(f.Groups) != 1 || len(f.Stacks) != 1 || f.Groups[0].Count != 3 || len(f.Groups[0].Sizes) != 1 {
		t.Errorf("%d stacks, groups %+v", len(f.Stacks), f.Groups)
	}
}

// TestFile writes footprints and reads them again: what was written, and the same bytes.
func TestFile(t *testing.T) {
	for i, shape := range build.Shapes() {
		for _, f := range random(t, uint64(i), shape) {
			var first, second bytes.Buffer
			if err := footprint.Write(&first, f); err != nil {
				t.Fatal(err)
			}
			got, err := footprint.Read(bytes.NewReader(first.Bytes()))
			if err != nil {
				t.Fatalf("%s: %v", shape.Name, err)
			}
			if err := footprint.Write(&second, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Errorf("%s: written again it is other bytes", shape.Name)
			}
			if !reflect.DeepEqual(got.Peaks, f.Peaks) || len(got.Groups) != len(f.Groups) {
				t.Errorf("%s: read %+v", shape.Name, got)
			}
		}
	}
}

// TestCompact keeps the largest groups of a footprint that has many, and the sum of all others.
func TestCompact(t *testing.T) {
	f := &footprint.Footprint{At: "peak", Top: -1, Steps: make([]footprint.Step, 2000)}
	uses := map[category.Category]int64{}
	for i := range 1200 {
		n := int64(1200-i)*512 + 4096
		g := footprint.Group{Stack: int32(i), Site: "a.py:1 f", Known: true, Use: category.Category(i % 3)}
		g.Sizes = []footprint.Size{{Requested: n - 300, Rounded: n, Count: 2}, {Requested: n, Rounded: n, Count: 1}}
		g.Sum = attribution.Sum{Count: 3, Rounded: 3 * n, Requested: 3*n - 600}
		f.Groups = append(f.Groups, g)
		f.Frames = append(f.Frames, attribution.Frame{File: "a.py", Line: int32(i), Name: "f"})
		f.Stacks = append(f.Stacks, []int32{int32(i)})
		f.Totals.Active, f.Totals.Requested = f.Totals.Active+g.Rounded, f.Totals.Requested+g.Requested
		uses[g.Use] += g.Rounded
	}
	var b bytes.Buffer
	if err := footprint.Write(&b, f.Compact()); err != nil {
		t.Fatal(err)
	}
	got, err := footprint.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	var requested int64
	for i, g := range got.Groups {
		requested += g.Requested
		uses[g.Use] -= g.Rounded
		if g.Known && got.Frames[got.Stacks[g.Stack][0]].Line != int32(i) {
			t.Errorf("group %d has the stack of another", i)
		}
	}
	if len(got.Groups) != 503 || len(got.Frames) != 500 || requested != f.Totals.Requested || len(got.Steps) > 0 ||
		!reflect.DeepEqual(uses, map[category.Category]int64{0: 0, 1: 0, 2: 0}) {
		t.Errorf("%d groups of %d bytes, %d frames, by use %v too few", len(got.Groups), requested, len(got.Frames), uses)
	}
}

// TestWrongFiles reads files that no one wrote.
func TestWrongFiles(t *testing.T) {
	var b bytes.Buffer
	if err := footprint.Write(&b, random(t, 1, build.Shapes()[0])[0]); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	for name, change := range map[string]func(s string) string{
		"empty":     func(string) string { return "" },
		"cut":       func(s string) string { return s[:len(s)/2] },
		"schema":    func(s string) string { return strings.Replace(s, "baseline/1", "baseline/9", 1) },
		"total":     func(s string) string { return strings.Replace(s, `"active":`, `"active":1`, 1) },
		"use":       func(s string) string { return strings.Replace(s, `"use":"`, `"use":"x`, 1) },
		"stack":     func(s string) string { return strings.Replace(s, `"stack":[`, `"stack":[99999,`, 1) },
		"size":      func(s string) string { return strings.Replace(s, `"sizes":[[`, `"sizes":[[1,1,1],[`, 1) },
		"no origin": func(s string) string { return strings.Replace(s, "\"frames\": [\n  \"", "\"frames\": [\n  \"9", 1) },
	} {
		if _, err := footprint.Read(strings.NewReader(change(good))); !errors.Is(err, footprint.ErrNoFootprint) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// FuzzRead reads whatever is given as a baseline.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":"snapana.baseline/1","groups":[{"use":"other","blocks":1,"bytes":512,"stack":[0],` +
		`"sizes":[[500,512,1]]}],"frames":["5 a.py:1 f"],"totals":{"active":512}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := footprint.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var sum int64
		for _, g := range got.Groups {
			sum += g.Rounded
			if int(g.Stack) >= len(got.Stacks) {
				t.Errorf("stack %d of %d", g.Stack, len(got.Stacks))
			}
		}
		if sum != got.Totals.Active {
			t.Errorf("%d bytes of %d", sum, got.Totals.Active)
		}
		var b bytes.Buffer
		if err := footprint.Write(&b, got); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCourse holds that a course has at its samples what a footprint of that moment has, that no peak is between samples,
// and that they are all of the trace.
func TestCourse(t *testing.T) {
	for i, shape := range build.Shapes() {
		var b bytes.Buffer
		if err := build.Random(uint64(i), shape.Options).Write(&b, pickler.Options{Protocol: 4}); err != nil {
			t.Fatal(err)
		}
		s, err := load.Read(t.Context(), &b, "random.pickle", load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tl := timeline.Build(s, s.UsedDevices()[0])
		found := steps.Find(s, tl)
		q := &footprint.Subject{Snapshot: s, Timeline: tl, Uses: category.Find(s, tl, &found, nil), Steps: &found, Samples: 5}
		take := func(event int) *footprint.Footprint {
			f, err := footprint.Take(q, fmt.Sprint(event))
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if tl.Trace.Len() == 0 {
			if f, err := footprint.Take(q, "end"); err != nil || f.Course != nil {
				t.Errorf("%s: a course without a trace, or %v", shape.Name, err)
			}
			continue
		}
		f := take(tl.Trace.Len() / 2)
		c := f.Course
		if c == nil {
			t.Errorf("%s: no course", shape.Name)
			continue
		}
		next, most := 0, int64(0)
		for k, v := range c.Samples {
			if v.First != next || v.Event < v.First || v.Event > v.Last {
				t.Fatalf("%s: sample %d is of %d to %d at %d, want it from %d on", shape.Name, k, v.First, v.Last, v.Event, next)
			}
			next, most = v.Last+1, max(most, v.Active)
			there := map[string]int64{}
			at := take(v.Event)
			for g := range at.Groups {
				there[name(at, &at.Groups[g])] += at.Groups[g].Rounded
			}
			for g := range c.Groups {
				if want := there[name(f, &f.Groups[g])]; c.Groups[g][k] != want {
					t.Errorf("%s: %s has %d bytes at event %d, want %d", shape.Name, f.Groups[g].Site, c.Groups[g][k], v.Event, want)
				}
			}
			sum := int64(0)
			for _, bytes := range c.Groups {
				sum += bytes[k]
			}
			for i := range c.Others {
				sum += c.Others[i].Bytes[k]
			}
			if sum != v.Active {
				t.Errorf("%s: courses have %d bytes at event %d, want %d", shape.Name, sum, v.Event, v.Active)
			}
			if v.Active != at.Totals.Active {
				t.Errorf("%s: %d bytes at event %d, want %d", shape.Name, v.Active, v.Event, at.Totals.Active)
			}
		}
		if next != c.Events || c.At != tl.Trace.Len()/2 || most != tl.PeakActive.Bytes && tl.PeakActive.Event >= 0 {
			t.Errorf("%s: %d of %d events, the highest %d of %d", shape.Name, next, c.Events, most, tl.PeakActive.Bytes)
		}
	}
}

// name tells the groups of footprints of one file apart.
func name(f *footprint.Footprint, g *footprint.Group) string {
	s := fmt.Sprint(g.Site, g.Module, g.Use)
	if g.Stack >= 0 {
		for _, row := range f.Stacks[g.Stack] {
			s += fmt.Sprint(f.Frames[row])
		}
	}
	return s
}
