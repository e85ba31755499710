package fit_test

import (
	"math"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/fixtures/build"
)

// scan is a program that goes over a sequence in chunks, and over them in reverse for gradients, for which the autograd
// engine has no stack. Chunks keep a state and a mask.
func scan(d *build.Device, chunks int) {
	const state, mask, scratch, hidden = 3 << 20, 5 << 18, 7 << 20, 3 << 18
	under := func(frames ...string) {
		d.Stack = build.NewStack(append(frames, "/app/train.py:9:<module>")...)
	}
	d.Record()
	under("/app/model.py:3:__init__")
	d.Alloc(4 << 20)
	for range 3 {
		under("/app/data.py:5:batch")
		batch := d.Alloc(2 << 20)
		var kept []*build.Block
		var last *build.Block // what a variable has until the next pass sets it anew, the last to the end
		for range chunks {
			under("/app/model.py:20:scan", "/app/model.py:12:forward")
			now := d.Alloc(hidden)
			if last != nil {
				d.Free(last)
			}
			last = now
			tmp := d.Alloc(scratch)
			kept = append(kept, d.Alloc(state), d.Alloc(mask))
			d.Free(tmp)
		}
		d.Free(last)
		d.Stack = nil
		grad := d.Alloc(6 << 20)
		for len(kept) > 0 {
			last := len(kept) - 2
			tmp := d.Alloc(scratch)
			next := d.Alloc(state)
			d.Free(tmp)
			again := d.Alloc(mask)
			more := d.Alloc(mask)
			d.Free(kept[last])
			d.Free(kept[last+1])
			d.Free(again)
			d.Free(more)
			d.Free(next)
			kept = kept[:last]
		}
		d.Free(grad)
		d.Free(batch)
	}
}

// TestPasses holds that a loop makes as many passes as the value says, below the lowest recorded one and above the highest:
// forward, and in the autograd engine, where each pass has requests of the same size. What a variable has from a pass
// lives on to the next one.
func TestPasses(t *testing.T) {
	record := func(chunks int64) *fit.Input {
		return record(t, chunks, func(d *build.Device) { scan(d, int(chunks)) })
	}
	q := fit.Question{Names: []string{"chunks"}, To: []fit.Point{{2}, {4}, {7}, {9}, {10}, {16}}}
	got, err := fit.Ask(t.Context(), []*fit.Input{record(6), record(9)}, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range got.Predictions {
		want := record(p.At).Timeline
		if p.AllocatedPeak != want.PeakAllocated.Bytes || p.ReservedPeak != want.PeakReserved.Bytes {
			t.Errorf("%d chunks: allocated %d, reserved %d, want %d and %d", p.At, p.AllocatedPeak, p.ReservedPeak,
				want.PeakAllocated.Bytes, want.PeakReserved.Bytes)
		}
	}
}

// meta is a program that goes over tasks, each with far more requests than an alignment looks differences over, and back over
// what they kept.
func meta(d *build.Device, tasks int) {
	const inner, each = 700, 14 // requests, and what is kept of them
	d.Stack = build.NewStack("/app/meta.py:3:<module>")
	d.Alloc(4 << 20)
	for range 3 {
		var kept []*build.Block
		d.Stack = build.NewStack("/app/meta.py:9:<module>")
		var fast *build.Block
		for range tasks {
			now := d.Alloc(3 << 20)
			if fast != nil {
				d.Free(fast)
			}
			fast = now
			d.Stack = nil
			for i := range int64(inner) {
				b := d.Alloc(512 * (1 + i*i%97))
				if i%(inner/each) == 0 {
					kept = append(kept, d.Alloc(1<<20+i<<9))
				}
				d.Free(b)
			}
			d.Stack = build.NewStack("/app/meta.py:9:<module>")
		}
		d.Free(fast)
		d.Stack = nil
		for len(kept) > 0 {
			for i := range int64(inner / each) {
				d.Free(d.Alloc(512 * (1 + (i*i*i+int64(len(kept)%each))%89)))
			}
			d.Free(kept[len(kept)-1])
			kept = kept[:len(kept)-1]
		}
	}
}

// TestLongPasses holds that loops with long passes are told by what of them comes again. Where there are
// fewer than were recorded, what they keep of each other may be off a little.
func TestLongPasses(t *testing.T) {
	record := func(tasks int64) *fit.Input {
		return record(t, tasks, func(d *build.Device) { meta(d, int(tasks)) })
	}
	q := fit.Question{Names: []string{"tasks"}, To: []fit.Point{{3}, {8}}}
	got, err := fit.Ask(t.Context(), []*fit.Input{record(2), record(4)}, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range got.Predictions {
		want := record(p.At).Timeline
		off := math.Abs(float64(p.AllocatedPeak)/float64(want.PeakAllocated.Bytes) - 1)
		if off > 0.02 || p.At > 4 && off > 0 || p.ReservedPeak != want.PeakReserved.Bytes {
			t.Errorf("%d tasks: allocated %d, reserved %d, want %d and %d", p.At, p.AllocatedPeak, p.ReservedPeak,
				want.PeakAllocated.Bytes, want.PeakReserved.Bytes)
		}
	}
}

// TestNeighbors holds that a result which has the size of what is unfolded next to it, by chance, is not made more often with
// higher values: one recording has a request more there, as kernels that are chosen by shape make it.
func TestNeighbors(t *testing.T) {
	const unfolded = 12 << 18
	record := func(batch int64, times int) *fit.Input {
		return record(t, batch, func(d *build.Device) {
			d.Stack = build.NewStack("/app/model.py:3:__init__")
			d.Alloc(8 << 20)
			for range 3 {
				d.Stack = build.NewStack("/app/data.py:5:batch")
				batches := d.Alloc(batch << 16)
				d.Stack = build.NewStack("/app/model.py:20:forward", "torch/nn/modules/module.py:1751:_call_impl",
					"/app/train.py:9:<module>")
				d.Free(d.Alloc(unfolded))
				out := d.Alloc(batch << 18)
				for range times {
					d.Free(d.Alloc(unfolded))
				}
				d.Stack = nil
				d.Free(d.Alloc(batch << 18))
				d.Free(out)
				d.Free(batches)
			}
		})
	}
	got, err := fit.Ask(t.Context(), []*fit.Input{record(8, 0), record(12, 1)},
		fit.Question{Names: []string{"batch"}, To: []fit.Point{{96}}})
	if err != nil {
		t.Fatal(err)
	}
	want := record(96, 1).Timeline.PeakAllocated.Bytes
	if p := got.Predictions[0]; math.Abs(float64(p.AllocatedPeak-want)) > 0.02*float64(want) {
		t.Errorf("allocated peak %d, want %d", p.AllocatedPeak, want)
	}
}

// TestChunks holds that the bounds allow for code that works in parts, as its name says, of which the recordings do not fill one.
func TestChunks(t *testing.T) {
	const most = 16 // items of a part
	record := func(batch int64) *fit.Input {
		return record(t, batch, func(d *build.Device) {
			d.Stack = build.NewStack("/app/model.py:3:__init__")
			d.Alloc(8 << 20)
			for range 3 {
				d.Stack = build.NewStack("/app/data.py:5:batch")
				batches := d.Alloc(batch << 16)
				d.Stack = build.NewStack("/app/loss.py:20:chunked_loss", "/app/train.py:9:<module>")
				for left := batch; left > 0; left -= most {
					d.Free(d.Alloc(min(left, most) << 20))
				}
				d.Free(batches)
			}
		})
	}
	got, err := fit.Ask(t.Context(), []*fit.Input{record(4), record(8)},
		fit.Question{Names: []string{"batch"}, To: []fit.Point{{12}, {128}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range got.Predictions {
		if want := record(p.At).Timeline.PeakReserved.Bytes; want < p.ReservedLow || want > p.ReservedHigh {
			t.Errorf("%d: %d is not from %d to %d", p.At, want, p.ReservedLow, p.ReservedHigh)
		}
	}
	if notes := strings.Join(got.Notes, " "); !strings.Contains(notes, "chunk") {
		t.Errorf("notes %q", notes)
	}
}

// TestWindows holds that the bounds allow for code that works in windows, as its name says, of which the recordings fill one, and for
// that alone.
func TestWindows(t *testing.T) {
	const most = 8 // items of a window
	const swin = "/app/swin.py:20:window_attention"
	// Each has a clip for each of a batch, and pairs of its frames in windows, or all.
	record := func(at fit.Point, batch, frames int64, code string, whole bool) *fit.Input {
		in := record(t, 1, func(d *build.Device) {
			window := min(frames, most)
			if whole {
				window = frames
			}
			d.Stack = build.NewStack("/app/swin.py:3:__init__")
			d.Alloc(8 << 20)
			for range 3 {
				d.Stack = build.NewStack("/app/data.py:5:clips")
				clips := d.Alloc(batch * frames << 16)
				d.Stack = build.NewStack(code, "torch/nn/modules/module.py:1751:_call_impl", "/app/train.py:9:<module>")
				pairs := d.Alloc(batch * frames * window << 15)
				d.Stack = build.NewStack("torch/autograd/graph.py:8:_engine_run_backward", "torch/_tensor.py:7:backward",
					"/app/train.py:10:<module>")
				d.Free(d.Alloc(batch * frames * window << 15))
				d.Free(pairs)
				d.Free(clips)
			}
		})
		in.At = at
		return in
	}
	one := func(_, frames int64) fit.Point { return fit.Point{frames} }
	for _, c := range []struct {
		name    string
		names   []string
		at      func(batch, frames int64) fit.Point
		code    string
		whole   bool
		windows bool
	}{
		{"frames", []string{"frames"}, one, swin, false, true},
		{"a file of them", []string{"frames"}, one, "/app/WindowAttention.py:20:forward", false, true},
		{"a size of the model", []string{"width"}, one, swin, true, false},
		{"a mask", []string{"seq"}, one, "/app/masks.py:20:create_sliding_window_causal_mask", true, false},
		{"behind a batch", []string{"batch", "frames"}, func(b, n int64) fit.Point { return fit.Point{b, n} }, swin, false, true},
		{"before a batch", []string{"frames", "batch"}, func(b, n int64) fit.Point { return fit.Point{n, b} }, swin, false, true},
	} {
		var recordings []*fit.Input
		for _, at := range [][2]int64{{2, 4}, {2, 8}, {4, 4}} {
			if len(c.names) > 1 || at[0] == 2 {
				recordings = append(recordings, record(c.at(at[0], at[1]), at[0], at[1], c.code, c.whole))
			}
		}
		for _, to := range [][2]int64{{2, 6}, {2, 64}, {16, 8}} {
			if len(c.names) == 1 && to[0] > 2 {
				continue
			}
			got, err := fit.Ask(t.Context(), recordings, fit.Question{Names: c.names, To: []fit.Point{c.at(to[0], to[1])}})
			if err != nil {
				t.Fatal(err)
			}
			p := got.Predictions[0]
			want := record(p.Values, to[0], to[1], c.code, c.whole).Timeline.PeakReserved.Bytes
			if want < p.ReservedLow || want > p.ReservedHigh {
				t.Errorf("%s at %v: %d, from %d to %d", c.name, p.Values, want, p.ReservedLow, p.ReservedHigh)
			}
			further := to[1] > most
			if said := strings.Contains(strings.Join(got.Notes, " "), "windows"); said != (c.windows && further) {
				t.Errorf("%s at %v: notes %q", c.name, p.Values, got.Notes)
			}
			if len(c.names) == 1 && !further && p.ReservedLow < want*9/10 {
				t.Errorf("%s at %v: at least %d, is %d", c.name, p.Values, p.ReservedLow, want)
			}
		}
	}
}
