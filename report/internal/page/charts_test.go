package page

import (
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/load"
)

// Where lives are left out, free memory is that of fragmentation.Measure at each of the moments,
// of which the last of the trace is one; where none is, there are no moments.
func TestFree(t *testing.T) {
	r := result(t, 1, build.RandomOptions{Events: 20_000, Stacks: 300, Depth: 30, Live: 500, Streams: 3})
	whole, err := Pack(r, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	if n := unpack(t, whole).Devices[0].Free.Event.Len; n != 0 {
		t.Errorf("%d moments in a page that has all", n)
	}
	p, err := Pack(r, len(whole.Text)/8)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	u, tl := unpack(t, p), r.Devices[0].Timeline
	d := &u.Devices[0]
	events := u.column(t, d.Free.Event)
	if n := len(events); n < 16 || events[n-1] != int64(tl.Trace.Len()-1) {
		t.Fatalf("measured at %v", events)
	}
	var got [5][]int64
	for k := range got {
		got[k] = u.column(t, d.Free.Bytes[k])
	}
	for i, e := range events {
		c := fragmentation.Measure(tl, tl.StateAt(int(e))).Classes
		if is := (fragmentation.Classes{Releasable: got[0][i], Hard: got[1][i], Soft: got[2][i], Stream: got[3][i],
			Pending: got[4][i]}); is != c {
			t.Errorf("after event %d: %+v, want %+v", e, is, c)
		}
		if totals := tl.StateAt(int(e)).Totals; c.Sum() != totals.Reserved-totals.Allocated {
			t.Errorf("after event %d the classes sum to %d, want %+v", e, c.Sum(), totals)
		}
	}
}

// The curves are those of the replays, row by row, with their failures.
func TestWhatIf(t *testing.T) {
	s, err := load.Open(t.Context(), "../../../fixtures/fragmentation.pickle", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := analyzetest.Run(t, s, analyze.Options{})
	p, err := Pack(r, 8<<20)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	u, a := unpack(t, p), r.Devices[0].WhatIf
	w := &u.Devices[0].WhatIf
	if len(w.Replay) != len(a.Rows) || w.Best != a.Best || w.Limit != a.Capacity.Reservable {
		t.Fatalf("%d replays, best %d, limit %d", len(w.Replay), w.Best, w.Limit)
	}
	last, failures := u.column(t, w.Last), 0
	for i := range a.Rows {
		row, got := &a.Rows[i], &w.Replay[i]
		if got.Name != chart.Setting(row) || got.Peak != row.ReservedPeak || got.Failures != row.Failures ||
			got.About != (row.Assumed != nil) {
			t.Errorf("%+v, want %+v", got, row)
		}
		if failures += got.Failures; row.First == nil {
			if got.Failed != -1 {
				t.Errorf("%s fails at event %d", got.Name, got.Failed)
			}
		} else if got.Failed != row.First.Event || got.Asked != row.First.Requested {
			t.Errorf("%s: %+v, want %+v", got.Name, got, row.First)
		}
		var most int64
		for k, v := range u.column(t, got.Reserved) {
			if c := row.Outcome.Curve[k]; v != c.Reserved || last[k] != int64(c.Last) {
				t.Fatalf("%s: %d up to event %d, want %+v", got.Name, v, last[k], c)
			}
			most = max(most, v)
		}
		if most != row.ReservedPeak {
			t.Errorf("%s: the highest of the curve is %d, want %d", got.Name, most, row.ReservedPeak)
		}
	}
	if failures == 0 {
		t.Error("no setting fails")
	}
	a.Accuracy.Trusted = false
	if p, err = Pack(r, 8<<20); err != nil || len(unpack(t, p).Devices[0].WhatIf.Replay) > 0 {
		t.Errorf("replays that are not to be trusted are in the page, %v", err)
	}
}
