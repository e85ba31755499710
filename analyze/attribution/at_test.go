package attribution_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
)

// program has the events 0 to 7: a segment and a block at first, the same after 1 ms, and two
// frees of two events each after 5 ms.
func program(d *build.Device) {
	a := d.Alloc(mib)
	d.Wait(1000)
	b := d.Alloc(2 * mib)
	d.Wait(2000)
	d.Wait(2000)
	d.Free(a)
	d.Free(b)
}

// stepped is program in steps of four, two and two events.
func stepped(d *build.Device) {
	var a, b *build.Block
	d.Annotate("ProfilerStep#7", func() {
		a = d.Alloc(mib)
		d.Wait(1000)
		b = d.Alloc(2 * mib)
	})
	d.Wait(4000)
	d.Annotate("ProfilerStep#8", func() { d.Free(a) })
	d.Annotate("ProfilerStep#9", func() { d.Free(b) })
}

func TestLocate(t *testing.T) {
	s, tl := read(t, stepped)
	times := make([]int64, tl.Trace.Len())
	for i := range times {
		times[i] = tl.Trace.Time(i) - tl.Trace.Time(0)
	}
	last := tl.Trace.Len() - 1
	for at, want := range map[string]int{
		"start": -1, "end": last, "peak": tl.PeakActive.Event,
		"0": 0, "3": 3, "#3": 3, "0003": 3,
		"+0s": at(times, 0), "+1ms": at(times, 1000), "1ms": at(times, 1000), "1500us": at(times, 1500),
		"+1.5ms":           at(times, 1500),
		"1750000000000400": at(times, 400+1_750_000_000_000_000-tl.Trace.Time(0)),
		"step:0":           3, "step:2": 7, "step:ProfilerStep#8": 5,
	} {
		m, err := attribution.Locate(s, tl, at)
		if err != nil || m.Event != want || m.Name == "" {
			t.Errorf("%s: %+v, %v; want event %d", at, m, err, want)
		}
	}
	for at, says := range map[string]string{
		"": "expected peak", "soon": "0 to 7", "-1": "expected peak", "8": "events 0 to 7",
		"#99999999999999999999": "events 0 to 7",
		"+1.5":                  "expected peak", "-3ms": "expected peak", "1h": "+0s to +",
		"1750000000000000000": "1750000000",
		"oom":                 "no out-of-memory event", "step:3": "steps 0 to 2", "step:": "steps 0 to 2",
		"step:-1":              "steps 0 to 2",
		"step:ProfilerStep#10": "ProfilerStep#7 to",
	} {
		if m, err := attribution.Locate(s, tl, at); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %+v, %v; want %q", at, m, err, says)
		}
	}
	plain, without := read(t, program)
	if _, err := attribution.Locate(plain, without, "step:0"); err == nil ||
		!strings.Contains(err.Error(), "no steps were found") {
		t.Errorf("without steps: %v", err)
	}
	for series, p := range map[string]timeline.Peak{"active": tl.PeakActive, "reserved": tl.PeakReserved,
		"allocated": tl.PeakAllocated, "requested": tl.PeakRequested} {
		m, err := attribution.Peak(tl, series)
		if err != nil || m.Event != p.Event {
			t.Errorf("peak of %s: %+v, %v", series, m, err)
		}
		if a := attribution.Ask(s, tl, m, attribution.Query{}, false); series == "active" &&
			a.State.Totals.Active != p.Bytes {
			t.Errorf("%d bytes at the peak of %d", a.State.Totals.Active, p.Bytes)
		}
	}
	if _, err := attribution.Peak(tl, "free"); err == nil || !strings.Contains(err.Error(), "requested") {
		t.Errorf("peak of free: %v", err)
	}
}

// at is the last event up to a time, found in the simplest way.
func at(times []int64, us int64) int {
	last := -1
	for i, v := range times {
		if v <= us {
			last = i
		}
	}
	return last
}

func TestLocateWithout(t *testing.T) {
	for name, c := range map[string]struct {
		opt     build.Options
		refused map[string]string
		taken   string
	}{
		"a trace": {build.Options{NoTrace: true},
			map[string]string{"peak": "no trace", "3": "no trace", "oom": "no trace", "step:1": "no trace",
				"+1s": "no trace"},
			"end"},
		"times": {build.Options{NoTimes: true}, map[string]string{"+1ms": "no times"}, "5"},
	} {
		s := readWith(t, c.opt, program)
		tl := timeline.Build(s, 0)
		for word, says := range c.refused {
			if m, err := attribution.Locate(s, tl, word); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("without %s, %s: %+v, %v", name, word, m, err)
			}
		}
		if _, err := attribution.Locate(s, tl, c.taken); err != nil {
			t.Errorf("without %s, %s: %v", name, c.taken, err)
		}
	}
	tl := timeline.Build(readWith(t, build.Options{NoTrace: true}, program), 0)
	var none *attribution.NoTraceError
	if m, err := attribution.Peak(tl, "reserved"); !errors.As(err, &none) || none.Device != 0 {
		t.Errorf("a peak without a trace: %+v, %v", m, err)
	}
}

func TestLocateOOM(t *testing.T) {
	_, tl := read(t, func(d *build.Device) {})
	if tl.Trace.Len() != 0 {
		t.Fatal("the empty program has events")
	}
	s := readWith(t, build.Options{Capacity: 64 * mib}, func(d *build.Device) {
		d.Alloc(40 * mib)
		d.Alloc(50 * mib)
		d.Alloc(10 * mib)
		d.Alloc(60 * mib)
	})
	tl = timeline.Build(s, 0)
	if len(tl.OOMs) != 2 {
		t.Fatalf("%d out-of-memory events", len(tl.OOMs))
	}
	m, err := attribution.Locate(s, tl, "oom")
	if err != nil || m.Event != tl.OOMs[1].Event || !strings.Contains(m.Name, "2") {
		t.Errorf("%+v, %v", m, err)
	}
	if a := attribution.Ask(s, tl, m, attribution.Query{}, true); a.State.Totals.Active != 50*mib ||
		a.Tree.Rounded != 50*mib {
		t.Errorf("%+v", a.State.Totals)
	}
}
