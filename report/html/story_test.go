package html

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestStories holds which picture each kind of verdict has, and what it names.
func TestStories(t *testing.T) {
	want := map[string]struct {
		class string
		says  []string
	}{
		"fragmentation": {"failure", []string{"14.5 GiB could be reserved", "10.6 GiB free, unusable",
			"in pieces of 15.0 MiB at most", "2.00 GiB requested", "refused, at scenarios.py:264", "3.54 GiB in use"}},
		"growth":          {"growth", []string{"1.97 GiB never freed", "+252 MiB per iteration"}},
		"healthy":         {"calm", []string{"peak", "parameter", "optimizer state", "of 688 MiB reserved"}},
		"pinned":          {"calm", []string{"peak"}},
		"unbalanced":      {"bars", []string{"GPU 0", "GPU 1", "Peak of active memory on each GPU"}},
		"sharded-oom":     {"failure", []string{"6.00 GiB requested", "15.5 GiB could be reserved", "activation"}},
		"capacity":        {"failure", []string{"1.00 GiB could be reserved", "100 MiB requested", "600 MiB activation"}},
		"growth-oom":      {"failure", []string{"200 MiB requested", "900 MiB not freed"}},
		"other-processes": {"failure", []string{"500 MiB requested", "gone since", "taken by others on the device"}},
		"private-pools":   {"failure", []string{"600 MiB free, unusable", "most of it kept for private pools"}},
		"absurd":          {"failure", []string{"3.00 TiB requested", "far beyond this picture"}},
		"cached":          {"free", []string{"500 MiB cached", "peak, 503 MiB in use"}},
		"no-history":      {"bars", []string{"480 MiB reserved", "in use 450 MiB", "cached 30.0 MiB"}},
		"pre-trace":       {"growth", []string{"480 MiB never freed", "+40.0 MiB per iteration", "660 MiB older", "from before the trace"}},
		"two-devices":     {"calm", []string{"peak", "GPU 1. Left: memory over"}},
		"inconsistent":    {"", nil}, // not to be trusted
		"empty":           {"", nil},
	}
	for _, c := range analyzetest.Verdicts() {
		t.Run(c.Name, func(t *testing.T) {
			r := c.Open(t)
			if r.Verdict.Status != c.Status {
				t.Fatalf("the verdict is %s, want %s: %s", r.Verdict.Status, c.Status, r.Verdict.Headline)
			}
			s, w := newStory(r), want[c.Name]
			if s == nil {
				if w.class != "" {
					t.Fatalf("no picture, want one of %s", w.class)
				}
				return
			}
			page := write(t, r)
			balanced(t, still(t, page))
			picture := page[strings.Index(page, "<figure"):strings.Index(page, "</figure>")]
			if bad := regexp.MustCompile(`NaN|Inf|(width|height|x|y)="-`).FindString(picture); bad != "" {
				t.Errorf("the picture holds %q", bad)
			}
			if s.Class != w.class {
				t.Errorf("a picture of %s, want %s", s.Class, w.class)
			}
			contains(t, visible(picture), w.says...)
			for i, l := range s.Labels {
				if l.Top < -storyLabels/2 || l.Top > storyHeight-storyLabels/2 {
					t.Errorf("label %q is at %d", l.Name, l.Top)
				}
				if i > 0 && l.Top < s.Labels[i-1].Top+storyLabels {
					t.Errorf("labels %q and %q overlap", s.Labels[i-1].Name, l.Name)
				}
				if !strings.Contains(s.Description(), l.Name) {
					t.Errorf("the description lacks %q", l.Name)
				}
			}
			for _, n := range []*storyNote{s.Step, s.Peak} {
				if n != nil && !strings.Contains(s.Description(), n.Text) {
					t.Errorf("the description lacks %q", n.Text)
				}
			}
		})
	}
}

// A figure that a finding does not know is not drawn.
func TestStoryLeavesOutTheUnknown(t *testing.T) {
	request := func(r *analyze.Result) *finding.Request { return r.Verdict.Lead().Evidence.Request }
	for name, c := range map[string]struct {
		forget func(r *analyze.Result)
		lacks  string
	}{
		"the device's free memory": {func(r *analyze.Result) { request(r).DeviceFree = -1 }, "could be reserved"},
		"active memory":            {func(r *analyze.Result) { request(r).Active = -1 }, "unusable"},
		"pieces":                   {func(r *analyze.Result) { request(r).LargestPiece = -1 }, "in pieces of"},
		"the request's site":       {func(r *analyze.Result) { request(r).Site = "" }, "refused, at"},
		"the event":                {func(r *analyze.Result) { r.Verdict.Lead().Events = nil }, "refused"},
	} {
		r := analyzetest.Failed(t)
		if s := newStory(r); !slices.ContainsFunc(s.Labels, func(l storyLabel) bool {
			return strings.Contains(l.Name+" "+l.Detail, c.lacks)
		}) {
			t.Errorf("%s: the picture never says %q: %+v", name, c.lacks, s.Labels)
		}
		c.forget(r)
		if s := newStory(r); strings.Contains(fmt.Sprintf("%+v", s.Labels), c.lacks) {
			t.Errorf("without %s the picture says %q", name, c.lacks)
		}
	}
}

// Of a recording that lacks blocks no moment is called the peak.
func TestStoryOfABound(t *testing.T) {
	r := analyzetest.Run(t, buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		d.Stack = build.NewStack("/app/train.py:9:<module>")
		d.Free(d.Alloc(30 << 20))
	})), analyze.Options{NoReplay: true})
	if s := newStory(r); s == nil || !strings.Contains(s.Caption, "at the peak") {
		t.Fatalf("the story is %+v, want one of the peak", s)
	}
	rec := &r.Devices[0].Timeline.Recording
	rec.Skipped, rec.Peak.Active = timeline.Allocs, timeline.AtLeast
	if s := newStory(r); !strings.Contains(s.Caption, "when the recorded part was highest") {
		t.Errorf("the caption is %q", s.Caption)
	}
}

// The staircase ends at the bytes of the finding, and rises once for each iteration.
func TestStaircase(t *testing.T) {
	for _, c := range analyzetest.Verdicts() {
		if c.Name != "growth" {
			continue
		}
		r := c.Open(t)
		d := &r.Devices[0]
		v := r.Verdict.Lead().Evidence.Growth
		laps := (&scene{d: d}).laps(&d.Growth[v.Index])
		if len(laps) != v.Iterations || laps[len(laps)-1].kept != int64(v.Bytes) {
			t.Errorf("%d steps up to %d, want %d up to %d", len(laps), laps[len(laps)-1].kept, v.Iterations, v.Bytes)
		}
	}
}

// The peak and a failure at which the same blocks live are told once, also where segments went back to the device between.
func TestEqualMoments(t *testing.T) {
	r := analyzetest.Run(t, buildtest.Read(t, build.Run(build.Options{Capacity: 1 << 30}, func(d *build.Device) {
		d.Stack = build.NewStack("/app/model.py:7:forward", "/app/train.py:9:<module>")
		d.Free(d.Alloc(30 << 20))
		var blocks []*build.Block
		for range 9 {
			blocks = append(blocks, d.Alloc(100<<20))
		}
		d.Alloc(200 << 20)
		d.Free(blocks[0])
	})), analyze.Options{})
	d := newDevice(r, &r.Devices[0], full)
	var titles []string
	for _, s := range d.Stacks {
		titles = append(titles, s.phase.Title)
	}
	if want := []string{"Peak and out of memory", "End"}; !slices.Equal(titles, want) || len(d.Uses) != 2 {
		t.Errorf("stacks of %q and %d uses, want %q", titles, len(d.Uses), want)
	}
	if len(d.Maps) != 3 {
		t.Errorf("%d maps of segments, want one of each moment", len(d.Maps))
	}
}
