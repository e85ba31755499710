package bands_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/report/internal/bands"
)

// each runs f on the devices of random programs.
func each(t *testing.T, f func(t *testing.T, tl *timeline.Timeline, rng *rand.Rand)) {
	seeds := uint64(3)
	if os.Getenv("SNAPANA_FULL") != "" {
		seeds = 8
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

// At every zoom level each column shows the highest moment of its events, and what is kept and
// the sums of the rest make up the active bytes of that moment.
func TestColumnsAddUp(t *testing.T) {
	each(t, func(t *testing.T, tl *timeline.Timeline, rng *rand.Rand) {
		x, slow, n := bands.New(tl), active(tl), tl.Trace.Len()
		keep := make([]bool, len(tl.Lives))
		for i := range keep {
			keep[i] = rng.IntN(2) == 0
		}
		for zoom := 1; zoom <= n; zoom *= 3 {
			from := rng.IntN(n - n/zoom + 1)
			to := max(from+n/zoom, from+1)
			edges := bands.Even(from, to, 1+rng.IntN(200))
			columns := x.Columns(edges)
			for i, c := range columns {
				for e := edges[i]; e < edges[i+1]; e++ {
					if slow[e] > c.Active {
						t.Fatalf("column %d shows %d bytes, event %d has %d", i, c.Active, e, slow[e])
					}
				}
				if c.Active != slow[c.Event] || c.Event < edges[i] || c.Event >= edges[i+1] {
					t.Fatalf("column %d of events %d to %d: %+v, event has %d", i, edges[i], edges[i+1], c,
						slow[c.Event])
				}
			}
			checkRest(t, tl, x, columns, keep, slow)
		}
	})
}

// checkRest checks that what is kept and what is summed make up all.
func checkRest(t *testing.T, tl *timeline.Timeline, x *bands.Index, columns []bands.Column, keep []bool, slow []int64) {
	t.Helper()
	rest := x.Rest(columns, keep, 3, func(row int32) int { return int(row) % 3 })
	for i, c := range columns {
		var sums [3]int64
		kept := int64(0)
		for row, k := range keep {
			switch l := &tl.Lives[row]; {
			case !l.LiveAfter(c.Event):
			case k:
				kept += l.Rounded
			default:
				sums[row%3] += l.Rounded
			}
		}
		if got := [3]int64{rest[0][i], rest[1][i], rest[2][i]}; got != sums ||
			kept+sums[0]+sums[1]+sums[2] != slow[c.Event] {
			t.Fatalf("column %d: rest %v, want %v; with %d kept, active is %d", i, got, sums, kept, slow[c.Event])
		}
	}
}

// Columns without events show what was before them.
func TestEmptyColumns(t *testing.T) {
	each(t, func(t *testing.T, tl *timeline.Timeline, _ *rand.Rand) {
		n := tl.Trace.Len()
		slow := active(tl)
		columns := bands.New(tl).Columns([]int{0, 0, n / 2, n / 2, n / 2, n, n})
		for i, want := range map[int]int64{0: tl.Initial.Active, 2: slow[max(n/2-1, 0)], 3: slow[max(n/2-1, 0)],
			5: slow[n-1]} {
			if n > 1 && columns[i].Active != want {
				t.Errorf("column %d has %d bytes, want %d", i, columns[i].Active, want)
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
			live := 0
			for i := range tl.Lives {
				if tl.Lives[i].LiveAfter(must[0]) {
					live++
				}
			}
			if missing && live <= want {
				t.Fatalf("%d live after event %d and room for %d, but not all were kept", live, must[0], want)
			}
			checkRest(t, tl, x, x.Columns(bands.Even(0, n, 50)), keep, slow)
		}
		if x.Choose(len(tl.Lives), nil) != nil {
			t.Error("something was left out though all fit")
		}
	})
}

func BenchmarkColumns(b *testing.B) {
	s := buildtest.Read(b, build.Random(1, build.RandomOptions{Events: 1_000_000, Live: 1000}))
	x := bands.New(timeline.Build(s, 0))
	for _, events := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			for b.Loop() {
				x.Columns(bands.Even(0, events, 1600))
			}
		})
	}
}
