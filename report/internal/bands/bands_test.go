package bands_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/report/internal/bands"
)

// each runs f on the devices of random programs.
func each(t *testing.T, f func(t *testing.T, tl *timeline.Timeline, rng *rand.Rand)) {
	seeds := uint64(8)
	if testing.Short() {
		seeds = 2
	}
	for _, shape := range build.Shapes() {
		t.Run(shape.Name, func(t *testing.T) {
			for seed := range seeds {
				s := buildtest.Read(t, build.Random(seed, shape.Options))
				for _, d := range s.UsedDevices() {
					if tl := timeline.Build(s, d); tl.Trace.Len() > 0 {
						f(t, tl, rand.New(rand.NewPCG(seed, uint64(d))))
					}
				}
			}
		})
	}
}

// active is the active bytes after every event, counted the plain way.
func active(tl *timeline.Timeline) []int64 {
	out := make([]int64, tl.Trace.Len())
	for i := range tl.Lives {
		l := &tl.Lives[i]
		out[max(l.Born, 0)] += l.Rounded
		if l.Freed >= 0 {
			out[l.Freed] -= l.Rounded
		}
	}
	for e := range out[1:] {
		out[e+1] += out[e]
	}
	return out
}

// At every zoom level each column shows the highest moment of its events, and its bands and what
// is merged make up the active bytes of that moment.
func TestColumnsAddUp(t *testing.T) {
	each(t, func(t *testing.T, tl *timeline.Timeline, rng *rand.Rand) {
		x, slow, n := bands.New(tl), active(tl), tl.Trace.Len()
		for zoom := 1; zoom <= n; zoom *= 3 {
			from := rng.IntN(n - n/zoom + 1)
			to := max(from+n/zoom, from+1)
			q := bands.Query{
				Edges: bands.Even(from, to, 1+rng.IntN(200)), MinBytes: int64(rng.IntN(3)) << (9 + rng.IntN(12)), Bands: rng.IntN(3) * 10,
				Groups: 3, Group: func(row int32) int { return int(row) % 3 },
			}
			checkWindow(t, tl, slow, q, x.Window(q))
		}
	})
}

func checkWindow(t *testing.T, tl *timeline.Timeline, slow []int64, q bands.Query, w *bands.Window) {
	t.Helper()
	if q.Bands > 0 && len(w.Bands) > q.Bands {
		t.Errorf("%d bands, want %d at most", len(w.Bands), q.Bands)
	}
	for i, c := range w.Columns {
		for e := q.Edges[i]; e < q.Edges[i+1]; e++ {
			if slow[e] > c.Active {
				t.Fatalf("column %d shows %d bytes, event %d has %d", i, c.Active, e, slow[e])
			}
		}
		if c.Active != slow[c.Event] || c.Event < q.Edges[i] || c.Event >= q.Edges[i+1] {
			t.Fatalf("column %d of events %d to %d: %+v, event has %d", i, q.Edges[i], q.Edges[i+1], c, slow[c.Event])
		}
		sum := int64(0)
		for g := range w.Merged {
			sum += w.Merged[g][i]
		}
		for _, b := range w.Bands {
			l := &tl.Lives[b.Row]
			if shown := int(b.First) <= i && i <= int(b.Last); shown != l.LiveAfter(c.Event) {
				t.Fatalf("column %d: row %d shown is %v, live %v", i, b.Row, shown, !shown)
			} else if shown {
				sum += l.Rounded
			}
			if l.Rounded < q.MinBytes {
				t.Fatalf("row %d of %d bytes has a band, want %d at least", b.Row, l.Rounded, q.MinBytes)
			}
		}
		if sum != c.Active {
			t.Fatalf("column %d: bands and merged are %d bytes, active %d", i, sum, c.Active)
		}
	}
}

// Columns without events show what was before them.
func TestEmptyColumns(t *testing.T) {
	each(t, func(t *testing.T, tl *timeline.Timeline, _ *rand.Rand) {
		n := tl.Trace.Len()
		slow := active(tl)
		w := bands.New(tl).Window(bands.Query{Edges: []int{0, 0, n / 2, n / 2, n / 2, n, n}})
		for i, want := range map[int]int64{0: tl.Initial.Active, 2: slow[max(n/2-1, 0)], 3: slow[max(n/2-1, 0)], 5: slow[n-1]} {
			if n > 1 && w.Columns[i].Active != want {
				t.Errorf("column %d has %d bytes, want %d", i, w.Columns[i].Active, want)
			}
		}
	})
}

// What is kept and what is summed make up all, however little is kept.
func TestChooseAndRest(t *testing.T) {
	each(t, func(t *testing.T, tl *timeline.Timeline, rng *rand.Rand) {
		x, slow, n := bands.New(tl), active(tl), tl.Trace.Len()
		for _, want := range []int{0, 1, len(tl.Lives) / 3, len(tl.Lives) - 1} {
			if want < 0 || want >= len(tl.Lives) {
				continue
			}
			must := []int{rng.IntN(n)}
			keep := x.Choose(want, must)
			kept, missing := 0, false
			for i, k := range keep {
				if k {
					kept++
				} else if tl.Lives[i].LiveAfter(must[0]) {
					missing = true
				}
			}
			if kept != want {
				t.Fatalf("kept %d lives, want %d", kept, want)
			}
			if live := len(x.Window(bands.Query{Edges: []int{must[0], must[0] + 1}}).Bands); missing && live <= want {
				t.Fatalf("%d live after event %d and room for %d, but not all were kept", live, must[0], want)
			}
			w := x.Rest(bands.Even(0, n, 50), keep, 2, func(row int32) int { return int(row) % 2 })
			for i, c := range w.Columns {
				sum := w.Merged[0][i] + w.Merged[1][i]
				for row, k := range keep {
					if k && tl.Lives[row].LiveAfter(c.Event) {
						sum += tl.Lives[row].Rounded
					}
				}
				if sum != slow[c.Event] {
					t.Fatalf("column %d: kept and rest are %d bytes, active %d", i, sum, slow[c.Event])
				}
			}
		}
		if x.Choose(len(tl.Lives), nil) != nil {
			t.Error("something was left out though all fit")
		}
	})
}

func BenchmarkWindow(b *testing.B) {
	s := buildtest.Read(b, build.Random(1, build.RandomOptions{Events: 1_000_000, Live: 1000}))
	x := bands.New(timeline.Build(s, 0))
	for _, events := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			for b.Loop() {
				x.Window(bands.Query{Edges: bands.Even(0, events, 1600), MinBytes: 1 << 10, Bands: 20_000})
			}
		})
	}
}
