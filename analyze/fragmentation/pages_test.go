package fragmentation_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// TestPages holds what is called releasable in expandable segments against what torch gave back next, in
// recordings of all releases: it unmaps in empty_cache and before a request fails, and then all that it can.
func TestPages(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/lab/traces/*/*expandable*.pickle.xz")
	if err != nil {
		t.Fatal(err)
	}
	bursts := 0
	for _, file := range files {
		if name := filepath.Base(file); strings.HasPrefix(name, "skip_") && !strings.HasPrefix(name, "skip_none") {
			continue // parts of these traces were not recorded
		}
		s, err := load.Open(t.Context(), file, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tl := timeline.Build(s, 0)
		for e := 0; e < tl.Trace.Len(); e++ {
			if tl.Trace.Action(e) != snapshot.SegmentUnmap {
				continue
			}
			first, st := e, tl.StateAt(e-1)
			var returned int64
			for ; e < tl.Trace.Len(); e++ {
				ev := tl.Trace.At(e)
				if ev.Action != snapshot.SegmentUnmap && ev.Action != snapshot.SegmentFree {
					break
				}
				if pool(st, ev.Addr) == (snapshot.PoolID{}) {
					returned += ev.Size
				}
			}
			bursts++
			if r := fragmentation.Measure(tl, st); r.Releasable != returned {
				t.Errorf("%s, event %d: %d releasable, %d returned", file, first, r.Releasable, returned)
			}
		}
	}
	if bursts < 100 {
		t.Errorf("%d calls only", bursts)
	}
}

// pool is that of the segment with an address.
func pool(st *timeline.State, addr uint64) snapshot.PoolID {
	for i := range st.Segments {
		if seg := &st.Segments[i]; seg.Addr <= addr && addr < seg.End() {
			return seg.Pool
		}
	}
	return snapshot.PoolID{}
}
