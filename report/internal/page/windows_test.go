package page

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/snapshot/load"
)

// window reads a window back.
func window(t *testing.T, v *Windows, u *unpacked, device, first, last, at int) (*Window, *unpacked) {
	t.Helper()
	data, err := v.Pack(device, first, last, at)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint32(data)
	var h Window
	if err := json.Unmarshal(data[4:4+n], &h); err != nil {
		t.Fatal(err)
	}
	w := &unpacked{Data: u.Data, body: data[4+n:]}
	for _, k := range w.column(t, h.Kinds.Stack) {
		if int(k) >= u.Stacks.Node.Len {
			t.Fatalf("a stack in row %d of %d", k, u.Stacks.Node.Len)
		}
	}
	return &h, w
}

// The page and a window have, together, each life of the window once, so that the sums after
// any of its events are those of the timeline.
func TestWindowsAddUp(t *testing.T) {
	r := result(t, 1, build.RandomOptions{Events: 20_000, Stacks: 20, Depth: 5, Live: 500})
	whole, err := Pack(r, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	p, v, err := PackServed(r, len(whole.Text)*2/3) // half is about the least that anything fits in
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	u := unpack(t, p)
	d := &u.Devices[0]
	if d.LeftOut.Lives == 0 {
		t.Fatal("nothing is left out")
	}
	tl := r.Devices[0].Timeline
	page := u.lives(t, d)
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(first, last, at int) {
		t.Helper()
		h, w := window(t, v, u, 0, first, last, at)
		extra := w.lives(t, &Device{Kinds: h.Kinds, Lives: h.Lives, Stretches: d.Stretches})
		if !h.All || !h.AllAt {
			t.Fatalf("%d..%d and %d: all %v and %v", first, last, at, h.All, h.AllAt)
		}
		if !slices.IsSortedFunc(extra, func(a, b timeline.Life) int { return int(a.Born) - int(b.Born) }) {
			t.Fatal("the lives are not in order of birth")
		}
		for _, e := range []int{first, last, at, first + rng.IntN(last-first+1)} {
			sum, want := int64(0), int64(0)
			for _, list := range [][]timeline.Life{page, extra} {
				for i := range list {
					if list[i].LiveAfter(e) {
						sum += list[i].Rounded
					}
				}
			}
			if want = tl.StateAt(e).Totals.Active; sum != want {
				t.Fatalf("%d..%d: %d bytes after event %d, want %d", first, last, sum, e, want)
			}
		}
	}
	n := tl.Trace.Len()
	for length := 1; length <= n; length *= 3 {
		first := rng.IntN(n-length+1) - 1
		check(first, first+length-1, rng.IntN(n+1)-1)
	}
	check(-1, n-1, n-1)
	check(-1, -1, -1)
}

// Where all is in the page, windows are empty.
func TestWindowsOfWholePage(t *testing.T) {
	p, v, err := PackServed(result(t, 1, build.RandomOptions{Events: 500}), 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	if h, _ := window(t, v, unpack(t, p), 0, -1, v.Events(0)-1, 0); !h.All || !h.AllAt || h.Lives.Kind.Len > 0 {
		t.Errorf("%d lives, all %v and %v", h.Lives.Kind.Len, h.All, h.AllAt)
	}
}

var snapshotFile = flag.String("snapshot", "", "measure the windows of this snapshot")

// BenchmarkWindow packs windows of all sizes at random places, and reports the median and the
// slowest. Give it -snapshot FILE for a real one.
func BenchmarkWindow(b *testing.B) {
	if *snapshotFile == "" {
		b.Skip("no -snapshot")
	}
	s, err := load.Open(b.Context(), *snapshotFile, load.Options{})
	if err != nil {
		b.Fatal(err)
	}
	_, v, err := PackServed(analyzetest.Run(b, s, analyze.Options{NoReplay: true}), 64<<20)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	n := v.Events(0)
	var took []time.Duration
	size := 0
	for b.Loop() {
		length := max(n>>rng.IntN(24), 1)
		first := rng.IntN(n-length+1) - 1
		at := rng.IntN(n)
		start := time.Now()
		data, err := v.Pack(0, first, first+length-1, at)
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
		size = max(size, len(data))
	}
	slices.Sort(took)
	b.ReportMetric(float64(n), "events")
	b.ReportMetric(float64(size), "B-largest")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-slowest")
}
