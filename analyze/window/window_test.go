package window_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/window"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// files are recordings of real programs, with small and large pools, streams, several devices and expandable segments.
func files(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"../../fixtures/*.pickle", "../../fixtures/ranks/*.xz", "../../fixtures/lab/traces/*.xz",
		os.Getenv("SNAPANA_WINDOWS")} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	return out
}

// block is what is known of a live block.
type block struct {
	addr            uint64
	size, requested int64
	stack           string
	waits           bool
}

func live(s *snapshot.Snapshot, t *timeline.Timeline, event int) []block {
	var out []block
	for _, row := range t.StateAt(event).Rows() {
		l := &t.Lives[row]
		b := block{l.Addr, l.Rounded, l.Requested, "", l.Waits(event)}
		for _, id := range s.Stacks.Get(l.Stack) {
			f := s.Frames.Get(id)
			b.stack += fmt.Sprint(s.Strings.Get(f.File), f.Line, s.Strings.Get(f.Name), ";")
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b block) int { return cmp.Compare(a.addr, b.addr) })
	return out
}

// TestEqualsTheWhole holds that a window has, at each of its events, the state that the whole trace gives, and the peak of
// the stretch.
func TestEqualsTheWhole(t *testing.T) {
	for _, path := range files(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			whole, err := load.Open(context.Background(), path, load.Options{})
			if err != nil {
				t.Skip(err)
			}
			full := map[int]*timeline.Timeline{}
			most := -1
			for _, d := range whole.UsedDevices() {
				full[d] = timeline.Build(whole, d)
				if most < 0 || full[d].Trace.Len() > full[most].Trace.Len() {
					most = d
				}
			}
			if most < 0 || full[most].Trace.Len() == 0 {
				t.Skip("no trace")
			}
			r := rand.New(rand.NewPCG(7, uint64(len(path))))
			n := full[most].Trace.Len()
			for range 4 {
				from := r.IntN(n)
				to := min(n-1, from+r.IntN(1+n/4))
				compare(t, path, full, whole, window.Span{From: strconv.Itoa(from), To: strconv.Itoa(to), Device: most})
			}
			compare(t, path, full, whole, window.Span{Device: most})
			compare(t, path, full, whole, window.Span{From: strconv.Itoa(n / 2), Device: most})
		})
	}
}

// sound reports whether a trace agrees with itself and shows all kinds of events that tell of memory.
func sound(t *timeline.Timeline) bool {
	return t.Checks.Inconsistent() == 0 && t.Checks.Residual == 0 && t.Recording.LeftOut() == 0
}

// bolder reports whether a figure is called exact that the whole trace does not call so.
func bolder(b, whole timeline.Bound) bool { return b == timeline.Exact && whole != timeline.Exact }

func compare(t *testing.T, path string, full map[int]*timeline.Timeline, whole *snapshot.Snapshot, span window.Span) {
	t.Helper()
	s, err := window.Open(context.Background(), path, load.Options{}, span)
	mine := full[span.Device]
	if none := (*window.Error)(nil); errors.As(err, &none) &&
		(mine.Trace.Len() < 3 || !sound(mine) || len(whole.Resized) > 0) {
		t.Skip(err)
	}
	if err != nil {
		t.Errorf("%s to %s: %v", span.From, span.To, err)
		return
	}
	for device, f := range full {
		w := s.WindowOf(device)
		if w == nil {
			t.Errorf("no window of GPU %d", device)
			continue
		}
		cut := timeline.Build(s, device)
		fail := func(format string, args ...any) {
			t.Errorf("GPU %d, %s to %s (%s): %s", device, span.From, span.To, timeline.WindowWords(w),
				fmt.Sprintf(format, args...))
		}
		if got, want := cut.Checks.Inconsistent(), f.Checks.Inconsistent(); got > 0 && want == 0 {
			fail("%d contradictions: %+v", got, cut.Checks)
		}
		if device == span.Device && span.From != "" {
			if from, _ := strconv.Atoi(span.From); w.First != from {
				fail("begins with event %d", w.First)
			}
		}
		peak := timeline.Totals{}
		last := w.First + w.Events - 1
		for e := w.First - 1; e <= last; e += max(1, w.Events/40) {
			want, got := f.StateAt(e), cut.StateAt(e-w.First)
			if got.Totals != want.Totals {
				fail("after event %d of the file: %+v, want %+v", e, got.Totals, want.Totals)
				return
			}
			peak.Raise(&got.Totals)
		}
		for _, e := range []int{w.First - 1, last} {
			got, want := live(s, cut, e-w.First), live(whole, f, e)
			if !slices.Equal(got, want) {
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						fail("after event %d of the file, block %d: %+v, want %+v", e, i, got[i], want[i])
						break
					}
				}
				return
			}
		}
		if w.Events == 0 {
			continue
		}
		active := f.ActiveLevels()
		want, _ := active.Highest(w.First-1, last)
		if got := cut.PeakActive.Bytes; got != want {
			fail("peak of active bytes %d, want %d", got, want)
		}
		if b, of := &cut.Recording.Peak, &f.Recording.Peak; bolder(b.Reserved, of.Reserved) || bolder(b.Active, of.Active) ||
			bolder(b.Allocated, of.Allocated) || cut.Recording.Inferred != f.Recording.Inferred {
			fail("claims more than the whole: %+v, %+v", cut.Recording, f.Recording)
		}
	}
}

// TestPacked holds that a file with more values than the decoder keeps at hand gives the same window, and that what its
// frees refer to far back is found.
func TestPacked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.pickle")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s := build.Random(1, build.RandomOptions{Events: 400_000, Stacks: 300, Live: 500})
	if err := s.Write(f, pickler.Options{Protocol: 4}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := load.Open(context.Background(), path, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	full := map[int]*timeline.Timeline{0: timeline.Build(whole, 0)}
	compare(t, path, full, whole, window.Span{From: "390000", To: "391000", Device: 0})
}
