package device_test

import (
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// A device keeps its history when another cannot be read for a while.
func TestHistory(t *testing.T) {
	h := device.History{}
	reading := func(used ...int64) *sidecar.Reading {
		r := &sidecar.Reading{}
		for i, u := range used {
			g := sidecar.GPU{Index: new(int64(i))}
			if u >= 0 {
				g.Used = &u
			}
			r.Devices = append(r.Devices, g)
		}
		return r
	}
	h.Add(reading(1, 10))
	if got := h.Add(reading(-1, 11)); got[0] != nil || !slices.Equal(got[1], []int64{10, 11}) {
		t.Errorf("%v", got)
	}
	if got := h.Add(reading(2, 12)); !slices.Equal(got[0], []int64{1, 2}) ||
		!slices.Equal(got[1], []int64{10, 11, 12}) {
		t.Errorf("%v", got)
	}
}
