package load

import (
	"fmt"

	"github.com/snapana/snapana/snapshot"
)

// evidence is what a file has: its keys show who wrote it, and what is missing.
type evidence struct {
	events             snapshot.Span
	lists, most        int   // lists of events, and the events of the longest
	live, withStack    int64 // bytes of active blocks, and of those whose stack is known
	stackedBlocks      int   // active ones whose stack is known
	requested, stacked bool  // stacked is of segments
	stream, expandable bool
	history            bool
	compile, pool      bool
	forward, category  bool
	last               snapshot.LabelID
	backend            string
	streamReuse        bool // the setting graph_capture_record_stream_reuse
	pinnedCache        bool // the setting max_cached_size
}

// collect takes in all but the events.
func (ev *evidence) collect(s *snapshot.Snapshot) {
	for i := range s.Segments {
		seg := &s.Segments[i]
		ev.stream = ev.stream || seg.Has&snapshot.SegmentHasStream != 0
		ev.expandable = ev.expandable || seg.Has&snapshot.SegmentHasExpandable != 0
		ev.stacked = ev.stacked || seg.Stack > snapshot.EmptyStack
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		ev.history = ev.history || b.Has&snapshot.BlockHasHistory != 0
		if !b.State.Active() {
			continue
		}
		ev.live += b.Size
		if b.Stack > snapshot.EmptyStack {
			ev.withStack += b.Size
			ev.stackedBlocks++
		}
		ev.requested = ev.requested || b.Has&snapshot.BlockHasRequested != 0 || b.History.Len > 0
	}
	if ev.backend = backend(s); ev.events.Count[snapshot.WorkspaceSnapshot] > 0 {
		ev.backend = snapshot.NPU
	}
	for _, v := range s.Settings.Values {
		ev.streamReuse = ev.streamReuse || v.Key == "graph_capture_record_stream_reuse"
		ev.pinnedCache = ev.pinnedCache || v.Key == "max_cached_size"
	}
}

// traces takes in the events of the traces.
func (ev *evidence) traces(s *snapshot.Snapshot) {
	for _, t := range s.Traces {
		ev.most = max(ev.most, t.Len())
		for first, span := range t.Spans() {
			ev.events.Join(span)
			for i := first; span.Labeled && i < first+span.Events; i++ {
				ev.label(s, t.Label(i))
			}
		}
	}
}

// recount counts the events of the traces anew.
func (ev *evidence) recount(s *snapshot.Snapshot) {
	var now evidence
	now.traces(s)
	ev.events.Events, ev.events.Count, ev.most = now.events.Events, now.events.Count, now.most
}

// add takes in what is known of the events of a list.
func (ev *evidence) add(o *evidence) {
	ev.events.Join(&o.events)
	ev.most, ev.compile = max(ev.most, o.most), ev.compile || o.compile
	ev.forward, ev.pool, ev.category = ev.forward || o.forward, ev.pool || o.pool, ev.category || o.category
}

// event takes in event i of a list.
func (ev *evidence) event(s *snapshot.Snapshot, i int, e *snapshot.Event) {
	ev.events.Add(e)
	ev.most = max(ev.most, i+1)
	ev.label(s, e.Label)
}

// label takes in that of an event.
func (ev *evidence) label(s *snapshot.Snapshot, id snapshot.LabelID) {
	if id == ev.last {
		return
	}
	ev.last = id
	l := s.Labels.Get(id)
	ev.compile = ev.compile || l.CompileContext != 0
	ev.forward = ev.forward || l.ForwardFrames != 0
	ev.pool = ev.pool || l.HasPool
	ev.category = ev.category || l.Category != 0
}

// timed reports whether an event has a time.
func (ev *evidence) timed() bool { return ev.events.Any&snapshot.EventHasTime != 0 }

// newest stands for "or later" in a span of releases.
const newest = 99

// skipsSince is the release that brought skip_actions (torch/cuda/memory.py: 2.10 has none, 2.11 has it).
const skipsSince = 11

// fingerprint guesses the torch release that wrote the file from the keys it has, and from
// those it lacks where every release after some one writes them.
func (ev *evidence) fingerprint(s *snapshot.Snapshot) snapshot.Writer {
	w := ev.release(s)
	w.Backend = ev.backend
	if name := map[string]string{snapshot.XPU: "XPU", snapshot.HIP: "ROCm"}[ev.backend]; name != "" && w.Text != "" {
		w.Text += ", " + name
	}
	return w
}

func (ev *evidence) release(s *snapshot.Snapshot) snapshot.Writer {
	if s.Partial != nil {
		return snapshot.Writer{} // the keys that would tell may be in the part that is missing
	}
	if ev.backend == snapshot.NPU {
		return snapshot.Writer{Text: "torch_npu"}
	}
	if ev.category && !ev.timed() {
		return snapshot.Writer{Text: "2.1 or later, from a profile"}
	}
	if s.Shape == snapshot.ShapeList {
		switch {
		case ev.expandable:
			return snapshot.Writer{Text: "2.1 or later, memory_snapshot()"}
		case ev.history:
			return snapshot.Writer{Text: "1.13", Newest: 113}
		case ev.stream:
			return snapshot.Writer{Text: "1.13 or earlier", Newest: 113}
		}
		return snapshot.Writer{Text: "1.4 to 1.12", Newest: 112}
	}
	if len(s.Segments) > 0 && !ev.expandable && (ev.history || !ev.timed() && !s.Settings.Present) {
		return snapshot.Writer{Text: "2.0", Newest: 200}
	}
	// In releases 2.x: the least that has all the keys, the last that lacks all the others.
	lo, hi := 0, newest
	events := ev.events.Events > 0
	settings := s.Settings.Present
	for _, key := range []struct {
		since       int
		has, always bool // is in this file; is in every such file since that release
	}{
		{1, ev.expandable, false},
		{2, ev.timed(), events},
		{3, settings, true},
		{5, s.HasAnnotations, false},
		{8, ev.compile, events},
		{9, ev.streamReuse, settings},
		{10, ev.events.Any&snapshot.EventHasMetadata != 0, events},
		{11, ev.forward, false},
		{12, ev.pool, events},
		{13, ev.pinnedCache, settings},
		{14, s.HasHostSegments || s.HostTraces != nil, true},
		{14, ev.events.Count[snapshot.Annotate] > 0, false},
	} {
		switch {
		case key.has:
			lo = max(lo, key.since)
		case key.always:
			hi = min(hi, key.since-1)
		}
	}
	var w snapshot.Writer
	switch {
	case lo > hi:
		w.Text = fmt.Sprintf("2.%d or later, edited", min(lo, hi))
	case lo == hi:
		w = snapshot.Writer{Text: fmt.Sprintf("2.%d", lo), Newest: 200 + lo}
	case hi == newest:
		w.Text = fmt.Sprintf("2.%d or later", lo)
	default:
		w = snapshot.Writer{Text: fmt.Sprintf("2.%d to 2.%d", lo, hi), Newest: 200 + hi}
	}
	w.Skips = max(lo, hi) >= skipsSince
	return w
}
