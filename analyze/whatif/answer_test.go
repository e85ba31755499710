package whatif_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

func ask(t *testing.T, made *build.Snapshot, q whatif.Question) *whatif.Answer {
	t.Helper()
	s := buildtest.Read(t, made)
	p, v := loaded(t, s, timeline.Build(s, 0))
	a, err := whatif.Ask(t.Context(), s, p, v, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAsk asks about a run that failed: on its own device, on a larger one, and on one that is
// too small for what was there before the trace.
func TestAsk(t *testing.T) {
	made := build.Run(build.Options{Capacity: 400 * mib}, pieces)
	a := ask(t, made, whatif.Question{})
	if a.Capacity != (whatif.Capacity{Source: "failure", Reservable: 400 * mib, Least: true}) || a.Start.Mode != "empty" {
		t.Errorf("device %+v, start %+v", a.Capacity, a.Start)
	}
	if a.Accuracy.Requests != 6 || a.Accuracy.Share != 1 || !a.Accuracy.Trusted || a.Accuracy.FirstEvent != -1 {
		t.Errorf("accuracy %+v", a.Accuracy)
	}
	own := a.Rows[0]
	if !own.Recorded || own.Failures != 1 || own.New != 0 || own.Assumed != nil || own.First == nil ||
		!own.First.Recorded || own.First.Requested != 200*mib || own.Smallest != 520*mib {
		t.Errorf("recorded settings: %+v, first %+v", own, own.First)
	}
	if a.Best < 1 || a.Rows[a.Best].Served != 1 || a.Rows[a.Best].Assumed == nil || a.Rows[a.Best].Smallest != 320*mib ||
		len(a.Rows[a.Best].Curve) == 0 || len(own.Curve) == 0 {
		t.Errorf("best is %d: %+v", a.Best, a.Rows)
	}
	for i, r := range a.Rows {
		if r.Smallest == 0 || (len(r.Curve) > 0) != (i == 0 || i == a.Best) {
			t.Errorf("%q: smallest capacity %d, %d points", r.Text, r.Smallest, len(r.Curve))
		}
	}
	data, err := json.Marshal(a)
	if err != nil || strings.Contains(string(data), `"curve":null`) {
		t.Errorf("error %v, %s", err, data)
	}

	a = ask(t, made, whatif.Question{Capacity: 2048 * mib, Foreign: 1024 * mib, All: true})
	if a.Capacity != (whatif.Capacity{Source: "asked", Device: 2048 * mib, Foreign: 1024 * mib,
		Reservable: 1024 * mib, Least: true}) || a.Rows[0].Failures != 0 {
		t.Errorf("device %+v, recorded settings %+v", a.Capacity, a.Rows[0])
	}
	if last := a.Rows[len(a.Rows)-1]; a.Rows[0].Smallest != 520*mib || last.Smallest != 0 {
		t.Errorf("in the wider set %d and %d bytes are the smallest", a.Rows[0].Smallest, last.Smallest)
	}

	late := build.Run(build.Options{Late: true}, warm)
	anew := whatif.Anew
	for _, c := range []struct {
		q    whatif.Question
		mode string
	}{
		{whatif.Question{}, "keep"}, {whatif.Question{Start: &anew}, "anew"},
		{whatif.Question{Capacity: 150 * mib}, "anew"},
	} {
		if a := ask(t, late, c.q); a.Start.Mode != c.mode || a.Start.Blocks != 20 || a.Start.Reserved == 0 {
			t.Errorf("%+v: start %+v, want %s", c.q, a.Start, c.mode)
		}
	}

	// Nothing is recommended from a replay that does not agree.
	a = ask(t, build.Run(build.Options{Capacity: 400 * mib, Expandable: true}, func(d *build.Device) {
		d.Alloc(3 * mib)
		pieces(d)
	}), whatif.Question{})
	if !a.Accuracy.Trusted {
		t.Errorf("accuracy %+v", a.Accuracy)
	}
	s := buildtest.Read(t, made)
	s.Settings.ExpandableSegments = true
	p, v := loaded(t, s, timeline.Build(s, 0))
	b, err := whatif.Ask(t.Context(), s, p, v, whatif.Question{})
	if err != nil || b.Accuracy.Trusted || b.Best != -1 || b.Text != "" || b.Accuracy.What == "" ||
		b.Accuracy.Why == "" {
		t.Errorf("error %v, accuracy %+v, best %d", err, b.Accuracy, b.Best)
	}
	if _, err := whatif.Ask(t.Context(), s, p, v,
		whatif.Question{Settings: []whatif.Setting{{Reading: allocator.Reading{Conf: allocator.Conf{Async: true}}}}},
	); !errors.Is(err, whatif.ErrAsync) {
		t.Errorf("error %v", err)
	}
}

// TestFullDevice learns the size of a device from a request that was served only after memory
// was given back.
func TestFullDevice(t *testing.T) {
	program := func(d *build.Device) {
		d.Stack = build.NewStack("a.py:1:f")
		x := d.Alloc(100 * mib)
		d.Stack = build.NewStack("a.py:2:f")
		y := d.Alloc(60 * mib)
		d.Free(x)
		d.Stack = build.NewStack("a.py:3:f")
		d.Alloc(120 * mib)
		d.Free(y)
	}
	made := build.Run(build.Options{Capacity: 200 * mib}, program)
	s := buildtest.Read(t, made)
	tl := timeline.Build(s, 0)
	p, v := loaded(t, s, tl)
	exact(t, "full", v, 3)
	// 160 MiB and 120 more were too much, 180 were not.
	if len(tl.Retries) != 1 || p.Capacity != 278*mib || made.Truth[0].Retries != 1 {
		t.Fatalf("%d retries, capacity %d MiB", len(tl.Retries), p.Capacity/mib)
	}
	o := run(t, p, "", whatif.Options{Capacity: p.Capacity})
	if o.Retries != 1 || o.ReservedPeak != tl.PeakReserved.Bytes || o.ReservedEnd != tl.Final.Reserved {
		t.Errorf("%+v, want %+v", o, tl.PeakReserved)
	}
	if a := ask(t, made, whatif.Question{}); a.Capacity.Source != "retry" || a.Capacity.Reservable != 278*mib {
		t.Errorf("%+v", a.Capacity)
	}
	if got := p.Recorded.Release; got != 207 { // the schema is that of 2.5 to 2.7
		t.Errorf("release %v", got)
	}
}
