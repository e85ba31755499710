package attribution_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/snapshot"
)

const traces = "../../fixtures/lab/traces/"

// TestLabels groups what releases of torch recorded beside allocations.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		file string
		by   attribution.Kind
		at   int // event
		want []string
	}{
		{"2.11/metadata_json", "metadata.step", 52, []string{"0: 7", "1: 7", "2: 7"}},
		{"2.15/metadata_json", "metadata.phase.name", 52, []string{"fwd: 21"}},
		{"2.15/metadata_json", "metadata.phase", 52, []string{`{"name":"fwd"}: 21`}},
		{"2.15/metadata_json", "metadata.tags", 52, []string{`["a",1,null]: 21`}},
		{"2.15/metadata_json", "metadata.owner", 52, []string{"Zoë: 21"}},
		{"2.15/metadata_dict", "metadata.module", 27, []string{"layers.0: 8"}},
		{"2.14/metadata_text", attribution.ByMetadata, 53,
			[]string{"step 1; rank=0: 7", "step 0; rank=0: 7", "step 2; rank=0: 7", "?(without metadata): 6"}},
		{"2.15/annotate", attribution.ByAnnotation, 20,
			[]string{"?(without annotation): 7", "again: 1", `{"role": "saved", "layer": 3}: 1`}},
		{"2.15/annotate", attribution.ByAnnotation, 4,
			[]string{"packed for backward: 1", "?(without annotation): 1"}},
		{"2.15/annotate", "annotation.layer", 30, []string{"?(without annotation.layer): 9", "3: 1"}}, // "again" is freed
		{"2.15/annotate", attribution.ByMetadata, 30, []string{"?(without metadata): 10"}},
		{"2.15/plain", attribution.ByCompile, 5, []string{"?(in no compiled region): 4"}},
	} {
		s := open(t, traces+c.file+".pickle.xz")
		tl := timeline.Build(s, 0)
		if err := c.by.Check(s, tl); err != nil {
			t.Errorf("%s by %s: %v", c.file, c.by, err)
			continue
		}
		st := tl.StateAt(c.at)
		checkSums(t, s, tl, st, attribution.Query{By: c.by}, c.file)
		var got []string
		for _, r := range attribution.Hold(s, tl, st, attribution.Query{By: c.by}).Rows {
			name := fmt.Sprintf("%s: %d", r.Name, r.Count)
			if r.Unattributed {
				name = "?" + name
			}
			got = append(got, name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s by %s at %d:\n got %q\nwant %q", c.file, c.by, c.at, got, c.want)
		}
	}
}

func TestNoKey(t *testing.T) {
	for _, c := range []struct {
		file string
		by   attribution.Kind
		want string
	}{
		{"2.15/metadata_json", "metadata.stage",
			`no metadata in the file has the key "stage"; choose from owner, phase, phase.name, step, tags`},
		{"2.15/metadata_text", "metadata.step", "no metadata in the file has keys"},
		{"2.15/annotate", "annotation.step", "choose from layer, role"},
		{"2.15/annotate", "metadata.layer", "no metadata in the file has keys"},
		{"2.15/plain", "metadata.a", "no metadata in the file has keys"},
	} {
		s := open(t, traces+c.file+".pickle.xz")
		err := c.by.Check(s, timeline.Build(s, 0))
		var no *attribution.NoKeyError
		if !errors.As(err, &no) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s by %s: %v", c.file, c.by, err)
		}
	}
	for k, want := range map[attribution.Kind]bool{"metadata": true, "metadata.a": true, "metadata.a.b": true,
		"metadata.": false, "annotation.x": true, "compile": true, "compile.x": false, "pool.x": false, "": false} {
		if k.Known() != want {
			t.Errorf("%q is known: %v", k, !want)
		}
	}
}

// TestRegions groups by compiled region, with blocks of which nothing is known.
func TestRegions(t *testing.T) {
	s := readWith(t, build.Options{Late: true, Torch: 212}, func(d *build.Device) {
		d.Alloc(512)
		d.Record()
		d.Region, d.Note = "Torch-Compiled Region: 0/0", `{"a": {"b.c": 1}, "a.b": ""} `
		d.Alloc(3 * mib)
		d.Region, d.Note = "", "{not json"
		d.Alloc(2 * mib)
	})
	tl := timeline.Build(s, 0)
	for by, want := range map[attribution.Kind][]string{
		attribution.ByCompile: {"Torch-Compiled Region: 0/0: 1 6144-0 40960 0", "?(in no compiled region): 1 4096-0 40960 0",
			"?(before the trace, not recorded): 1 1-0 4096 1"},
		"metadata.a.b.c": {"1: 1 6144-0 40960 0", "?(without metadata.a.b.c): 1 4096-0 40960 0",
			"?(before the trace, not recorded): 1 1-0 4096 1"},
		"metadata.a.b": {`"": 1 6144-0 40960 0`, "?(without metadata.a.b): 1 4096-0 40960 0",
			"?(before the trace, not recorded): 1 1-0 4096 1"},
	} {
		if got := rows(attribution.Hold(s, tl, end(tl), attribution.Query{By: by})); !slices.Equal(got, want) {
			t.Errorf("by %s:\n got %q\nwant %q", by, got, want)
		}
	}
}

// TestBlocks lists blocks one by one, with what tells them apart.
func TestBlocks(t *testing.T) {
	var addr [2]uint64
	s, tl := read(t, func(d *build.Device) {
		a := d.Alloc(3 * mib)
		d.Alloc(2 * mib)
		d.Free(a)
		d.Free(d.Alloc(3 * mib)) // where a was
		d.Alloc(3 * mib)
		d.Stream, d.Pool = 0x55, build.Pool{A: 0, B: 1}
		d.Alloc(512)
	})
	h := attribution.Hold(s, tl, end(tl), attribution.Query{By: attribution.ByBlock})
	var got []string
	for i := range h.Rows {
		b := &h.Rows[i].Largest
		if i < len(addr) {
			addr[i] = b.Name.Addr
		}
		got = append(got, fmt.Sprintf("%d %d %s %s %d", b.Requested/512, b.Generation, b.Stream, b.Pool, b.Born))
	}
	want := []string{"6144 2 0 default pool 8", "4096 0 0 default pool 2", "1 0 1 private pool (0, 1) 10"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if name := h.Rows[0].Largest.Name.String(); name != fmt.Sprintf("b%x_2", addr[0]) || addr[0] == addr[1] {
		t.Errorf("named %s", name)
	}
}

// TestNames holds names against counting.
func TestNames(t *testing.T) {
	s := open(t, traces+"2.15/streams.pickle.xz")
	tl := timeline.Build(s, 0)
	rows := make([]int32, len(tl.Lives))
	for i := range rows {
		rows[i] = int32(len(rows) - 1 - i)
	}
	names, homes := tl.Names(rows), tl.Homes(rows)
	seen := map[uint64]int32{}
	for i := len(rows) - 1; i >= 0; i-- {
		l := &tl.Lives[rows[i]]
		if want := (timeline.Name{Addr: l.Addr, Generation: seen[l.Addr]}); names[i] != want {
			t.Fatalf("row %d is %s, want %s", rows[i], names[i], want)
		}
		seen[l.Addr]++
		if h := &homes[i]; h.Addr > l.Addr || h.End() < l.End() || h.Stream == snapshot.StreamID(-1) {
			t.Fatalf("row %d at %x lives in %+v", rows[i], l.Addr, h)
		}
	}
}

func TestLocateAnnotation(t *testing.T) {
	s := open(t, traces+"2.15/annotate.pickle.xz")
	tl := timeline.Build(s, 0)
	for at, want := range map[string]int{"annotation:again": 6, "annotation:packed for backward": 4,
		"annotation:saved": 5, "annotation:a": 4} {
		m, err := attribution.Locate(s, tl, at)
		if err != nil || m.Event != want || !strings.Contains(m.Name, "annotated") {
			t.Errorf("%s: %+v, %v; want event %d", at, m, err, want)
		}
	}
	for _, at := range []string{"annotation:", "annotation:nobody"} {
		if m, err := attribution.Locate(s, tl, at); err == nil || !strings.Contains(err.Error(), `"packed for backward"`) {
			t.Errorf("%s: %+v, %v", at, m, err)
		}
	}
	plain := open(t, traces+"2.15/plain.pickle.xz")
	if m, err := attribution.Locate(plain, timeline.Build(plain, 0), "annotation:x"); err == nil ||
		!strings.Contains(err.Error(), "no annotations") {
		t.Errorf("without any: %+v, %v", m, err)
	}
}

// TestFXNodes reads the keys that torch 2.15 adds to frames of compiled code: with augment_with_fx_traces=True, and
// only where torch.fx.experimental._config.enrich_profiler_metadata was on when it was compiled.
func TestFXNodes(t *testing.T) {
	s := open(t, "testdata/fx_2.15.pickle.xz")
	tl := timeline.Build(s, 0)
	st := tl.StateAt(tl.PeakActive.Event)
	var got []string
	for _, r := range attribution.Hold(s, tl, st, attribution.Query{By: attribution.ByBlock}).Rows {
		for _, n := range r.Notes {
			if n.Kind == "fx_node" {
				got = append(got, n.Text)
			}
		}
	}
	slices.Sort(got)
	got = slices.Compact(got)
	want := []string{"call_function addmm_1 (aten.addmm.default)", "call_function mm_1 (aten.mm.default)",
		"call_function mm_2 (aten.mm.default)", "call_function relu (aten.relu.default)",
		"call_function sum_1 (aten.sum.dim_IntList)",
		"call_function threshold_backward (aten.threshold_backward.default)"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
