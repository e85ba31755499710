package address_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/address"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

const mib = 1 << 20

func TestParse(t *testing.T) {
	const a = 0x7f064c000000
	for text, want := range map[string][]uint64{
		"0x7f064c000000": {a}, "0X7F064C000000": {a}, " 7f064c000000 ": {a}, "139665088806912": {139665088806912,
			0x139665088806912},
		"b7f064c000000": {0xb7f064c000000, a}, "b7f064c000000_2": {a}, "s7f064c000000_0": {a}, "s7f064c000000": {a},
		"b0x7f064c000000_1": {a}, "0xffffffffffffffff": {1<<64 - 1}, "10": {10, 0x10},
	} {
		q, err := address.Parse(text)
		if err != nil || !slices.Equal(q.Addresses, want) {
			t.Errorf("%q is %x, %v; want %x", text, q.Addresses, err, want)
		}
		if n := map[string]int32{"b7f064c000000_2": 2, "b0x7f064c000000_1": 1}[text]; n > 0 && q.Generation != n ||
			n == 0 && q.Generation != -1 {
			t.Errorf("%q has the generation %d", text, q.Generation)
		}
	}
	for _, text := range []string{"", "0x", "xyz", "b_", "b_1", "c7f_1", "b7f_", "b7f_x", "b7f_-1", "-5", "+5", "0x+5",
		"0x10000000000000000", "model.py"} {
		if q, err := address.Parse(text); err == nil || !strings.Contains(err.Error(), "expected 0x7f") {
			t.Errorf("%q is %x, %v", text, q.Addresses, err)
		}
	}
}

func read(t *testing.T, opt build.Options, program func(d *build.Device)) (*snapshot.Snapshot, *timeline.Timeline) {
	t.Helper()
	s := buildtest.Read(t, build.Run(opt, program))
	return s, timeline.Build(s, 0)
}

func ask(s *snapshot.Snapshot, tl *timeline.Timeline, event int, addr uint64) *address.Answer {
	return address.Ask(s, tl, attribution.Moment{Event: event, Name: "then"}, addr, -1, 0, nil)
}

// TestAsk tells the states of an address apart.
func TestAsk(t *testing.T) {
	s, tl := read(t, build.Options{}, func(d *build.Device) {
		d.Stack = build.NewStack("/app/a.py:1:first")
		a := d.Alloc(3*mib - 100) // events 0, 1
		d.Stack = build.NewStack("/app/b.py:2:second")
		d.Alloc(4 * mib)
		d.Stack = build.NewStack("/app/c.py:3:drop")
		d.Free(a) // events 3, 4
		d.Stack = build.NewStack("/app/d.py:4:third")
		d.Alloc(3 * mib / 2) // more than 1 MiB is left of the hole
		d.Alloc(40 * mib)
	})
	base := tl.Lives[0].Addr
	last := tl.Trace.Len() - 1
	for _, c := range []struct {
		addr   uint64
		event  int
		status address.Status
		beyond bool
		owners string // when and name
		says   []string
	}{
		{base + 5, 2, address.Allocated, false, "now b0_0 after b0_1", []string{"is in use: byte 5 of", "a.py:1 first",
			"A write past its end hits b300000_0"}},
		{base + 3*mib - 1, 2, address.Allocated, true, "now b0_0", []string{
			"lies 99 B behind the end of what a.py:1 first asked for", "3 145 628 bytes and takes 3 145 728"}},
		{base, 4, address.Free, false, "before b0_0 after b0_1", []string{"is free: b0_0 had it last", "a.py:1 first",
			"by c.py:3 drop", "use after free", "Later, b0_1 gets it", "d.py:4 third"}},
		{base, last, address.Allocated, false, "before b0_0 now b0_1", []string{
			"Before, b0_0 had it, until it was freed", "d.py:4 third"}},
		{base + 2*mib, last, address.Free, false, "before b0_0", []string{"b0_0 had it last",
			"512 KiB behind the end of b0_1"}},
		{base + 15*mib, last, address.Free, false, "", []string{"no block had it so far"}},
		{base + 100*mib, last, address.Unreserved, false, "", []string{"no segment of the file ever had it"}},
		{base, -1, address.Unreserved, false, "after b0_0 after b0_1", []string{"yet: its segment", "comes at event 0"}},
		{16, last, address.Unreserved, false, "", []string{"It belongs to something else"}},
	} {
		a := ask(s, tl, c.event, c.addr)
		var owners []string
		short := strings.NewReplacer(fmt.Sprintf("b%x", base), "b0", fmt.Sprintf("b%x", base+3*mib), "b300000").Replace
		for _, o := range a.Owners {
			owners = append(owners, o.When+" "+short(o.Name.String()))
		}
		name := fmt.Sprintf("%#x after event %d", c.addr-base, c.event)
		if a.Status != c.status || a.Beyond != c.beyond || strings.Join(owners, " ") != c.owners ||
			a.OwnersN != len(owners) {
			t.Errorf("%s: %s, beyond %v, %q", name, a.Status, a.Beyond, owners)
		}
		text := strings.ReplaceAll(short(a.Headline+" "+strings.Join(a.Reasons, " ")), "\u202f", " ")
		for _, says := range c.says {
			if !strings.Contains(text, says) {
				t.Errorf("%s lacks %q: %s", name, says, text)
			}
		}
	}
	a := ask(s, tl, last, base)
	if o := &a.Owners[0]; len(o.FreeFrames) != 1 || *o.FreeRequested != 3 || *o.Freed != 4 || a.Owners[1].Freed != nil {
		t.Errorf("the first owner is %+v", a.Owners[0])
	}
	near := address.Ask(s, tl, attribution.Moment{Event: last}, base, 0, 1, nil)
	if len(near.Owners) != 2 || near.OwnersN != 2 || !near.Owners[0].Asked {
		t.Errorf("the one that was asked for is not among %+v", near.Owners)
	}
}

// TestAskAny holds answers on random addresses against a search of everything.
func TestAskAny(t *testing.T) {
	for _, file := range []string{"2.15/annotate", "2.15/streams_late", "2.15/expandable", "2.13/pool", "2.4/late_start",
		"2.11/ring_wrapped", "2.15/state"} {
		s, err := load.Open(t.Context(), "../../fixtures/lab/traces/"+file+".pickle.xz", load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tl := timeline.Build(s, 0)
		random := rand.New(rand.NewPCG(1, 2))
		for range 400 {
			event := random.IntN(tl.Trace.Len()+1) - 1
			addr := tl.Lives[random.IntN(len(tl.Lives))].Addr + uint64(random.Int64N(50*mib))
			if random.IntN(2) == 0 {
				l := &tl.Lives[random.IntN(len(tl.Lives))]
				addr = l.Addr + uint64(random.Int64N(l.Rounded))
			}
			a, st := ask(s, tl, event, addr), tl.StateAt(event)
			want := address.Unreserved
			for i := range st.Segments {
				seg := &st.Segments[i]
				if addr < seg.Addr || addr >= seg.End() {
					continue
				}
				want = address.Free
				for _, row := range seg.Live {
					switch l := &tl.Lives[row]; {
					case addr < l.Addr || addr >= l.End():
					case l.Waits(event):
						want = address.Pending
					default:
						want = address.Allocated
					}
				}
			}
			owners := 0
			for i := range tl.Lives {
				if l := &tl.Lives[i]; addr >= l.Addr && addr < l.End() {
					owners++
				}
			}
			if a.Status != want || a.OwnersN != owners || (a.Segment != nil) != (want != address.Unreserved) ||
				a.Headline == "" {
				t.Fatalf("%s: %#x after event %d is %s with %d owners, want %s with %d", file, addr, event, a.Status,
					a.OwnersN, want, owners)
			}
			if a.Above != nil && (a.Above.Distance <= 0 || a.Above.Name.Addr != addr+uint64(a.Above.Distance)) {
				t.Fatalf("%s: %#x after event %d has %+v above", file, addr, event, a.Above)
			}
			if b := a.Below; b != nil && (b.Distance < 0 || b.Name.Addr+uint64(b.Rounded+b.Distance) != addr) {
				t.Fatalf("%s: %#x after event %d has %+v below", file, addr, event, a.Below)
			}
		}
	}
}

// TestDevice finds the device and the meaning of digits that a file knows.
func TestDevice(t *testing.T) {
	s, err := load.Open(t.Context(), "../../fixtures/lab/traces/2.15/two_devices.pickle.xz", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := []*timeline.Timeline{timeline.Build(s, 0), timeline.Build(s, 1)}
	l := &all[1].Lives[3]
	for _, text := range []string{fmt.Sprintf("%x", l.Addr), fmt.Sprintf("%#x", l.Addr), fmt.Sprint(l.Addr),
		fmt.Sprintf("b%x_0", l.Addr), fmt.Sprintf("b%x", l.Addr)} {
		q, err := address.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if tl, addr := address.Device(all, q); tl.Device != 1 || addr != l.Addr {
			t.Errorf("%s is %#x of GPU %d", text, addr, tl.Device)
		}
	}
}
