// Package sample builds results by hand for the tests of the reports: small ones whose every
// figure can be checked by eye, and big ones that try the limits.
package sample

import (
	"fmt"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	driver "github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
)

const (
	mib = 1 << 20
	gib = 1 << 30

	start = 1_700_000_000_000_000 // of the trace, microseconds since the Unix epoch
)

// accounted adds where all of a device's memory is.
func accounted(d analyze.Device) analyze.Device {
	end := &d.Timeline.Final
	l := &driver.Ledger{PID: 4101, Untold: 1}
	l.Rows = []oom.LedgerRow{{Row: oom.RowFree, Bytes: 112 * mib}, {Row: driver.RowDriver, Bytes: 640 * mib}, {Row: oom.RowOthers, Bytes: 1024 * mib},
		{Row: oom.RowNonPyTorch, Bytes: 512 * mib, Derived: true}, {Row: oom.RowAllocated, Bytes: end.Allocated},
		{Row: driver.RowHard, Bytes: end.Reserved - end.Allocated}, {Row: oom.RowResidual, Derived: true}}
	for _, r := range l.Rows {
		l.Total += r.Bytes
	}
	d.Account = &analyze.Account{Ledger: l}
	return d
}

// Result is a file with one device that ran out of memory while free memory lay split
// between live blocks.
func Result() *analyze.Result {
	s := snap("job.pickle", 1)
	return &analyze.Result{
		Snapshot: s,
		Devices:  []analyze.Device{accounted(device(s, 0, 1))},
		Verdict: verdict.Verdict{
			Status:   finding.Fragmentation,
			Headline: "A 768 MiB request failed on GPU 0 while 1.25 GiB of reserved memory was free, in pieces of 512 MiB or less.",
			Findings: []finding.Finding{
				{
					ID: "oom", Status: finding.Fragmentation, Severity: finding.Error, Confidence: finding.High,
					Device: 0, Bytes: 1280 * mib,
					Title: "Split memory could not serve a 768 MiB request",
					Why: []string{
						"At event 90 the program asked for 768 MiB; the device had 112 MiB left.",
						"1.25 GiB of reserved memory was free, the largest piece 512 MiB.",
						"Blocks of cache.py:88 append hold 2 segments with 1.00 GiB of free memory.",
					},
					Next: []string{
						"Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True and run again.",
						"Allocate the blocks of cache.py:88 before the large buffers.",
					},
					Events: []int{90},
					Stack:  []string{"cache.py:88 append", "generate.py:41 step", "main.py:12 <module>"},
				},
				{
					ID: "growth", Status: finding.Ghost, Severity: finding.Warning, Confidence: finding.Medium,
					Device: 0, Bytes: 96 * mib, Heuristic: true, Evidence: finding.Evidence{Growth: new(finding.Growth)},
					Title:  "cache.py:88 append grows by 16.0 MiB per step",
					Why:    []string{"6 steps in a row left one more block each."},
					Next:   []string{"Detach <tensors> that are kept between steps & free the rest."},
					Events: []int{12, 27, 43},
					Cause:  "cache", Fix: []string{"with torch.no_grad():", "    kept.append(<x>.item())"},
				},
			},
		},
		Quality: []analyze.Note{
			{Level: "ok", Text: "blocks and events agree", Count: 0},
			{Level: "missing", Text: "blocks from before the trace have no stack", Count: 2},
			{Level: "missing", Text: "no Python stacks on backward threads: their memory has no site"},
		},
	}
}

// Many is Result with n devices.
func Many(n int) *analyze.Result {
	r := Result()
	r.Snapshot = snap("ranks.pickle", n)
	r.Devices = nil
	for i := range n {
		r.Devices = append(r.Devices, device(r.Snapshot, i, int64(i+1)))
	}
	return r
}

// Empty is a file with nothing in it.
func Empty() *analyze.Result {
	return &analyze.Result{
		Snapshot: &snapshot.Snapshot{Name: "empty.pickle", Container: []string{"pickle protocol 4"}},
		Verdict:  verdict.Verdict{Status: finding.NoData, Headline: "The file has no segments and no events."},
	}
}

func snap(name string, devices int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Name: name, Bytes: 48_211, Container: []string{"gzip", "pickle protocol 4"}, Writer: "2.5 to 2.7",
		Missing:  []string{"no Python stacks on backward threads: their memory has no site"},
		HasTimes: true, HasStacks: true,
	}
	s.Settings = snapshot.Settings{
		Present: true, Conf: "max_split_size_mb:512", MaxSplitSize: 512 * mib, GCThreshold: 0,
		Values: []snapshot.Setting{
			{Key: "PYTORCH_CUDA_ALLOC_CONF", Value: "max_split_size_mb:512"},
			{Key: "max_split_size", Value: "536870912"},
			{Key: "expandable_segments", Value: "False"},
		},
	}
	events := new(snapshot.Events)
	for d := range devices {
		for i := range 100 {
			e := events.Next()
			*e = snapshot.Event{
				Action: snapshot.Alloc, Addr: uint64(0x7f00_0000_0000 + i*mib), Size: mib,
				Time: start + int64(i)*25_000, Has: snapshot.EventHasTime | snapshot.EventHasAddr | snapshot.EventHasSize,
			}
			if i == 90 {
				*e = snapshot.Event{
					Action: snapshot.OOM, Addr: 112 * mib, Size: 768 * mib,
					Time: e.Time, Has: snapshot.EventHasTime | snapshot.EventHasDeviceFree,
				}
			}
		}
		s.Traces = append(s.Traces, snapshot.NewTrace(events, d*100, 100))
	}
	return s
}

// device is 4 GiB x scale of reserved memory in five segments.
func device(s *snapshot.Snapshot, ordinal int, scale int64) analyze.Device {
	m, base := scale*mib, uint64(0x7f00_0000_0000)
	life := func(off, size int64, born int32, stack snapshot.StackID) timeline.Life {
		return timeline.Life{
			Addr: base + uint64(off*m), Requested: size*m - 100, Rounded: size * m,
			Born: born, FreeRequested: -1, Freed: -1, Stack: stack,
		}
	}
	t := &timeline.Timeline{
		Device: ordinal, Trace: s.Traces[ordinal],
		Lives: []timeline.Life{
			life(0, 768, -1, 0), life(768, 256, -1, 0), // weights
			life(1024, 512, 3, 2), life(1536, 128, 7, 3), // activations
			life(2048+128, 16, 12, 4), life(3072+256, 16, 43, 4), // cache
			life(1664, 360, 55, 2),
		},
	}
	t.Lives[6].Freed, t.Lives[6].FreeRequested = 95, 95

	kinds := []snapshot.SegmentKind{snapshot.KindLarge, snapshot.KindLarge, snapshot.KindLarge, snapshot.KindLarge, snapshot.KindSmall}
	state := func(event int, lives ...[]int32) *timeline.State {
		st := &timeline.State{Event: event}
		if event >= 0 {
			st.Time = t.Trace.At(event).Time
		}
		sizes, off := []int64{1024, 1024, 512, 512, 1024}, int64(0)
		for i, size := range sizes {
			seg := timeline.SegmentState{
				Range: timeline.Range{Addr: base + uint64(off*m), Size: size * m, Kind: kinds[i]},
				Live:  lives[i],
			}
			for _, l := range lives[i] {
				seg.Active += t.Lives[l].Rounded
				st.Totals.Requested += t.Lives[l].Requested
			}
			st.Totals.Active += seg.Active
			st.Totals.Reserved += seg.Size
			st.Segments = append(st.Segments, seg)
			off += size
		}
		st.Totals.Allocated = st.Totals.Active
		return st
	}
	peak := state(60, []int32{0, 1}, []int32{2, 3, 6}, []int32{4}, nil, []int32{5})
	end := state(99, []int32{0, 1}, []int32{2, 3}, []int32{4}, nil, []int32{5})
	failed := state(90, []int32{0, 1}, []int32{2, 3, 6}, []int32{4}, nil, []int32{5})

	t.Initial = timeline.Totals{Reserved: 1024 * m, Active: 1024 * m, Allocated: 1024 * m, Requested: 1024*m - 200}
	t.Final = end.Totals
	t.PeakReserved = timeline.Peak{Bytes: peak.Totals.Reserved, Event: 43}
	t.PeakActive = timeline.Peak{Bytes: peak.Totals.Active, Event: 60}
	t.PeakAllocated, t.PeakRequested = t.PeakActive, timeline.Peak{Bytes: peak.Totals.Requested, Event: 60}
	for i := 0; i < 100; i += 10 {
		at := t.Initial
		at.Reserved += int64(min(i, 50)) * 3072 * m / 50
		at.Active += int64(min(i, 60)) * 4 * m
		if i == 60 {
			at = peak.Totals
		}
		if i == 90 {
			at = end.Totals
		}
		at.Allocated = at.Active
		lo, hi := at, at
		lo.Active -= 16 * m
		hi.Active = min(hi.Active+32*m, peak.Totals.Active)
		hi.Allocated = hi.Active
		t.Curve = append(t.Curve, timeline.Point{First: i, Last: i + 9, Time: t.Trace.At(i + 9).Time, At: at, Min: lo, Max: hi})
	}
	t.OOMs = []timeline.OOMEvent{{Event: 90, Requested: 768 * m, DeviceFree: 112 * m, After: failed.Totals}}
	t.Retries = []timeline.Retry{{FirstEvent: 88, LastEvent: 89, Released: 64 * m}}
	t.Checks = timeline.Checks{PreTraceBlocks: 2, Markers: 1}

	return analyze.Device{Timeline: t, Steps: stepsOf(m), Turnover: turnoverOf(m), Growth: growthOf(m), OneOffs: []ghost.OneOff{{Stack: 3, Count: 1, Bytes: 360 * m, First: 20}}, Free: freeOf(m), Uses: usesOver(m), OOM: failure(m, failed), Moments: []analyze.Moment{
		moment(t, "peak", peak), moment(t, "oom", failed), moment(t, "end", end),
	}}
}

// failure is the report on the request that failed: the free pieces would have been enough.
func failure(m int64, st *timeline.State) *oom.Report {
	before := st.Totals
	before.Reserved += 64 * m
	return &oom.Report{
		Event: 90, Requested: 768 * m, Segment: 768 * m, DeviceFree: 112 * m, Before: before, After: st.Totals,
		Released: oom.Released{Segments: 2, Bytes: 64 * m, FirstEvent: 88, LastEvent: 89},
		Largest:  512 * m, Servable: 512 * m, Total: oom.Unknown, AtLeast: st.Totals.Reserved + 112*m, Elsewhere: oom.Unknown, Fraction: 1,
		Ghosts: oom.Ghosts{Blocks: 1, Bytes: 16 * m, Largest: 512 * m}, Cause: oom.Fragmentation,
		Plan: fragmentation.Plan{Returned: 1024 * m, Segments: 1, Blocks: 1, Bytes: 16 * m, Fewest: true, Sites: []fragmentation.PlanSite{{Stack: 4, Site: "cache.py:88 append", Blocks: 1, Bytes: 16 * m}}},
		Answers: []oom.Answer{
			{ID: "piece", What: "in the largest free piece of its stream", Fits: oom.No, Bytes: 512 * m},
			{ID: "stream", What: "in one piece of all free bytes of its stream", Fits: oom.Yes, Bytes: 1280 * m},
			{ID: "alone", What: "on a device that nobody shares", Fits: oom.NotKnown, Bytes: oom.Unknown, Note: "its size is not recorded; --capacity tells"},
			{ID: "ghosts", What: "after freeing ghost tensors", Fits: oom.No, Bytes: 16 * m, Note: "a heuristic; 0 B of segments would go back"},
			{ID: "setting", What: "with the default settings", Fits: oom.No, Bytes: 4096 * m, Note: "replayed"},
			{ID: "setting", What: "with expandable_segments:True", Conf: "expandable_segments:True", Fits: oom.Yes, Bytes: 3072 * m, Note: "replayed"},
		},
	}
}

var frames = map[snapshot.StackID][]string{
	2: {"model.py:52 forward", "linear.py:125 forward", "train.py:30 step", "main.py:12 <module>"},
	3: {"attention.py:77 scores", "model.py:60 forward", "main.py:12 <module>"},
	4: {"cache.py:88 append", "generate.py:41 step", "main.py:12 <module>"},
}

func stepsOf(m int64) steps.Result {
	return steps.Result{
		Unit: "iteration of train (train.py:31)", Source: "both", Confidence: finding.High,
		Steps: []steps.Step{
			{First: 10, Last: 39, Name: "ProfilerStep#1", Peak: 1700 * m, Start: 1024 * m, End: 1680 * m, Growth: 656 * m, Survivors: 656 * m, WarmUp: true},
			{First: 40, Last: 69, Name: "ProfilerStep#2", Peak: 2056 * m, Start: 1680 * m, End: 2056 * m, Growth: 376 * m, Survivors: 16 * m},
			{First: 70, Last: 99, Name: "ProfilerStep#3", Peak: 2056 * m, Start: 2056 * m, End: 1696 * m, Growth: -360 * m},
		},
	}
}

func turnoverOf(m int64) attribution.Turnover {
	return attribution.Turnover{
		Allocs: 5, Short: 1, Bytes: 360 * m, Micros: 2_475_000,
		Sites: []attribution.SiteTurnover{{Stack: 2, Allocs: 2, Short: 1, Bytes: 360 * m, Held: 1.5e9}},
	}
}

func growthOf(m int64) []ghost.Growth {
	return []ghost.Growth{{
		Stacks: []snapshot.StackID{4}, Laps: 6, Count: 6, Bytes: 96 * m, PerLap: 16 * m, Regular: true, FreedShare: 0.5,
		Events: []int{12, 27, 43}, Horizon: 99, First: 12, Last: 87, Slope: float64(16 * m), Chance: 1.0 / 720, LapTime: 375_000, Every: 1,
		Lifetimes:  []ghost.Lifetime{{Laps: 0, Of: 5, Count: 5, Bytes: 80 * m}, {Laps: 4, Of: 1, Count: 1, Bytes: 16 * m}},
		OlderCount: 1, OlderBytes: 16 * m, Cause: ghost.Cause{Kind: ghost.Cached, Hints: []string{"append"}},
	}}
}

func freeOf(m int64) []fragmentation.Sample {
	return []fragmentation.Sample{
		{Event: 49, Time: start + 49*25_000, Reserved: 3072 * m, Allocated: 1680 * m, LargestUsable: 1008 * m,
			Classes: fragmentation.Classes{Releasable: 1024 * m, Hard: 368 * m},
			Groups:  []fragmentation.Group{{Segments: 3, Reserved: 2048 * m, Active: 1680 * m, Split: 368 * m, Largest: 368 * m}, {Stream: 1, Segments: 1, Reserved: 1024 * m, Releasable: 1024 * m, Largest: 1024 * m}}},
		{Event: 99, Time: start + 99*25_000, Reserved: 4096 * m, Allocated: 1696 * m, LargestUsable: 1024 * m,
			Classes: fragmentation.Classes{Releasable: 1024 * m, Hard: 1376 * m}},
	}
}

func usesOver(m int64) []category.Sample {
	out := []category.Sample{{First: 0, Last: 49, Event: 49}, {First: 50, Last: 99, Event: 60}}
	for i := range out {
		out[i].Bytes[category.Parameter], out[i].Bytes[category.Activation] = 1024*m, 672*m
	}
	return out
}

// usesOf takes the first stack for parameters and the rest for activations.
func usesOf(groups []attribution.Group) []category.Sum {
	var a, p category.Sum
	a.Category, p.Category = category.Activation, category.Parameter
	for i := range groups {
		g, x, trust := &groups[i], &a, category.Medium
		if i == 0 {
			x, trust = &p, category.High
		}
		x.Count += g.Count
		x.Rounded += g.Rounded
		x.Requested += g.Requested
		x.Trust[trust] += g.Rounded
	}
	return []category.Sum{p, a}
}

// moment derives the groups and the fragmentation of a state.
func moment(t *timeline.Timeline, name string, st *timeline.State) analyze.Moment {
	mo := analyze.Moment{Name: name, State: st}
	f := &mo.Frag
	f.Reserved, f.Active, f.Rounding = st.Totals.Reserved, st.Totals.Active, st.Totals.Active-st.Totals.Requested
	groups := make([]attribution.Group, 5)
	for i := range st.Segments {
		seg := &st.Segments[i]
		free := seg.Size - seg.Active
		f.Segments++
		f.LargestFree = max(f.LargestFree, free)
		switch {
		case len(seg.Live) == 0:
			f.Releasable += free
		case free > 0:
			f.Split += free
			f.PartlyUsed++
			f.Pins = append(f.Pins, fragmentation.Pin{Segment: i, Free: free, Live: seg.Active, Lives: seg.Live})
		}
		for _, row := range seg.Live {
			l := &t.Lives[row]
			g := &groups[l.Stack]
			g.Stack = l.Stack
			g.Count++
			g.Rounded += l.Rounded
			g.Requested += l.Requested
			if l.Born < 0 {
				g.PreTrace += l.Rounded
			}
		}
	}
	for i := range groups {
		g := &groups[i]
		if g.Count == 0 {
			continue
		}
		g.Frames = frames[g.Stack]
		if len(g.Frames) > 0 {
			g.Site = g.Frames[0]
		}
		mo.Live = append(mo.Live, *g)
	}
	sortGroups(mo.Live)
	mo.Uses = usesOf(mo.Live)
	f.Classes = fragmentation.Classes{Releasable: f.Releasable, Hard: f.Split, Pending: st.Totals.Active - st.Totals.Allocated}
	f.LargestUsable = f.LargestFree
	f.Groups = []fragmentation.Group{
		{Segments: f.Segments - 1, Reserved: f.Reserved - st.Segments[2].Size, Active: f.Active - st.Segments[2].Active, Releasable: f.Releasable,
			Split: f.Split - st.Segments[2].Size + st.Segments[2].Active, Largest: f.LargestFree},
		{Pool: snapshot.PoolID{A: 0, B: 1}, Segments: 1, Reserved: st.Segments[2].Size, Active: st.Segments[2].Active, Split: st.Segments[2].Size - st.Segments[2].Active,
			Largest: st.Segments[2].Size - st.Segments[2].Active},
	}
	f.Holes[27] = fragmentation.Holes{From: 1 << 27, Count: int64(f.PartlyUsed), Bytes: f.Split}
	sortPins(f.Pins)
	return mo
}

// stackName makes up a deep frame for the big samples.
func stackName(i int) string {
	return fmt.Sprintf("/opt/env/lib/python3.12/site-packages/torch/nn/modules/module%d.py:%d forward_<%d>", i%97, i, i)
}
