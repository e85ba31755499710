package page

import (
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// Addresses come back to the byte from the page's numbers, wherever in 64 bits they lie.
func TestStretches(t *testing.T) {
	addrs := []uint64{0x1001, 0x7f00_1234_5678, 0x7f01_ffff_ffff, 1<<63 + 0x3ff, 0xff00_0000_0020_0001, 1<<64 - 3}
	tl := &timeline.Timeline{}
	for _, a := range addrs {
		tl.Lives = append(tl.Lives, timeline.Life{Addr: a, Rounded: 512})
	}
	at := newStretches(tl)
	d := &Device{Stretches: at.list()}
	last := int64(-1)
	for _, a := range addrs {
		n := at.of(a)
		if n <= last || n >= 1<<53 || address(t, d, n) != a {
			t.Errorf("%#x is counted as %d, which is %#x", a, n, address(t, d, n))
		}
		last = n
	}
	if n := len(d.Stretches); n != 5 {
		t.Errorf("%d stretches: %+v", n, d.Stretches)
	}
}

// A device whose addresses have their highest bit set, as those of some have, is packed exactly.
func TestHighAddresses(t *testing.T) {
	s := buildtest.Read(t, build.Random(1, build.RandomOptions{Events: 500, Streams: 2}))
	const high = 0xff00_0000_0000_0000
	buildtest.Raise(s, high)
	r := analyzetest.Run(t, s, analyze.Options{NoReplay: true})
	if n, residual := r.Books(); n != 0 || residual != 0 {
		t.Fatalf("%d contradictions, off by %d B", n, residual)
	}
	p, err := Pack(r, 8<<20)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	u := unpack(t, p)
	d := &u.Devices[0]
	checkDevice(t, u, d, r.Snapshot, &r.Devices[0])
	for i, at := range u.column(t, d.Ranges.Addr) {
		if got := address(t, d, at); got < high || got%512 != 0 {
			t.Fatalf("range %d begins at %#x", i, got)
		}
	}
}
