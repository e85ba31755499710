package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/snapshot/sidecar"
)

func TestScreen(t *testing.T) {
	if got := screen("a\nb\n", 24); got != "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J" {
		t.Errorf("%q", got)
	}
	got := screen(strings.Repeat("x\n", 100), 10)
	if strings.Count(got, "\n") != 9 || !strings.Contains(got, "taller") {
		t.Errorf("scrolls: %q", got)
	}
}

// A device keeps its history when another cannot be read for a while.
func TestRemember(t *testing.T) {
	var o readings
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
	o.remember(reading(1, 10))
	if got := o.remember(reading(-1, 11)); got[0] != nil || !slices.Equal(got[1], []int64{10, 11}) {
		t.Errorf("%v", got)
	}
	if got := o.remember(reading(2, 12)); !slices.Equal(got[0], []int64{1, 2}) || !slices.Equal(got[1], []int64{10, 11, 12}) {
		t.Errorf("%v", got)
	}
}
