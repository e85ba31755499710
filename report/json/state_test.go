package json

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	fixture "github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

const mib = 1 << 20

// compiled is a program with a compiled region, of torch 2.12.
func compiled(t *testing.T) (*snapshot.Snapshot, *timeline.Timeline) {
	t.Helper()
	var buf bytes.Buffer
	program := func(d *fixture.Device) {
		d.Stack = fixture.NewStack("/app/model.py:7:forward", "/app/train.py:3:main")
		d.Alloc(4 * mib)
		d.Record()
		d.Region = "Torch-Compiled Region: 0/0"
		d.Alloc(3 * mib)
		d.Region, d.Stack = "", fixture.NewStack("/app/data.py:5:load", "/app/train.py:4:main")
		d.Alloc(2*mib + 100)
		d.Stack = nil
		d.Alloc(mib)
	}
	if err := fixture.Run(fixture.Options{Torch: 212, Late: true}, program).Write(&buf,
		pickler.Options{Protocol: 4}); err != nil {
		t.Fatal(err)
	}
	s, err := load.Read(t.Context(), &buf, "made.pickle", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, timeline.Build(s, 0)
}

func writeState(t *testing.T, q attribution.Query, tree bool, top int) []byte {
	t.Helper()
	s, tl := compiled(t)
	return writeOf(t, s, tl, q, tree, top)
}

// writeWindow is writeState of a window that is the whole trace.
func writeWindow(t *testing.T) []byte {
	t.Helper()
	s, tl := compiled(t)
	s.Window = &snapshot.Window{Traces: []snapshot.WindowTrace{{Events: tl.Trace.Len(), Of: tl.Trace.Len()}}}
	return writeOf(t, s, timeline.Build(s, 0), attribution.Query{}, false, 0)
}

func writeOf(t *testing.T, s *snapshot.Snapshot, tl *timeline.Timeline, q attribution.Query, tree bool,
	top int) []byte {
	t.Helper()
	m, err := attribution.Locate(s, tl, "end")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	q.Category = func(row int32) string { return [...]string{"parameter", ""}[row%2] }
	if err := WriteState(&b, attribution.Ask(s, tl, m, q, tree), top); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestStateGolden(t *testing.T) {
	golden.Check(t, "state.json", writeState(t, attribution.Query{Exclude: regexp.MustCompile("data")}, true, 1))
}

func TestStateSchema(t *testing.T) {
	checkSchema(t, stateSchema, writeState(t, attribution.Query{}, true, 0),
		writeState(t, attribution.Query{By: attribution.ByPool}, false, 1), writeWindow(t))
}

// TestStateCloses adds up what a document lists.
func TestStateCloses(t *testing.T) {
	s, tl := compiled(t)
	m, err := attribution.Locate(s, tl, "end")
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []attribution.Kind{attribution.ByStack, attribution.BySite, attribution.ByPool} {
		for top := range 4 {
			d := buildState(attribution.Ask(s, tl, m, attribution.Query{By: by, Exclude: regexp.MustCompile("data")},
				true), top)
			sum := d.Others.Rounded + d.LeftOut.Rounded
			for _, g := range d.Groups {
				sum += g.Rounded
			}
			var self int64
			for _, n := range d.Tree {
				self += n.Self
			}
			if sum != d.Totals.Active || self+d.LeftOut.Rounded != d.Totals.Active || d.TreeN != len(d.Tree) {
				t.Errorf("by %s, %d groups: sum %d, tree %d + %d, active %d", by, top, sum, self, d.LeftOut.Rounded,
					d.Totals.Active)
			}
			if top > 0 && len(d.Groups) > top || d.GroupsN < len(d.Groups) {
				t.Errorf("by %s, %d groups: %d of %d", by, top, len(d.Groups), d.GroupsN)
			}
		}
	}
}

// TestMapCloses holds that blocks and holes tile the segments, and name what holds them.
func TestMapCloses(t *testing.T) {
	s, tl := compiled(t)
	m, err := attribution.Locate(s, tl, "end")
	if err != nil {
		t.Fatal(err)
	}
	a := attribution.Ask(s, tl, m, attribution.Query{}, false)
	v := buildMap(a)
	sizes := make([]int64, len(v.Segments))
	for _, b := range v.Blocks {
		sizes[b.Segment] += b.Size
		if b.Category != "unknown" || b.State != "allocated" || v.Sites[b.Site] == "" {
			t.Errorf("%+v", b)
		}
	}
	for _, h := range v.Holes {
		sizes[h.Segment] += h.Size
	}
	for i, seg := range v.Segments {
		if sizes[i] != seg.Size {
			t.Errorf("segment %d: %d of %d bytes", i, sizes[i], seg.Size)
		}
	}
	if v.BlocksN != len(v.Blocks) || v.HolesN != len(v.Holes) || len(v.Segments) == 0 {
		t.Errorf("%d blocks, %d holes, %d segments", v.BlocksN, v.HolesN, len(v.Segments))
	}
}
