package attribution_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

func TestTurnover(t *testing.T) {
	for _, times := range []bool{true, false} {
		made := build.Run(build.Options{NoTimes: !times}, func(d *build.Device) {
			short, long := build.NewStack("/app/a.py:1:short"), build.NewStack("/app/a.py:2:long")
			d.Stack = long
			kept := d.Alloc(4 * mib)
			d.Stack = short
			for range 40 {
				d.Free(d.Alloc(2 * mib))
			}
			d.Free(kept)
		})
		s := buildtest.Read(t, made)
		r := attribution.MeasureTurnover(s, timeline.Build(s, 0))
		if r.Allocs != 41 || r.Short != 40 || r.Bytes != 80*mib || len(r.Sites) != 2 {
			t.Fatalf("%+v", r)
		}
		if a, b := r.Sites[0], r.Sites[1]; a.Short != 40 || a.Bytes != 80*mib || b.Short != 0 || b.Allocs != 1 ||
			b.Held <= a.Held {
			t.Errorf("sites %+v", r.Sites)
		}
		if rate, known := r.Rate(); known != times || known && rate <= 0 {
			t.Errorf("rate %v, known %v", rate, known)
		}
		if !times && r.Sites[1].Held != 4*mib*122 { // from event 1 to the last of 124
			t.Errorf("held %v", r.Sites[1].Held)
		}
	}
}
