package attribution_test

import (
	"flag"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

var snapshotFile = flag.String("snapshot", "", "`file` for benchmarks")

func open(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := load.Open(t.Context(), path, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSums holds that at any moment, grouped by anything and filtered by anything, every
// active byte is in one row.
func TestSums(t *testing.T) {
	files, _ := filepath.Glob("../../fixtures/*.pickle")
	if len(files) == 0 {
		t.Fatal("no fixtures")
	}
	for _, name := range []string{"metadata_text", "metadata_json", "annotate", "compile_eager", "graph"} {
		files = append(files, traces+"2.15/"+name+".pickle.xz")
	}
	patterns := []string{"corpus/*/snapshot.pickle", "real/torch-*.pickle", "real/random-*.pickle"}
	if testing.Short() {
		patterns = nil
	}
	for _, pattern := range patterns {
		more, _ := filepath.Glob("../../../shared/" + pattern)
		files = append(files, more...)
	}
	queries := []attribution.Query{
		{Match: regexp.MustCompile(`model\.py|optim`)},
		{By: attribution.ByModule, Exclude: regexp.MustCompile(`\.py:\d+ forward`), Internals: true},
	}
	for _, k := range append(attribution.Kinds(), "metadata.step", "annotation.role") {
		queries = append(queries, attribution.Query{By: k,
			Category: func(row int32) string { return []string{"a", "b", ""}[row%3] }})
	}
	for _, file := range files {
		s := open(t, file)
		for d := range s.NumDevices() {
			tl := timeline.Build(s, d)
			n := tl.Trace.Len()
			for _, e := range []int{-1, n / 3, tl.PeakActive.Event, n - 1} {
				st := tl.StateAt(e)
				for _, q := range queries {
					checkSums(t, s, tl, st, q, file)
				}
			}
		}
	}
}

func checkSums(t *testing.T, s *snapshot.Snapshot, tl *timeline.Timeline, st *timeline.State, q attribution.Query,
	file string) {
	t.Helper()
	h := attribution.Hold(s, tl, st, q)
	sum := h.LeftOut
	for i := range h.Rows {
		r := &h.Rows[i]
		sum.Add(r.Sum)
		if r.Name == "" || r.Count == 0 || i > 0 && r.Rounded > h.Rows[i-1].Rounded || r.Pinned > st.Totals.Reserved ||
			r.Pinned < r.Rounded && len(st.Outside) == 0 {
			t.Errorf("%s GPU %d event %d by %s: row %d is %+v", file, tl.Device, st.Event, h.By, i, r)
		}
	}
	if sum.Rounded != st.Totals.Active || sum.Requested != st.Totals.Requested {
		t.Errorf("%s GPU %d event %d by %s: rows hold %d of %d active bytes", file, tl.Device, st.Event, h.By,
			sum.Rounded,
			st.Totals.Active)
	}
	root, out := attribution.Tree(s, tl, st, q)
	if root.Sum != h.Kept() || out != h.LeftOut {
		t.Errorf("%s GPU %d event %d by %s: the tree holds %+v, the rows %+v", file, tl.Device, st.Event, h.By,
			root.Sum,
			h.Kept())
	}
	checkNode(t, &root, file)
}

func checkNode(t *testing.T, n *attribution.Node, file string) {
	t.Helper()
	if self := n.Self(); self.Count < 0 || self.Rounded < 0 || len(n.Children) == 0 && self != n.Sum {
		t.Errorf("%s: node %s has %+v of its own of %+v", file, n.Name, self, n.Sum)
	}
	for i := range n.Children {
		checkNode(t, &n.Children[i], file)
	}
}

// BenchmarkAsk is what one query costs once a file is read, at events all over the trace.
func BenchmarkAsk(b *testing.B) {
	path := *snapshotFile
	if path == "" {
		path = "../../fixtures/healthy.pickle"
	}
	s := open(b, path)
	tl := timeline.Build(s, 0)
	for _, k := range []attribution.Kind{attribution.ByStack, attribution.BySite, attribution.ByModule,
		attribution.ByPool} {
		for _, tree := range []bool{false, true} {
			name := string(k)
			if tree {
				name += "-tree"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					m := attribution.Moment{Event: i * 7919 % max(tl.Trace.Len(), 1)}
					attribution.Ask(s, tl, m, attribution.Query{By: k}, tree)
				}
			})
		}
	}
}
