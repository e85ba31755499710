package json

import (
	"bytes"
	stdjson "encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/analyzetest"
	made "github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/snapshot"
)

func reportOf(t *testing.T, r *analyze.Result) []byte {
	t.Helper()
	var a, b bytes.Buffer
	if err := Write(&a, r); err != nil {
		t.Fatal(err)
	}
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two runs differ")
	}
	return a.Bytes()
}

func TestGolden(t *testing.T) {
	golden.Check(t, "report.json", reportOf(t, analyzetest.Failed(t)))
	golden.Check(t, "empty.json", reportOf(t, analyzetest.Empty(t)))
}

// TestIndent compares with json.Indent, texts with brackets, quotes and backslashes among it.
func TestIndent(t *testing.T) {
	for _, word := range []string{"plain", `[{"a": 1},]`, `\`, `\"`, `a\\"b`, "\u2028,\n", "é\u00a0:"} {
		var got, want bytes.Buffer
		a := &whatif.Answer{File: word, Rows: []whatif.Row{{}}}
		if err := WriteWhatif(&got, a); err != nil {
			t.Fatal(err)
		}
		if err := stdjson.Indent(&want, got.Bytes(), "", " "); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%q is indented as\n%s", word, got.Bytes())
		}
	}
}

// paths collects every path of a document, with [] for the elements of arrays, and calls
// null for each null.
func paths(v any, at string, into map[string]bool, null func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			p := strings.TrimPrefix(at+"."+k, ".")
			into[p] = true
			paths(v[k], p, into, null)
		}
	case []any:
		for _, e := range v {
			if _, object := e.(map[string]any); !object {
				into[at+"[]"] = true
			}
			paths(e, at+"[]", into, null)
		}
	case nil:
		null(at)
	}
}

// checkSchema holds a part of SCHEMA.md and documents together: every path that is written is
// described, and every described path is written.
func checkSchema(t *testing.T, schema string, documents ...[]byte) {
	t.Helper()
	doc, err := os.ReadFile("SCHEMA.md")
	if err != nil {
		t.Fatal(err)
	}
	described, in := map[string]bool{}, false
	for line := range strings.Lines(string(doc)) {
		if strings.HasPrefix(line, "# ") {
			in = strings.Contains(line, "`"+schema+"`")
		}
		if s, ok := strings.CutPrefix(line, "| `"); ok && in {
			p, _, _ := strings.Cut(s, "`")
			described[p] = true
		}
	}
	written := map[string]bool{}
	for _, d := range documents {
		var v any
		if err := stdjson.Unmarshal(d, &v); err != nil {
			t.Fatal(err)
		}
		paths(v, "", written, func(p string) { t.Errorf("%s is null", p) })
	}
	for _, p := range slices.Sorted(maps.Keys(written)) {
		if !described[p] {
			t.Errorf("SCHEMA.md does not describe %s", p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(described)) {
		if !written[p] {
			t.Errorf("SCHEMA.md describes %s, which no sample writes", p)
		}
	}
}

func TestSchema(t *testing.T) {
	held, streams := analyzetest.Held(t), made.Random(1, made.RandomOptions{Events: 2000, Live: 50, Streams: 3})
	h := held.Holders
	first := &h.Holders[0]
	first.Bound, first.Formerly = &finding.Bound{Length: 3, Limit: 128, Full: 1 << 30, Hint: "x"}, &first.Reference
	first.Host, first.Views = []holder.Use{{}}, &finding.Views{}
	h.Unproven = []holder.Unproven{{Growth: &held.Devices[0].Growth[0], Holders: []int{0}}}
	held.Snapshot.Window = &snapshot.Window{Traces: []snapshot.WindowTrace{{Of: 1}}}
	held.Snapshot.Resized, held.Snapshot.Part = []snapshot.Resize{{}}, &snapshot.Part{}
	h.Notes = append(h.Notes, "2 saved tensors are behind unpack hooks")
	held.Verdict.Findings = append(held.Verdict.Findings, finding.Finding{Evidence: finding.Evidence{
		Late: &finding.Late{}, Faults: &finding.Faults{Kinds: []finding.Fault{{}}},
		Setting: &finding.Setting{Needs: "2.9"},
		Rescue: &finding.Rescue{Fit: []finding.Amended{{Changes: []finding.ProgramChange{{}}, Low: 1, High: 2,
			Confidence: finding.Low}},
			Short: []finding.Amended{{Changes: []finding.ProgramChange{{}}, Low: 1, High: 2, Confidence: finding.Low}}},
		Trends:   finding.Trends{{Rise: &finding.Rise{}}},
		Forecast: &finding.Forecast{}, Incidents: &finding.Incidents{}, Freed: new(int64),
		Unused: &finding.Unused{}, Machine: &finding.Machine{}, Workers: &finding.Workers{},
		Processes: []finding.Process{{User: "ann", State: "gone", Parent: 1, Origin: "forked",
			Elsewhere: &finding.OnDevice{}}},
		Foreign:   &finding.Foreign{PID: 1, Total: 1, Before: 1, Moved: 1, Micros: 1},
		Spare:     &finding.Spare{Sizes: []finding.OfSize{{}}},
		Holder:    &finding.Holder{Bound: &finding.Bound{}, Code: &finding.Code{}, Views: &finding.Views{}},
		Fragments: &finding.Fragments{Settled: &finding.Settled{}},
		Stays:     &finding.Leftover{Holders: []finding.Stay{{}}},
		Request:   &finding.Request{Lacks: []string{"alloc"}},
		Imbalance: &finding.Imbalance{Devices: []finding.Load{{}}, Sites: []finding.Surplus{{}}, Placed: finding.Gather},
	}})
	rec := &held.Devices[0].Timeline.Recording
	rec.Skipped, rec.Partly = timeline.Failures, timeline.Allocs
	var documents [][]byte
	for _, r := range []*analyze.Result{
		analyzetest.Failed(t), held, analyzetest.Empty(t), analyzetest.Big(t, 1),
		analyzetest.Pinned(t, "pinned-cache", made.Options{}),
		analyzetest.Run(t, buildtest.Read(t, streams), analyze.Options{}),
	} {
		documents = append(documents, reportOf(t, r))
	}
	checkSchema(t, ReportSchema, documents...)
}

// TestPinned holds that what is shown of pinned host memory closes, and is unknown where it is.
func TestPinned(t *testing.T) {
	for _, opt := range []made.Options{{}, {NoTrace: true}, {Ring: 300}} {
		p := buildPinned(analyzetest.Pinned(t, "registered", opt).Pinned)
		var held, cached int64
		for _, s := range p.Stacks {
			held += s.Bytes
		}
		for _, c := range p.Cached {
			cached += c.Bytes
			if (c.Spare < 0) != opt.NoTrace {
				t.Errorf("%+v", c)
			}
		}
		if held != p.Final.Active || cached != p.Final.Reserved-p.Final.Active ||
			(p.Peaks == nil) != opt.NoTrace || !p.Stated {
			t.Errorf("held %d, cached %d of %+v", held, cached, p)
		}
	}
}

func TestTotalsClose(t *testing.T) {
	for _, r := range []*analyze.Result{analyzetest.Failed(t), analyzetest.Ranks(t, 3), analyzetest.Big(t, 2)} {
		for _, d := range build(r).Devices {
			if len(d.Curve) > maxCurve {
				t.Errorf("device %d: %d points", d.Device, len(d.Curve))
			}
			for _, m := range d.Moments {
				var sum int64
				for _, s := range m.Stacks {
					sum += s.Rounded
				}
				if of := d.Footprints[slices.IndexFunc(d.Footprints, func(f *footprint.Document) bool {
					return f.At == m.Name
				})]; of.Totals != m.Totals {
					t.Errorf("footprint of %+v at the %s, want %+v", of.Totals, m.Name, m.Totals)
				}
				f := m.Fragmentation
				if sum != m.Totals.Active || f.Active+f.Releasable+f.Split != f.Reserved {
					t.Errorf("device %d %s: stacks sum to %d of %d active; %+v", d.Device, m.Name, sum,
						m.Totals.Active, f)
				}
			}
		}
	}
}

// TestOddNumbers checks that what JSON cannot say does not keep the report from being written.
func TestOddNumbers(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		r := analyzetest.Failed(t)
		r.Snapshot.Settings.GCThreshold = v
		r.Snapshot.Name = "\xff\x00"
		if !stdjson.Valid(reportOf(t, r)) {
			t.Errorf("threshold %v: invalid JSON", v)
		}
	}
}

// TestHarmless has what drives a terminal in names: JSON says it without being it.
func TestHarmless(t *testing.T) {
	r := analyzetest.Empty(t)
	const name = "a\u009b31m\u007f\u202e\u2066\u200f\u061c – é\u202f\u00a0☃.pickle"
	r.Snapshot.Name = name
	data := reportOf(t, r)
	for _, c := range string(data) {
		if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
			t.Errorf("%U", c)
		}
	}
	var back struct{ Source struct{ Name string } }
	if err := stdjson.Unmarshal(data, &back); err != nil || back.Source.Name != name {
		t.Errorf("%q, %v", back.Source.Name, err)
	}
	if !bytes.Contains(data, []byte("– é\u202f\u00a0☃")) {
		t.Error("more is escaped than has to be")
	}
}
