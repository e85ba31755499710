package page

import (
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// A page has each request that failed, with what its pool asks the device for, and says that the rules explain it.
func TestFailures(t *testing.T) {
	const mib = 1 << 20
	for _, expandable := range []bool{false, true} {
		made := build.Run(build.Options{Capacity: 100 * mib, Expandable: expandable}, func(d *build.Device) {
			d.Alloc(50 * mib)
			d.Stream = 0x70
			d.Alloc(70 * mib) // fails
			d.Alloc(39 * mib)
			d.Alloc(12 * mib) // fails
		})
		r := analyzetest.Run(t, buildtest.Read(t, made), analyze.Options{NoReplay: true})
		p, err := Pack(r, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		d := p.Data.Devices[0]
		tl := r.Devices[0].Timeline
		if len(d.Failures) != 2 || len(tl.OOMs) != 2 {
			t.Fatalf("expandable %v: %d failures of %d", expandable, len(d.Failures), len(tl.OOMs))
		}
		for i, f := range d.Failures {
			o := tl.OOMs[i]
			want := Failure{Event: o.Event, Rounded: []int64{70 * mib, 12 * mib}[i], Stream: int(tl.Trace.At(o.Event).Stream),
				Free: o.DeviceFree, Segment: []int64{70 * mib, 12 * mib}[i], Granule: 20 * mib, Way: "refused"}
			if f != want || f.Stream == 0 {
				t.Errorf("expandable %v: %+v, want %+v", expandable, f, want)
			}
		}
		if d.Rules.Expandable != expandable || d.Rules.MaxSplit != -1 {
			t.Errorf("the rules are %+v", d.Rules)
		}
	}
}
