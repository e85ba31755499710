package fragmentation_test

import (
	"bytes"
	"reflect"
	"testing"

	"snapana/analyze/fragmentation"
	"snapana/analyze/timeline"
	"snapana/fixtures/build"
	"snapana/fixtures/pickler"
	"snapana/snapshot"
)

const mib = 1 << 20

func TestMeasure(t *testing.T) {
	made := build.Run(build.Options{}, func(d *build.Device) {
		d.Free(d.Alloc(40 * mib))
		first := d.Alloc(5 * mib) // from the 40 MiB, as is the next
		d.Alloc(5 * mib)
		d.Free(first)
		d.Alloc(1000)             // in a small segment of 2 MiB
		d.Free(d.Alloc(60 * mib)) // a segment with nothing in it
	})
	var buf bytes.Buffer
	if err := made.Write(&buf, pickler.Options{Protocol: 4}); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Read(&buf, "made.pickle", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tl := timeline.Build(s, 0)
	got := fragmentation.Measure(tl, tl.StateAt(tl.Trace.Len()))
	pins := got.Pins
	got.Pins = nil
	want := fragmentation.Report{
		Reserved: 102 * mib, Active: 5*mib + 1024, Releasable: 60 * mib, Split: 35*mib + 2*mib - 1024,
		Rounding: 24, LargestFree: 60 * mib, Segments: 3, PartlyUsed: 2,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(pins) != 2 || pins[0].Free != 35*mib || pins[0].Live != 5*mib || len(pins[0].Lives) != 1 || pins[1].Free != 2*mib-1024 {
		t.Errorf("pins %+v", pins)
	}
}
