// Package window reads a part of a trace, of files that may be larger than memory.
//
// A file is read twice, and of its events only those of the window are kept. The first pass surveys them all: which
// blocks and segments were there before the first, and which of them the final state still shows. The second goes
// forward from there, so that the state as the window begins is known, with the stacks and the rounded sizes of all
// blocks, and so is the state as it ends: it takes the place of the file's own. The rest of the events leads to that one,
// which shows whether the books balance, and corrects sizes (analyze/timeline/SPEC.md 4.5).
package window

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/load"
)

// seam is by how many microseconds times go back where a ring was resized, at least (analyze/timeline/SPEC.md 3.4).
const seam = 1000

// segmentEvents are those of segments that are no expandable ones.
const segmentEvents = 1<<snapshot.SegmentAlloc | 1<<snapshot.SegmentFree

// Error says why a file has no such window.
type Error struct{ msg string }

func (e *Error) Error() string { return e.msg }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Open reads the span of the snapshot at path that is asked for. The file must be one that can be read twice.
func Open(ctx context.Context, path string, opt load.Options, span Span) (*snapshot.Snapshot, error) {
	if opt.Partial {
		return nil, refuse("a damaged file is not read in part")
	}
	edges, err := span.edges()
	if err != nil {
		return nil, err
	}
	ctx, release := input.Keep(ctx)
	defer release()
	all := survey{wanted: [2]int{edges[0].event, edges[1].event}}
	var lists []int
	opt.Each, opt.Lists = all.event, &lists
	first, err := load.Open(ctx, path, opt)
	if err != nil {
		return nil, err
	}
	if err := all.check(first, lists); err != nil {
		return nil, err
	}
	limits, err := span.resolve(first, &all, lists, edges)
	if err != nil {
		return nil, err
	}
	c := cutter{lists: make([]*cut, len(all.lists))}
	for device, list := range lists {
		if list >= 0 {
			c.lists[list] = &cut{limits: limits[device], f: timeline.NewForward(first, &all.lists[list].Survey, device)}
		}
	}
	first.Annotations, first.Strings = nil, snapshot.Strings{} // which the second pass has anew
	opt.Each = c.event
	s, err := load.Open(ctx, path, opt)
	if err != nil {
		return nil, err
	}
	if c.strange || !slices.Equal(lists, *opt.Lists) {
		return nil, refuse("the file changed while it was read")
	}
	return s, c.finish(s, lists, &all, span, edges)
}

// survey is what the first pass finds, by list of events.
type survey struct {
	lists  []list
	wanted [2]int // events whose times are, -1 for none
}

type list struct {
	timeline.Survey
	times [2]int64 // of those events
	named []run    // by user_metadata
	last  snapshot.LabelID
}

// run is a stretch of events with one text.
type run struct {
	text        snapshot.StringID
	first, last int
}

// mostNamed bounds the runs that are kept.
const mostNamed = 1 << 20

func (v *survey) event(s *snapshot.Snapshot, at, i int, e *snapshot.Event) bool {
	for len(v.lists) <= at {
		v.lists = append(v.lists, list{Survey: *timeline.NewSurvey()})
	}
	l := &v.lists[at]
	l.Event(s, e)
	if e.Label != l.last || e.Label != 0 {
		l.name(s, i, e)
	}
	for k, event := range v.wanted {
		if event == i {
			l.times[k] = e.Time
		}
	}
	return false
}

// name notes the user_metadata of an event.
func (l *list) name(s *snapshot.Snapshot, i int, e *snapshot.Event) {
	l.last = e.Label
	text := s.Labels.Get(e.Label).UserMetadata
	if n := len(l.named); n > 0 && l.named[n-1].text == text {
		l.named[n-1].last = i
	} else if text != 0 && n < mostNamed {
		l.named = append(l.named, run{text, i, i})
	}
}

// check refuses what cannot be read in part.
func (v *survey) check(s *snapshot.Snapshot, lists []int) error {
	events := 0
	for device, at := range lists {
		if at < 0 {
			continue
		}
		l := &v.lists[at]
		events += l.Events
		has := func(a snapshot.Action) bool { return l.Seen&(1<<a) != 0 }
		switch {
		case l.Back >= seam:
			return refuse("the times of GPU %d go back by %s, since max_entries was changed while recording: only the whole "+
				"trace tells the order of its events", device, units.Micros(l.Back))
		case has(snapshot.FreeRequested) != has(snapshot.FreeCompleted),
			has(snapshot.FreeRequested) && !has(snapshot.Alloc):
			return incomplete(device)
		}
	}
	if events == 0 {
		return refuse("the file has no trace")
	}
	private := func(seg snapshot.Segment) bool { return seg.Pool != s.Segments[0].Pool }
	if n := len(s.Segments); n > 0 && s.Segments[0].Pool != (snapshot.PoolID{}) && !slices.ContainsFunc(s.Segments, private) {
		return refuse("all segments are of one private pool, and only the whole trace tells which events are")
	}
	return nil
}

// incomplete is about a trace that lacks kinds of events. What they would say follows from all the others.
func incomplete(device int) error {
	return refuse("the trace of GPU %d lacks kinds of events, as with skip_actions, an edited file or a ring of one event: "+
		"only the whole trace tells what is missing", device)
}

// trim leaves out the scopes that lie outside of the window in full. Without times all stay.
func trim(s *snapshot.Snapshot) {
	begin, end := int64(math.MaxInt64), int64(0)
	for _, t := range s.Traces {
		if n := t.Len(); n > 0 {
			begin, end = min(begin, t.Time(0)), max(end, t.Time(n-1))
		}
	}
	if end > 0 {
		s.Annotations = steps.Within(s.Annotations, begin, end)
	}
}

// cutter is the second pass.
type cutter struct {
	lists   []*cut // nil for those of no device
	strange bool
}

// cut is the window of one device.
type cut struct {
	limits
	f            *timeline.Forward
	n            int
	began, ended bool
}

func (c *cutter) event(_ *snapshot.Snapshot, at, i int, e *snapshot.Event) bool {
	if at >= len(c.lists) {
		c.strange = true
		return false
	}
	x := c.lists[at]
	if x == nil {
		return false
	}
	if !x.began && x.from.reached(i, e) {
		x.began = true
		x.f.Begin(i)
	}
	if x.began && !x.ended && x.to.passed(i, e) {
		x.ended = true
		x.f.End(i)
	}
	x.n++
	x.f.Event(i, e)
	return x.began && !x.ended
}

// finish puts the window into the snapshot of the second pass.
func (c *cutter) finish(s *snapshot.Snapshot, lists []int, all *survey, span Span, edges [2]edge) error {
	w := &snapshot.Window{From: span.From, To: span.To, Traces: make([]snapshot.WindowTrace, len(s.Traces))}
	kept, rest := 0, ""
	for device, list := range lists {
		if list < 0 {
			continue
		}
		x := c.lists[list]
		if x.n != all.lists[list].Events {
			return refuse("the file changed while it was read")
		}
		t := x.f.Finish(s)
		if t.Events != s.Traces[device].Len() {
			return refuse("the file changed while it was read")
		}
		if s.Writer.Skips && t.Outside+t.Overlaps > 0 && t.Seen&segmentEvents != segmentEvents {
			return incomplete(device)
		}
		w.Traces[device] = t
		kept += t.Events
		if t.Events < t.Of {
			if rest != "" {
				rest += "; "
			}
			rest += fmt.Sprintf("GPU %d: %s", device, timeline.WindowWords(&t))
		}
	}
	if kept == 0 {
		return refuse("no event lies between %s and %s; %s", edges[0].text, edges[1].text, extent(all.main(lists, span.Device)))
	}
	s.Window = w
	trim(s)
	if rest != "" {
		s.Missing = append(s.Missing, "all but a window of the trace ("+rest+"): peaks, growth and steps are those of the "+
			"window, and its events are numbered from 0. What was in memory as it begins and ends is rebuilt from the others")
	}
	if len(s.HostTraces) > 0 || s.HasHostSegments {
		s.HostTraces, s.HostSegments, s.HasHostSegments = nil, nil, false
		s.Missing = append(s.Missing, "pinned host memory, which no window shows")
	}
	return nil
}
