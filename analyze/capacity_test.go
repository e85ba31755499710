package analyze_test

import (
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestCapacity holds that the size of the device bounds the replays, and never so that the run as it was
// would fail: what others held of the device is not known.
func TestCapacity(t *testing.T) {
	const gib = 1 << 30
	program := func(d *build.Device) {
		for range 6 {
			d.Free(d.Alloc(gib))
		}
		d.Alloc(3 * gib)
	}
	for _, c := range []struct {
		name             string
		made             build.Options
		capacity, within int64
		source           string
	}{
		{"unknown", build.Options{}, 0, 0, "none"},
		{"ample", build.Options{}, 16 * gib, 16*gib - gib/2, "asked"},
		{"just the peak", build.Options{}, 4*gib + gib/4, 4 * gib, "asked"},
		{"less than the peak", build.Options{}, gib, 0, "none"},
		{"a failure tells more", build.Options{Capacity: 2 * gib}, 16 * gib, 2 * gib, "failure"},
	} {
		s := buildtest.Read(t, build.Run(c.made, program))
		w := analyzetest.Run(t, s, analyze.Options{Capacity: c.capacity}).Devices[0].WhatIf
		if got := w.Capacity; got.Source != c.source || got.Reservable != c.within {
			t.Errorf("%s: replayed on %+v, want %s of %d", c.name, got, c.source, c.within)
		}
		if n := w.Rows[0].New; n > 0 {
			t.Errorf("%s: %d requests that the run served fail in its own replay", c.name, n)
		}
	}
}
