package page

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// recorded is a fixture of which the recorder saw the holders.
func recorded(t *testing.T, name string) *analyze.Result {
	t.Helper()
	dir := filepath.Join("../../../fixtures/holders", name)
	s, err := load.Open(t.Context(), filepath.Join(dir, "snapshot.pickle.zst"), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sidecar.Open(t.Context(), filepath.Join(dir, "run.snapana"), sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: f})
	if r.Holders == nil {
		t.Fatalf("%s: nobody was seen to hold anything", name)
	}
	return r
}

// held adds up, by row of Holders, the lives that are allocated at the dump.
func (u *unpacked) held(t *testing.T, lives []timeline.Life, column Column) []holder.Sum {
	t.Helper()
	of, k := u.column(t, column), 0
	sums := make([]holder.Sum, len(u.Holders))
	for i := range lives {
		l := &lives[i]
		if l.Freed >= 0 {
			continue
		}
		if l.FreeRequested == -1 {
			sums[of[k]].Count++
			sums[of[k]].Bytes += l.Rounded
		}
		k++
	}
	if k != len(of) {
		t.Fatalf("%d lives are never freed, %d have a holder or none", k, len(of))
	}
	return sums
}

func (u *unpacked) sums(t *testing.T, d *Device) []holder.Sum {
	t.Helper()
	bytes, blocks := u.column(t, d.Held.Bytes), u.column(t, d.Held.Blocks)
	out := make([]holder.Sum, len(bytes))
	for i := range out {
		out[i] = holder.Sum{Count: blocks[i], Bytes: bytes[i]}
	}
	return out
}

// The blocks of the page add up, holder by holder, to what was joined: held and unheld are what
// is allocated.
func TestHoldersAddUp(t *testing.T) {
	for _, name := range []string{"results_accumulate", "hook_closure", "exception_traceback", "reference_cycle",
		"genuine_oom"} {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, name)
			p, err := Pack(r, 64<<20)
			if err != nil || p == nil {
				t.Fatal(p, err)
			}
			u := unpack(t, p)
			if len(u.Holders) != len(r.Holders.Holders)+1 {
				t.Fatalf("%d rows of %d holders", len(u.Holders), len(r.Holders.Holders))
			}
			for i := range u.Devices {
				d := &u.Devices[i]
				got, sums := u.held(t, u.lives(t, d), d.Lives.Holder), u.sums(t, d)
				want := r.Holders.Devices[i]
				if got[0] != want.Unheld {
					t.Errorf("no tensor was seen in %v, want %v", got[0], want.Unheld)
				}
				var all holder.Sum
				for k := range got {
					all.Count, all.Bytes = all.Count+got[k].Count, all.Bytes+got[k].Bytes
					if got[k] != sums[k] {
						t.Errorf("%s: %v in the page, of %v", u.Holders[k].Name, got[k], sums[k])
					}
				}
				if all != want.Allocated {
					t.Errorf("%v held or not, want %v", all, want.Allocated)
				}
				for k := range r.Holders.Holders {
					h, v := &r.Holders.Holders[k], &u.Holders[k+1]
					if len(u.Devices) == 1 && got[k+1] != (holder.Sum{Count: h.Count, Bytes: h.Bytes}) {
						t.Errorf("%s: %v, want %v", h.Reference, got[k+1], h.Bytes)
					}
					if v.Name != clean(chart.HolderName(h)) || v.Standing != string(h.Standing) ||
						v.Bytes != h.Bytes || v.Frees != h.Frees || strings.Join(v.Chain, " > ") != h.Chain {
						t.Errorf("%+v, want %+v", v, h)
					}
				}
			}
		})
	}
}

// Where lives and holders are left out, the sums of the dump stay, and what is in the page is
// never more.
func TestHoldersLeftOut(t *testing.T) {
	r := recorded(t, "results_accumulate")
	m := room
	m.lives, m.holders = 300, 1
	p, err := pack(r, 64<<20, m, newSources(r), newStacks)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	u := unpack(t, p)
	d := &u.Devices[0]
	got, sums := u.held(t, u.lives(t, d), d.Lives.Holder), u.sums(t, d)
	less := false
	for k := range got {
		less = less || got[k].Bytes < sums[k].Bytes
		if got[k].Bytes > sums[k].Bytes {
			t.Errorf("%s: %v in the page, of %v", u.Holders[k].Name, got[k], sums[k])
		}
	}
	if !less || d.LeftOut.Lives == 0 {
		t.Error("nothing is left out: the test is of no use")
	}
	few := newHeld(r, 1)
	n := len(r.Holders.Holders)
	var sum, all int64
	for i := range few.all {
		sum += few.all[i].Bytes
	}
	for _, d := range r.Holders.Devices {
		all += d.Allocated.Bytes
	}
	if len(few.all) != 3 || n < 2 || few.all[1].Standing != "ghost" || sum != all {
		t.Errorf("%d rows of %d holders with %d bytes, want %d: %+v", len(few.all), n, sum, all, few.all)
	}
}

// A window has the holders of its lives.
func TestHoldersOfWindows(t *testing.T) {
	r := recorded(t, "healthy_train")
	whole, err := Pack(r, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	p, v, err := PackServed(r, len(whole.Text)*2/3)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	u := unpack(t, p)
	d := &u.Devices[0]
	end := v.Events(0) - 1
	h, w := window(t, v, u, 0, end, end, end)
	lives := w.lives(t, &Device{Kinds: h.Kinds, Lives: h.Lives, Stretches: d.Stretches})
	got := u.held(t, u.lives(t, d), d.Lives.Holder)
	for k, s := range w.held(t, lives, h.Lives.Holder) {
		got[k].Count, got[k].Bytes = got[k].Count+s.Count, got[k].Bytes+s.Bytes
	}
	for k, want := range u.sums(t, d) {
		if got[k] != want {
			t.Errorf("%s: %v in the page and the window, want %v", u.Holders[k].Name, got[k], want)
		}
	}
	if d.LeftOut.Lives == 0 || len(lives) == 0 {
		t.Errorf("%d lives are left out, %d in the window: the test is of no use", d.LeftOut.Lives, len(lives))
	}
}

// A holder on several devices is summed on each.
func TestHoldersOfDevices(t *testing.T) {
	r := analyzetest.Ranks(t, 3)
	var kept []int32 // alive at the end, on all devices
	for row, l := range r.Devices[0].Timeline.Lives {
		if l.Freed < 0 {
			kept = append(kept, int32(row))
		}
	}
	h := holder.Holder{Reference: holder.Reference{Kind: holder.Global, Variable: "cache", Function: "main"},
		Standing: holder.Other,
		Blocks:   []holder.Block{{Device: 0, Row: kept[0]}, {Device: 2, Row: kept[0]}, {Device: 2, Row: kept[1]}}}
	r.Holders = &holder.Result{Holders: []holder.Holder{h},
		Devices: []holder.Device{{Ordinal: 0}, {Ordinal: 1, Unheld: holder.Sum{Count: 1, Bytes: 9}}, {Ordinal: 2}}}
	p, err := Pack(r, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	u := unpack(t, p)
	for i, rows := range [][]int32{kept[:1], {}, kept[:2]} {
		want := []holder.Sum{r.Holders.Devices[i].Unheld, {}}
		for _, row := range rows {
			want[1].Count, want[1].Bytes = want[1].Count+1, want[1].Bytes+r.Devices[i].Timeline.Lives[row].Rounded
		}
		d := &u.Devices[i]
		if got := u.sums(t, d); !slices.Equal(got, want) {
			t.Errorf("device %d: %v, want %v", i, got, want)
		}
		if got := u.held(t, u.lives(t, d), d.Lives.Holder); got[1] != want[1] {
			t.Errorf("device %d: lives of %v, want %v", i, got[1], want[1])
		}
	}
}

// Without a recorder's file nothing is said of holders; a hostile name is cut, and plain.
func TestHoldersOdd(t *testing.T) {
	p, err := Pack(analyzetest.Failed(t), 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	if d := &p.Data.Devices[0]; len(p.Data.Holders) > 0 || d.Held.Bytes.Len > 0 || d.Lives.Holder.Len > 0 {
		t.Errorf("holders %v, %+v", p.Data.Holders, d.Held)
	}
	r := analyzetest.Held(t)
	evil := &r.Holders.Holders[1]
	for range 5000 {
		evil.Hops = append(evil.Hops, "\x1b[2J</script>\u202e"+strings.Repeat("x", 1<<10))
	}
	if p, err = Pack(r, 8<<20); err != nil {
		t.Fatal(err)
	}
	for _, h := range p.Data.Holders {
		if len(h.Chain) > mostHops {
			t.Errorf("a chain of %d hops", len(h.Chain))
		}
		for _, s := range append(append(append([]string{h.Name, h.Grows}, h.Chain...), h.With...), h.Fix...) {
			if utf8.RuneCountInString(s) > longest || strings.ContainsAny(s, "\x1b\x07\u202e") {
				t.Errorf("%.80q", s)
			}
		}
	}
}
