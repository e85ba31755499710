package chart_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

func labels(ticks []chart.Tick) []string {
	var out []string
	for _, t := range ticks {
		out = append(out, strings.ReplaceAll(t.Label, "\u202f", " "))
	}
	return out
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		got  []chart.Tick
		want []string
	}{
		{chart.ByteTicks(80<<30, 4), []string{"0", "20 GiB", "40 GiB", "60 GiB", "80 GiB"}},
		{chart.ByteTicks(1536, 8), []string{"0", "0.2 KiB", "0.4 KiB", "0.6 KiB", "0.8 KiB", "1 KiB", "1.2 KiB",
			"1.4 KiB"}},
		{chart.ByteTicks(7, 8), []string{"0", "1 B", "2 B", "3 B", "4 B", "5 B", "6 B", "7 B"}},
		{chart.TimeTicks(90e6, 5), []string{"0", "20 s", "40 s", "60 s", "80 s"}},
		{chart.TimeTicks(30*60e6, 3), []string{"0", "10 min", "20 min", "30 min"}},
		{chart.CountTicks(5000, 5), []string{"0", "1 000", "2 000", "3 000", "4 000", "5 000"}},
	} {
		if got := labels(c.got); !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestTicksBounds checks that any limit gives few ticks, in order and within the limit.
func TestTicksBounds(t *testing.T) {
	for _, f := range []func(int64, int) []chart.Tick{chart.ByteTicks, chart.TimeTicks, chart.CountTicks} {
		for limit := int64(1); limit > 0; limit = limit*3 + 1 {
			ticks := f(limit, 8)
			if len(ticks) < 1 || len(ticks) > 9 {
				t.Errorf("%d ticks up to %d", len(ticks), limit)
			}
			for i, k := range ticks {
				if k.Value > limit || i > 0 && k.Value <= ticks[i-1].Value {
					t.Errorf("up to %d: %v", limit, ticks)
					break
				}
			}
		}
	}
}

func TestReduce(t *testing.T) {
	var points []timeline.Point
	for i := range 1000 {
		v := timeline.Totals{Active: int64(i % 97)}
		points = append(points, timeline.Point{First: i, Last: i, Time: int64(i), At: v, Min: v, Max: v})
	}
	points[501].Max.Active, points[502].Min.Active = 5000, -5000
	out := chart.Reduce(points, 64)
	if len(out) != 64 {
		t.Fatalf("%d points", len(out))
	}
	hi, lo, next := int64(0), int64(0), 0
	for _, p := range out {
		hi, lo = max(hi, p.Max.Active), min(lo, p.Min.Active)
		if p.First != next || p.At != points[p.Last].At || p.Time != int64(p.Last) {
			t.Errorf("point %+v after event %d", p, next-1)
		}
		next = p.Last + 1
	}
	if hi != 5000 || lo != -5000 || next != 1000 {
		t.Errorf("extremes %d and %d, %d events", lo, hi, next)
	}
}

func TestAxis(t *testing.T) {
	tl := analyzetest.Failed(t).Devices[0].Timeline
	byTime := chart.NewAxis(tl, true)
	n := tl.Trace.Len()
	us := tl.Trace.Time(40) - tl.Trace.Time(0)
	if !byTime.ByTime || byTime.Event(-1) != 0 || byTime.Event(40) != us || us < 100_000 ||
		byTime.Event(n-1) != byTime.Span {
		t.Errorf("by time: %+v, event 40 at %d, want %d", byTime, byTime.Event(40), us)
	}
	byEvent := chart.NewAxis(tl, false)
	if byEvent.ByTime || byEvent.Span != int64(n) || byEvent.Event(-1) != 0 || byEvent.Event(n-1) != int64(n) ||
		byEvent.Event(1<<30) != int64(n) {
		t.Errorf("by event: %+v", byEvent)
	}
	prev := int64(0)
	for i := range tl.Curve {
		x := byTime.Point(&tl.Curve[i], prev)
		if x < prev || x > byTime.Span {
			t.Errorf("point %d is at %d after %d", i, x, prev)
		}
		prev = x
	}
}

// A ramp is drawn as a ramp, whether a point is one event or many, and however many there are.
func TestRamp(t *testing.T) {
	const columns = 700
	for _, each := range []int{1, 7} {
		for _, points := range []int{10, 598, 3000} {
			tl := &timeline.Timeline{}
			for i := range points {
				totals := func(e int) timeline.Totals { return timeline.Totals{Active: int64(e) + 1} }
				first, last := i*each, i*each+each-1
				tl.Curve = append(tl.Curve, timeline.Point{
					First: first, Last: last, At: totals(last), Min: totals(first), Max: totals(last),
				})
			}
			end := 0.0
			chart.Active.Steps(chart.NewAxis(tl, false).Spans(tl.Curve, columns), tl.Initial, chart.Highest,
				func(x float64, bytes int64) {
					off := x - float64(bytes)/float64(points*each)
					if limit := 1.5/float64(min(points, columns)) + 0.002; off > limit || off < -limit {
						t.Fatalf("%d points of %d events: the ramp is at (%f, %d)", points, each, x, bytes)
					}
					end = x
				})
			if end != 1 {
				t.Errorf("%d points of %d events: the ramp ends at %f", points, each, end)
			}
		}
	}
}

// A stack has one color in all tables and maps, and no two stacks share a number.
func TestStackColors(t *testing.T) {
	var moments []*analyze.Moment
	d := &analyzetest.Failed(t).Devices[0]
	for i := range d.Moments {
		moments = append(moments, &d.Moments[i])
	}
	slots := chart.StackColors(moments...)
	seen := map[chart.Slot]bool{}
	for _, m := range moments {
		for i := range m.Live {
			if slots[m.Live[i].Stack] == chart.SlotOther {
				t.Errorf("stack %d has no color though there are few", m.Live[i].Stack)
			}
		}
	}
	for _, s := range slots {
		if s < 1 || s > chart.StackSlots || seen[s] {
			t.Errorf("slot %d is out of range or given twice", s)
		}
		seen[s] = true
	}
}

// TestSegmentsCover checks that the pieces of a map cover the reserved bytes exactly, class by class.
func TestSegmentsCover(t *testing.T) {
	d := &analyzetest.Failed(t).Devices[0]
	m := d.Moment("peak")
	var live int64
	var free fragmentation.Classes
	segments := chart.Segments(d.Timeline, m)
	for _, s := range segments {
		end := int64(0)
		for _, p := range s.Pieces {
			if p.At != end || p.Bytes <= 0 {
				t.Errorf("piece %+v begins %d bytes off", p, p.At-end)
			}
			end = p.At + p.Bytes
			switch {
			case p.Life >= 0:
				live += p.Bytes
			case p.Class == fragmentation.Releasable:
				free.Releasable += p.Bytes
			case p.Class == fragmentation.Hard:
				free.Hard += p.Bytes
			case p.Class == fragmentation.Soft:
				free.Soft += p.Bytes
			default:
				free.Stream += p.Bytes
			}
		}
		if end != s.Size {
			t.Errorf("%s is covered up to %d", s.Title(), end)
		}
	}
	if want := m.Frag.Classes; live != m.Frag.Active || free.Sum() != want.Sum()-want.Pending ||
		free.Hard != want.Hard {
		t.Errorf("%d live and free %+v, want %d and %+v", live, free, m.Frag.Active, want)
	}
	if none := chart.Segments(d.Timeline, new(analyze.NewMoment(&snapshot.Snapshot{}, d.Timeline, "",
		&timeline.State{}))); len(none)+len(chart.Wrap(none, 32)) != 0 {
		t.Errorf("a map of nothing: %+v", none)
	}
}

// TestWrap checks that all bytes of all segments are in some row, and that cells add up to them.
func TestWrap(t *testing.T) {
	d := &analyzetest.Big(t, 1).Devices[0]
	m := d.Moment("peak")
	rows := chart.Wrap(chart.Segments(d.Timeline, m), 32)
	if len(rows) <= 16 || len(rows) > 32 {
		t.Fatalf("%d rows", len(rows))
	}
	var live, all float64
	for i := range rows {
		cells := chart.NewCells(100, 2)
		rows[i].Each(100, func(_ *chart.Segment, p *chart.Piece, x0, x1 float64) {
			cells.Add(x0, x1, min(int(p.Life)+1, 1))
		})
		for k := range cells {
			_, one := cells.Most(k, 1, 2)
			_, both := cells.Most(k, 0, 2)
			if both > 1.0001 {
				t.Errorf("row %d: %.3f is in cell %d", i, both, k)
			}
			live, all = live+one*float64(rows[i].Bytes)/100, all+both*float64(rows[i].Bytes)/100
		}
	}
	if math.Abs(live-float64(m.Frag.Active)) > 1<<10 || math.Abs(all-float64(m.Frag.Reserved)) > 1<<10 {
		t.Errorf("%.0f of %.0f bytes are live, want %d of %d", live, all, m.Frag.Active, m.Frag.Reserved)
	}
}

func TestTop(t *testing.T) {
	var groups []attribution.Group
	for _, sum := range []attribution.Sum{{Rounded: 5, Count: 1}, {Rounded: 3, Count: 2},
		{Rounded: 1, Count: 4, PreTrace: 1}, {Rounded: 1, Count: 8}} {
		groups = append(groups, attribution.Group{Sum: sum})
	}
	top, other, more := chart.Largest(groups, 2)
	if len(top) != 2 || more != 2 || other.Rounded != 2 || other.Count != 12 || other.PreTrace != 1 ||
		chart.Sum(groups) != 10 {
		t.Errorf("%v, %+v, %d", top, other, more)
	}
	if top, _, more = chart.Largest(groups, 4); len(top) != 4 || more != 0 {
		t.Errorf("%d of 4, %d more", len(top), more)
	}
}

func TestPins(t *testing.T) {
	d := &analyzetest.Failed(t).Devices[0]
	pins, more := chart.Pins(d.Timeline, d.Moment("peak"), 2)
	if len(pins) != 2 || more != len(d.Moment("peak").Frag.Pins)-2 || pins[0].Free < pins[1].Free {
		t.Fatalf("%+v, %d more", pins, more)
	}
	if p := pins[0]; p.Site != "cache.py:88 append" || p.Blocks != 1 || p.Largest != 16<<20 ||
		p.Free+p.Live != p.Segment.Size || p.Age != "" {
		t.Errorf("%+v", p)
	}
}

func TestSites(t *testing.T) {
	group := func(site string, frames ...string) attribution.Group {
		return attribution.Group{Stack: 9, Site: site, Frames: frames}
	}
	got := chart.Sites(chart.Sources([]attribution.Group{
		group("m.py:1 f", "torch/a.py:7 relu", "lib/m.py:1 f", "main.py:2 <module>"),
		group("m.py:1 f", "torch/b.py:8 norm", "lib/m.py:1 f", "main.py:2 <module>"),
		group("m.py:1 f", "lib/m.py:1 f", "main.py:2 <module>"),
		group("c.py:5 g", "x/c.py:5 g", "x/one.py:1 h"),
		group("c.py:5 g", "x/c.py:5 g", "x/two.py:1 h"),
		group("d.py:5 g", "x/d.py:5 g"),
		group("d.py:5 g", "x/d.py:5 g"),
		group("e.py:5 g", "at::empty()", "??:0 at::_ops::bmm::call(at::Tensor const&, at::Tensor const&)", "x/e.py:5 g"),
		group("e.py:5 g", "at::empty()", "at::_ops::mul_Tensor::call(at::Tensor const&)", "x/e.py:5 g"),
		group("e.py:9 to", "t/m.py:1 _apply", "t/m.py:7 to", "x/e.py:9 to"),
		group("e.py:9 to", "t/m.py:1 _apply", "t/m.py:1 _apply", "t/m.py:7 to", "x/e.py:9 to"),
		// The interpreter's own frames, those of torch's inside, and how deep it recurses, say nothing.
		group("p.py:1 f", "at::meta::structured_add::meta()", "at::_ops::add::call(x)", "??:0 slot_tp_call", "x/p.py:1 f"),
		group("p.py:1 f", "at::native::add()", "at::_ops::add::call(x)", "??:0 method_vectorcall", "x/p.py:1 f"),
		group("p.py:1 f", "torch/nn/modules/module.py:9 _apply", "torch/_tensor.py:5 to", "torch/nn/modules/module.py:9 to",
			"x/p.py:1 f", "x/main.py:7 warm_up"),
		// Rows that would read the same go back to where they part.
		group("q.py:1 g", "torch/nn/modules/conv.py:5 forward", "torch/nn/modules/container.py:2 forward", "y/fit.py:3 epoch",
			"x/q.py:1 g"),
		group("q.py:1 g", "torch/nn/modules/conv.py:5 forward", "y/fit.py:9 check", "x/q.py:1 g"),
		group("q.py:1 g", "torch/nn/modules/norm.py:6 forward", "y/fit.py:9 check", "x/q.py:1 g"),
		{Stack: 9},
	}))
	want := []string{
		"m.py:1 f (a.py:7 relu)", "m.py:1 f (b.py:8 norm)", "m.py:1 f", "c.py:5 g (one.py:1 h)",
		"c.py:5 g (two.py:1 h)",
		"d.py:5 g", "e.py:5 g (aten::bmm)", "e.py:5 g (aten::mul_Tensor)", "e.py:9 to", "p.py:1 f (aten::add)",
		"p.py:1 f", "q.py:1 g (fit.py:3 epoch)", "q.py:1 g (conv.py:5 forward)", "q.py:1 g (norm.py:6 forward)",
		"(no recorded stack)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		room       int
		site, want string
	}{
		{40, "opt.py:190 allocate (flex.py:507 init_weight)", "opt.py:190 allocate (flex.py:507 ini…ht)"},
		{30, "opt.py:190 allocate (flex.py:507 init_weight)", "opt.py:190 allocate (flex…507)"},
		{25, "opt.py:190 allocate (flex.py:507 init_weight)", "opt.py:190 allocate"},
		{10, "opt.py:190 allocate (flex.py:507 init_weight)", "… allocate"},
		{30, "m.py:165 run (aten::_efficient_attention) #2", "m.py:165 run (aten::…ntion) #2"},
		{44, "opt.py:190 allocate (flex.py:507 init_weight)", "opt.py:190 allocate (flex.py:507 init_…ight)"},
	} {
		if got := chart.ClipSite(c.site, c.room); got != c.want || utf8.RuneCountInString(got) > c.room {
			t.Errorf("%d: %q, want %q", c.room, got, c.want)
		}
	}
	for _, c := range []struct {
		s                string
		n, width         int
		clip, left, site string
	}{
		{"模型/训练.py:3 前向", 10, 19, "模型/训练…", "…py:3 前向", "…py:3 前向"},
		{"e\u0301te\u0301.py", 4, 6, "e\u0301te\u0301…", "….py", "….py"},
		{"👩‍🔬x.py", 4, 6, "👩‍🔬x…", "….py", "….py"},
	} {
		if got := chart.Width(c.s); got != c.width {
			t.Errorf("%q is %d columns wide, want %d", c.s, got, c.width)
		}
		for _, got := range []struct{ got, want string }{{chart.Clip(c.s, c.n), c.clip}, {chart.ClipLeft(c.s, c.n), c.left},
			{chart.ClipSite(c.s, c.n), c.site}} {
			if got.got != got.want || chart.Width(got.got) > c.n {
				t.Errorf("%q in %d columns is %q, want %q", c.s, c.n, got.got, got.want)
			}
		}
	}
	if got := chart.ClipLeft("/a/b/ü.py", 5); got != "…ü.py" {
		t.Errorf("ClipLeft: %q", got)
	}
	if got := chart.Clip("übermorgen", 5); got != "über…" || utf8.RuneCountInString(got) != 5 {
		t.Errorf("Clip: %q", got)
	}
	if got := chart.Clip("abc", 3) + chart.ClipLeft("abc", 3); got != "abcabc" {
		t.Errorf("what fits was cut: %q", got)
	}
	if got := chart.Plain("a\x1b[2J\nb\u202ec\x9b"); got != "a [2J b c " {
		t.Errorf("Plain: %q", got)
	}
}

// TestTellingAxis goes by events where a program waits most of the time.
func TestTellingAxis(t *testing.T) {
	for _, wait := range []int64{0, 1e6} {
		s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
			for range 200 {
				d.Wait(10)
				d.Free(d.Alloc(1 << 20))
			}
			d.Wait(wait)
			d.Alloc(1 << 20)
		}))
		if a := chart.TellingAxis(timeline.Build(s, 0), true); a.ByTime != (wait == 0) {
			t.Errorf("after a wait of %d µs, by time: %v", wait, a.ByTime)
		}
	}
}

// TestUseSlots checks that every category has a color of its own, but for the two that stand for all others.
func TestUseSlots(t *testing.T) {
	seen := map[chart.Slot]category.Category{}
	for _, c := range category.All() {
		slot := chart.UseSlot(c)
		if other, ok := seen[slot]; ok || (slot == chart.SlotOther) != (c == category.Other) {
			t.Errorf("%v has the color %d, as %v", c, slot, other)
		}
		seen[slot] = c
	}
}
