package page

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

// unpacked is what a script has after it read the data.
type unpacked struct {
	Data
	body []byte
}

func unpack(t *testing.T, p *Packed) *unpacked {
	t.Helper()
	u := &unpacked{}
	u.body = inflate(t, p.Text, &u.Data)
	return u
}

// inflate reads the header of what was packed, and gives the columns behind it.
func inflate(t *testing.T, text []byte, header any) []byte {
	t.Helper()
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint32(all)
	if err := json.Unmarshal(all[4:4+n], header); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(all[4:4+n]), ":null") {
		t.Errorf("the header has a null: %.400s", all[4:4+n])
	}
	return all[4+n:]
}

func (u *unpacked) column(t *testing.T, c Column) []int64 {
	t.Helper()
	out := make([]int64, c.Len)
	b := u.body[c.At:]
	prev := int64(0)
	for i := range out {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatalf("column at %d ends after %d of %d numbers", c.At, i, c.Len)
		}
		b = b[n:]
		out[i] = int64(v)
		if c.Mode != "u" {
			out[i] = int64(v>>1) ^ -int64(v&1)
		}
		if c.Mode == "d" {
			out[i] += prev
			prev = out[i]
		}
	}
	return out
}

// address is one that the page counts as at.
func address(t *testing.T, d *Device, at int64) uint64 {
	t.Helper()
	i := len(d.Stretches) - 1
	for i > 0 && d.Stretches[i].At > at {
		i--
	}
	first, err := strconv.ParseUint(d.Stretches[i].Addr, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return first + uint64(at-d.Stretches[i].At)
}

// lives reads the lives of a device back.
func (u *unpacked) lives(t *testing.T, d *Device) []timeline.Life {
	t.Helper()
	kinds, born := u.column(t, d.Lives.Kind), u.column(t, d.Lives.Born)
	life, gap, addr := u.column(t, d.Lives.Life), u.column(t, d.Lives.Gap), u.column(t, d.Lives.Addr)
	rounded, requested := u.column(t, d.Kinds.Rounded), u.column(t, d.Kinds.Requested)
	last := map[int64]int64{}
	out := make([]timeline.Life, len(kinds))
	for i, k := range kinds {
		l := timeline.Life{Rounded: rounded[k], Requested: requested[k], Born: int32(born[i]), Freed: -1,
			FreeRequested: -1}
		last[k] += addr[i]
		l.Addr = address(t, d, last[k])
		if life[i] > 0 {
			l.Freed = int32(born[i] + life[i] - 1)
		}
		switch {
		case gap[i] == 1:
			l.FreeRequested = timeline.PendingBefore
		case gap[i] == 0:
			l.FreeRequested = l.Freed
		case l.Freed < 0:
			l.FreeRequested = l.Born + int32(gap[i]) - 2
		default:
			l.FreeRequested = l.Freed - int32(gap[i]) + 2
		}
		out[i] = l
	}
	return out
}

func result(t *testing.T, seed uint64, opt build.RandomOptions) *analyze.Result {
	return analyzetest.Run(t, buildtest.Read(t, build.Random(seed, opt)), analyze.Options{NoReplay: true})
}

// What is packed is what the timeline has, event by event.
func TestRoundTrip(t *testing.T) {
	for _, shape := range build.Shapes() {
		t.Run(shape.Name, func(t *testing.T) {
			for seed := range uint64(3) {
				r := result(t, seed, shape.Options)
				p, err := Pack(r, 8<<20)
				if err != nil || p == nil {
					t.Fatal(p, err)
				}
				u := unpack(t, p)
				for i := range r.Devices {
					checkDevice(t, u, &u.Devices[i], r.Snapshot, &r.Devices[i])
				}
			}
		})
	}
}

func checkDevice(t *testing.T, u *unpacked, d *Device, s *snapshot.Snapshot, want *analyze.Device) {
	t.Helper()
	tl := want.Timeline
	got := u.lives(t, d)
	if len(got) != len(tl.Lives) || d.LeftOut.Lives != 0 || d.Rest.Event.Len != 0 {
		t.Fatalf("%d lives, want %d; left out %+v", len(got), len(tl.Lives), d.LeftOut)
	}
	nodes := paths(t, u)
	which, stack := u.column(t, d.Lives.Kind), u.column(t, d.Kinds.Stack)
	place, category := u.column(t, d.Kinds.Place), u.column(t, d.Kinds.Category)
	for i := range got {
		w := tl.Lives[i]
		if fmt.Sprint(nodes[stack[which[i]]]) != fmt.Sprint(len(s.Stacks.Get(w.Stack))) {
			t.Fatalf("life %d has a stack of %v frames, want %d", i, nodes[stack[which[i]]], len(s.Stacks.Get(w.Stack)))
		}
		if c, _ := want.Categories.Of(int32(i)); int64(c) != category[which[i]] {
			t.Fatalf("life %d is of category %d, want %d", i, category[which[i]], c)
		}
		if st := tl.StateAt(max(int(w.Born), -1)); len(st.Outside) == 0 {
			p := d.Places[place[which[i]]]
			for k := range st.Segments {
				if seg := &st.Segments[k]; w.Addr >= seg.Addr && w.Addr < seg.Addr+uint64(seg.Size) &&
					(p.Stream != int(seg.Stream) || p.Kind != seg.Kind.String()) {
					t.Fatalf("life %d is at %+v, want stream %d of %s", i, p, seg.Stream, seg.Kind)
				}
			}
		}
		w.Stack = 0
		if w.FreeRequested == -1 && w.Freed >= 0 {
			w.FreeRequested = w.Freed
		}
		if got[i] != w {
			t.Fatalf("life %d is %+v, want %+v", i, got[i], w)
		}
	}
	checkRanges(t, u, d, tl)
}

// paths gives the number of frames of each stack.
func paths(t *testing.T, u *unpacked) []int {
	parent, node := u.column(t, u.Nodes.Parent), u.column(t, u.Stacks.Node)
	out := make([]int, len(node))
	for i, n := range node {
		for ; n != 0; n = parent[n] {
			out[i]++
		}
	}
	return out
}

func checkRanges(t *testing.T, u *unpacked, d *Device, tl *timeline.Timeline) {
	t.Helper()
	size, born, life := u.column(t, d.Ranges.Size), u.column(t, d.Ranges.Born), u.column(t, d.Ranges.Life)
	for e := -1; e < tl.Trace.Len(); e += 1 + tl.Trace.Len()/50 {
		sum := int64(0)
		for i := range size {
			if born[i] <= int64(e) && (life[i] == 0 || born[i]+life[i]-1 > int64(e)) {
				sum += size[i]
			}
		}
		if want := tl.StateAt(e).Totals.Reserved; sum != want {
			t.Fatalf("ranges after event %d are %d bytes, reserved %d", e, sum, want)
		}
	}
}

// However small the page, it keeps within its size, says what is left out, and its totals are
// right at the moments that it has.
func TestBounded(t *testing.T) {
	r := result(t, 1, build.RandomOptions{Events: 20_000, Stacks: 300, Depth: 30, Live: 500})
	whole, err := Pack(r, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	tl := r.Devices[0].Timeline
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []int{2, 4, 8, 16}
	if testing.Short() {
		parts = []int{8}
	}
	for _, part := range parts {
		size := len(whole.Text) / part
		p, err := Pack(r, size)
		if err != nil || p == nil {
			t.Fatalf("nothing in %d bytes: %v", size, err)
		}
		if len(p.Text) > size {
			t.Errorf("%d bytes, want at most %d", len(p.Text), size)
		}
		u := unpack(t, p)
		d := &u.Devices[0]
		lives := u.lives(t, d)
		if d.LeftOut.Lives == 0 || len(lives)+d.LeftOut.Lives != len(tl.Lives) || p.LeftOut().Lives != d.LeftOut.Lives {
			t.Errorf("%d lives and %+v left out, of %d", len(lives), d.LeftOut, len(tl.Lives))
		}
		var rest [][]int64
		for _, c := range d.Rest.Bytes {
			rest = append(rest, u.column(t, c))
		}
		events := u.column(t, d.Rest.Event)
		for range 50 {
			i := rng.IntN(len(events))
			sum := int64(0)
			for _, sums := range rest {
				sum += sums[i]
			}
			for k := range lives {
				if lives[k].LiveAfter(int(events[i])) {
					sum += lives[k].Rounded
				}
			}
			if want := tl.StateAt(int(events[i])).Totals.Active; sum != want {
				t.Fatalf("1/%d of the page: %d bytes after event %d, want %d", part, sum, events[i], want)
			}
		}
	}
	if p, err := Pack(r, 100); p != nil || err != nil {
		t.Errorf("packed %v in 100 bytes, %v", p, err)
	}
}

// Results that do not add up, are empty or have odd texts are packed without a fault.
func TestOdd(t *testing.T) {
	evil := analyzetest.Failed(t)
	evil.Devices[0].Steps.Unit = "\x00</script>\u202e" + strings.Repeat("x", 1<<20)
	for name, r := range map[string]*analyze.Result{
		"result": analyzetest.Failed(t), "empty": analyzetest.Empty(t), "many": analyzetest.Ranks(t, 9),
		"big":  analyzetest.Big(t, 1),
		"evil": evil, "none": {Snapshot: &snapshot.Snapshot{}},
	} {
		p, err := Pack(r, 8<<20)
		if err != nil || p == nil {
			t.Fatal(name, p, err)
		}
		u := unpack(t, p)
		if len(u.Devices) != len(r.Devices) {
			t.Errorf("%s: %d devices, want %d", name, len(u.Devices), len(r.Devices))
		}
		for i := range u.Devices {
			u.lives(t, &u.Devices[i])
			if unit := u.Devices[i].Steps.Unit; len(unit) > 4*longest || strings.ContainsAny(unit, "\x00\u202e") {
				t.Errorf("%s: a text of %d bytes, or with control characters", name, len(unit))
			}
		}
	}
}
