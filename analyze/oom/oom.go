// Package oom explains requests that failed, by what a snapshot recorded or by what the messages in a log
// say: what the memory was like, why the request was not served, and in which circumstances it would have
// been.
//
// Everything here is arithmetic on recorded or printed figures. A snapshot records neither the size of the
// device nor what others hold on it, nor a memory fraction that was set by a call; what follows
// from them is unknown then, and never guessed. What is known all the same:
//
//	total >= reserved + free                at every out-of-memory event
//	total >= reserved                       at every other event
//	elsewhere = total - reserved - free     other processes, and this one's memory outside PyTorch
//
// so that elsewhere grew when reserved + free is less than it was.
package oom

import (
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// Unknown is the value of byte counts that are not known.
const Unknown = -1

// Report is one request that failed. Sizes are in bytes.
type Report struct {
	Event int `json:"event"`
	finding.Refusal
	Stream   snapshot.StreamID  `json:"stream"`
	Before   timeline.Totals    `json:"before"` // before the allocator gave its cache back for this request
	After    timeline.Totals    `json:"after"`
	Released Released           `json:"released"`
	Ghosts   Ghosts             `json:"ghosts"`
	Cause    Cause              `json:"cause"`
	Answers  []Answer           `json:"would_fit"`
	Plan     fragmentation.Plan `json:"plan"` // fewest blocks without which it would have been served

	site string // of the request
}

// Released is what went back to the device inside the request.
type Released struct {
	Segments   int   `json:"segments"`
	Bytes      int64 `json:"bytes"`
	FirstEvent int   `json:"first_event"` // -1 for none
	LastEvent  int   `json:"last_event"`
}

// Ghosts are the live blocks that a loop leaves behind, see package ghost.
type Ghosts struct {
	Blocks   int64 `json:"blocks"`
	Bytes    int64 `json:"bytes"`
	Returned int64 `json:"returned"` // whole segments without them
	Largest  int64 `json:"largest"`  // largest free piece without them
	Top      int   `json:"-"`        // the first of Evidence.Growth that counts
	PerLap   int64 `json:"-"`        // the most that a lap of one such loop leaves
	Models   int64 `json:"-"`        // bytes of models that pile up, those too that the failure itself freed
	Remade   bool  `json:"-"`        // the request is for the next, larger one of a tensor that is made anew each time
}

// Evidence is what a report is made from.
type Evidence struct {
	Timeline *timeline.Timeline
	State    *timeline.State // at the event
	Free     *fragmentation.Report
	Growth   []ghost.Growth
	WhatIf   *whatif.Answer // nil when nothing was replayed
	Total    int64          // memory of the device, 0 for unknown
}

// Explain reports on the out-of-memory event at which the evidence was taken.
func Explain(s *snapshot.Snapshot, oom timeline.OOMEvent, e *Evidence) *Report {
	conf := allocator.RecordedIn(s).Conf
	r := &Report{
		site: attribution.Site(s, oom.Stack), Event: oom.Event, Stream: e.Free.Stream, After: oom.After, Before: oom.After,
		Released: Released{FirstEvent: -1, LastEvent: -1},
		Refusal: finding.Refusal{
			Requested: units.Size(oom.Requested), Segment: units.Size(conf.SegmentSize(max(oom.Requested, 0))),
			DeviceFree: units.Size(oom.DeviceFree), LargestUsable: units.Size(e.Free.LargestUsable),
			Servable: units.Size(e.Free.Servable(oom.DeviceFree)), DeviceTotal: Unknown, Elsewhere: Unknown,
			Fraction: conf.Fraction,
		},
	}
	r.burst(e.Timeline)
	r.bounds(e)
	r.ghosts(s, e)
	r.Cause = r.figures(e).Cause()
	if r.Cause == Fragmentation && Slight(e.pieces(), r.After.Reserved) && inVain(e.WhatIf) {
		r.Cause = Capacity // every program that fills a device has as much in pieces
	}
	if pieces := e.pieces(); r.Cause == Joined && (pieces*20 < r.After.Reserved || inVain(e.WhatIf)) {
		r.Cause = Capacity // the device is full, but for little or too fine pieces
	}
	r.answer(e)
	r.plan(e)
	return r
}

// limited reports whether something that the file does not tell refused what the device had: a memory fraction that the
// program set by a call, a container, or another process for a moment.
func (r *Report) limited() bool { return r.Cause == Room || r.Cause == Limit || r.Cause == Fraction }

// inVain reports whether the replay proves that the run fails under every setting.
func inVain(a *whatif.Answer) bool {
	return a != nil && a.Accuracy.Trusted && len(a.Rows) > 1 &&
		!slices.ContainsFunc(a.Rows, func(row whatif.Row) bool { return !row.Fails() })
}

// burst finds what was given back right before the failure.
func (r *Report) burst(t *timeline.Timeline) {
	for _, y := range t.Retries {
		if y.LastEvent != r.Event-1 {
			continue
		}
		r.Released = Released{y.LastEvent - y.FirstEvent + 1, y.Released, y.FirstEvent, y.LastEvent}
		r.Before = t.StateAt(y.FirstEvent - 1).Totals
	}
}

// bounds says what is known of the device.
func (r *Report) bounds(e *Evidence) {
	t := e.Timeline
	most := t.PeakReserved.Bytes
	for _, o := range t.OOMs {
		if o.Event <= r.Event {
			most = max(most, o.After.Reserved+max(o.DeviceFree, 0))
		}
	}
	r.AtLeast = units.Size(most)
	if r.DeviceFree < 0 {
		return
	}
	here := units.Size(r.After.Reserved) + r.DeviceFree
	if t.PeakReserved.Event <= r.Event {
		r.Grown = r.AtLeast - here
	}
	if e.Total >= most && e.Total > 0 {
		r.DeviceTotal = units.Size(e.Total)
		r.Elsewhere = r.DeviceTotal - here
	}
}

// ghosts takes away what loops leave behind and looks at the holes again.
func (r *Report) ghosts(s *snapshot.Snapshot, e *Evidence) {
	grows, remade := map[snapshot.StackID]bool{}, map[snapshot.StackID]bool{}
	for i := range e.Growth {
		if g := &e.Growth[i]; g.LikeFill() || g.LikeCache() && g.Bytes*2 < r.After.Active {
			continue // no more than a hint
		}
		if len(grows) == 0 {
			r.Ghosts.Top = i
		}
		g := &e.Growth[i]
		rebuilt := g.Cause.Kind == ghost.Rebuilt && r.site != "" && attribution.Site(s, g.Stack) == r.site
		r.Ghosts.Remade = r.Ghosts.Remade || rebuilt
		r.Ghosts.PerLap = max(r.Ghosts.PerLap, g.PerLap)
		if g.Cause.Kind == ghost.Models && g.Horizon == r.Event {
			r.Ghosts.Models += g.Bytes
		}
		for _, id := range g.Stacks {
			grows[id] = true
			remade[id] = rebuilt
		}
	}
	if len(grows) == 0 {
		return
	}
	t := e.Timeline
	without := fragmentation.Without(t, e.State, func(row int32) bool {
		l := &t.Lives[row]
		gone := grows[l.Stack] && l.Born >= 0 && (remade[l.Stack] || l.Freed < 0 && l.FreeRequested == -1)
		if gone {
			r.Ghosts.Blocks++
			r.Ghosts.Bytes += l.Rounded
		}
		return gone
	})
	for i := range without.Segments {
		if seg := &without.Segments[i]; seg.Pool == (snapshot.PoolID{}) && len(seg.Live) == 0 {
			r.Ghosts.Returned += seg.Size
		}
	}
	for _, h := range fragmentation.FindHoles(t, without, r.Stream) {
		if seg := &without.Segments[h.Segment]; seg.Pool == (snapshot.PoolID{}) && seg.Stream == r.Stream {
			r.Ghosts.Largest = max(r.Ghosts.Largest, h.Size)
		}
	}
}

// plan looks for the fewest blocks to free, as whole segments or inside one.
func (r *Report) plan(e *Evidence) {
	switch r.Cause {
	case Absurd, TooLarge, Unsplit, Fraction, Room:
		return
	}
	t, st := e.Timeline, e.State
	free := max(int64(r.DeviceFree), 0) / allocator.RoundLarge * allocator.RoundLarge
	r.Plan = fragmentation.Free(t, st, int64(r.Segment)-free)
	if p := fragmentation.Clear(t, st, r.Stream, int64(r.Requested)); p.Blocks > 0 &&
		(r.Plan.Blocks == 0 || p.Blocks < r.Plan.Blocks) {
		p.Fewest = r.Plan.Blocks == 0 || r.Plan.Fewest
		r.Plan = p
	}
}
