// Package ghost looks for memory that grows and is not given back: the trace of tensors
// that something forgotten still refers to.
//
// It works from the snapshot alone, so what it finds is an inference and is called one.
// The question is not "what is alive at the end" (weights are, and should be) but "what did
// each lap of the program's outermost loop add and never return". In steps:
//
//  1. Take the stacks with several allocations that were born inside the trace and live at
//     the horizon: the end, the last out-of-memory event, since what follows one is mostly
//     Python unwinding, or the last event before the model itself is freed. Parameters, buffers
//     of modules and optimizer state are made to stay: they count where a loop makes them set after set (models.go).
//     The pools of captured graphs are left out.
//  2. Between two births from one stack, find the innermost function that all allocations of
//     that thread in between have in common: the function that runs the loop. When it runs
//     inside a module's forward, a constructor or an optimizer, the loop is over layers or
//     parameters, and the two births belong to one lap. Otherwise a new lap began.
//  3. A stack grows when it left survivors in at least MinLaps laps, what it holds as laps end
//     rises with significance, and none of this is so: it stopped while its loop went on (a
//     cache that is full), it slows down (one that fills), it lost blocks as old as the
//     survivors are (a buffer of bounded length, a history that is reset, an estimate of an
//     average), or blocks of the same size that were there before died in its place.
//  4. A stack that leaves one block grows, too, when each of its blocks was larger than the one before by another
//     tensor, and the one before was freed right after: one tensor, rebuilt as torch.cat does.
//  5. Stacks that grow in the same loop are one finding: a retained graph has dozens. What
//     they have in common suggests what keeps them.
//
// Precision goes before recall: what only might be a leak is not accused. Whether growth slows down is told by an exact
// test (rate.go), which finds what is kept regularly, however few laps there are. What comes by chance it finds, and a
// cache whose keys come by chance it takes for a leak, in so many of 100 traces of 8, 14, 20 and 40 laps (the rates of
// TestRate):
//
//	kept in each lap, in every second one, from the middle on   100 100 100 100
//	in bursts of 3 laps in 7                                    100 100 100 100
//	in bursts of 4 laps in 10                                    45  69  89 100
//	in half of the laps, by chance                               94  94  97  94
//	in a third of the laps, by chance                            95  88  90  94
//	cache of as many keys as laps                                78  73  67  35
//	cache of half as many keys                                   60  45  31   7
//	cache of a third as many keys                                 0  17  13   1
//	ever more rarely, down to nothing at the end                 47  29   9   2
//	until it is full, or in the first four laps only              0   0   0   0
//
// Where as few laps have left something as there, a verdict says that a cache would look the same (Early).
package ghost

import (
	"cmp"
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// MinLaps is the number of laps that must each have left survivors.
const MinLaps = 4

// Growth is memory that one loop adds to and does not return.
type Growth struct {
	Loop   snapshot.FrameID   `json:"-"`             // the function that runs the loop, at one of its lines
	Stacks []snapshot.StackID `json:"-"`             // what grows, most bytes first
	Stack  snapshot.StackID   `json:"-"`             // the largest of the site that has most of the bytes
	Laps   int                `json:"laps"`          // that left survivors, of the stack with most bytes
	Count  int64              `json:"count"`         // survivors
	Bytes  int64              `json:"bytes"`         // rounded bytes of the survivors
	PerLap int64              `json:"bytes_per_lap"` // median rounded bytes that a lap left, on average over the laps
	// Slope is the Theil-Sen slope of what the stacks hold as laps end, in rounded bytes per
	// lap of the stack with most bytes. Chance is the probability of such a rise without a
	// trend, by the test of Mann and Kendall, of the least certain of the three largest stacks.
	Slope  float64 `json:"slope"`
	Chance float64 `json:"chance"`
	// LapTime is the median time from one survivor's lap to the next in microseconds, 0 unknown.
	LapTime int64 `json:"lap_us"`
	// Every is the median number of steps from one lap that left survivors to the next, 0 when
	// the trace has no steps.
	Every int `json:"every_steps"`
	// Horizon is the event up to which memory was looked at, First and Last the births of the
	// first and the last survivor.
	First   int `json:"first_event"`
	Last    int `json:"last_event"`
	Horizon int `json:"horizon_event"`
	// Released says that the horizon is where the model itself was freed, and the survivors with it or later, as when
	// the function returns that ran everything.
	Released bool `json:"released"`
	// Over says that the loop ended before the horizon, and kept what it had.
	Over bool `json:"loop_over"`
	// OlderCount and OlderBytes are pre-trace blocks of the same stacks that live at the
	// horizon. Bytes has no part of them.
	OlderCount int64 `json:"older_count"`
	OlderBytes int64 `json:"older_bytes"`
	// Lifetimes are those of the stack with most bytes, by laps lived.
	Lifetimes []Lifetime `json:"lifetimes"`

	Regular    bool    `json:"-"` // laps left much the same
	FreedShare float64 `json:"-"` // share of the allocations since the first survivor that were freed
	InModule   bool    `json:"-"` // the survivors were made inside a module's forward
	Trains     bool    `json:"-"` // the trace has a backward pass or an optimizer
	Optimizes  bool    `json:"-"` // the trace has an optimizer
	Trained    bool    `json:"-"` // backward passes ran in most of the laps
	Even       bool    `json:"-"` // laps left something at a steady pace, as a cache does not that is filled by what is asked for
	Rounds     int     `json:"-"` // how often backward passes ran between one lap that left something and the next
	Events     []int   `json:"-"` // births of survivors of Stack, at most 8
	Starts     []int   `json:"-"` // of the laps that left survivors of Stacks[0], the birth of the first of these
	// Paces are the memory that comes in each lap, and what comes in far fewer of them, most
	// bytes first. One graph comes as a whole, so that several paces have several holders.
	Paces []Pace `json:"-"`

	Cause Cause `json:"-"`

	clock *clock
	group []*candidate  // of Stacks
	steps *steps.Result // nil before CountSteps
}

// Pace is memory of a growth that comes at a pace of its own.
type Pace struct {
	Stack  snapshot.StackID // with most bytes
	Laps   int              // that left survivors
	PerLap int64            // rounded bytes that such a lap left, by the medians of the stacks
}

// enough is how many laps must have left survivors before time tells a growth from a fill.
const enough = 16

// LikeUse reports whether memory that is kept on purpose would look the same, such as a buffer
// or a cache that is not full, or results that the program uses after its loop: nothing in the
// memory says that it was forgotten.
func (g *Growth) LikeUse() bool {
	return g.LikeCache() || !g.Cause.sure() && (g.Cause.Kind != Gradients || !g.Optimizes)
}

// LapsBefore is how many laps before the trace left the pre-trace blocks of the same stacks, if they left as many each.
func (g *Growth) LapsBefore() int { return int(g.OlderCount * int64(g.Laps) / max(g.Count, 1)) }

// Early reports whether there are too few laps to tell: most buffers take longer to fill.
func (g *Growth) Early() bool { return g.LikeUse() && g.Laps+g.LapsBefore() < enough }

// Stale reports whether it is what a model made while it trained, or each time that it is evaluated between: after the
// next step it is out of date, so that it is rarely kept on purpose. What comes now and then, as tables do for each new
// length of a sequence, may not depend on what is trained.
func (g *Growth) Stale() bool {
	trained := g.Rounds >= rounds && (g.Even || 2*g.Rounds <= g.Laps)
	return g.LikeUse() && g.InModule && trained && (g.Cause.Kind == Output || g.Cause.Kind == Captured)
}

// rounds is how often a model must have trained between laps that evaluate it, for what it made to be out of date.
const rounds = 2

// LikeFill reports whether a buffer that is being filled on purpose would look the same: next to
// nothing else is freed meanwhile.
func (g *Growth) LikeFill() bool { return g.FreedShare <= 0.05 }

// LikeCache reports whether a cache that grows on purpose would look the same: a few tensors from
// inside the model with each lap, and no training.
func (g *Growth) LikeCache() bool {
	return g.InModule && !g.Trains && len(g.Stacks) <= 3 && !(g.Cause.Kind == Graph && g.Cause.dense)
}

// Find returns the growths of one device, most bytes first. Where other memory than that in question
// tells what the program did meanwhile, only the stacks that of holds for may grow, all if it is nil.
// Those that have no code of the program, as in a thread of a loader, go by the laps of the main thread.
func Find(s *snapshot.Snapshot, t *timeline.Timeline, of func(snapshot.StackID) bool) []Growth {
	c := newCode(s)
	m := survey(s, t, int32(t.Trace.Len()-1))
	out := findAt(s, t, c, m, of)
	if n := len(t.OOMs); n > 0 {
		out = append(out, findAt(s, t, c, survey(s, t, int32(t.OOMs[n-1].Event)), of)...)
	} else if of == nil {
		if at := released(t, c, m); at > 0 {
			before := findAt(s, t, c, survey(s, t, at), nil)
			for i := range before {
				before[i].Released = true
			}
			out = append(out, before...)
		}
	}
	sorting.Stable(out, func(a, b Growth) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Stacks[0], b.Stacks[0]))
	})
	seen := map[place]bool{}
	return slices.DeleteFunc(out, func(g Growth) bool {
		key := place{functionOf(s, g.Loop), g.Cause.Kind == Rebuilt}
		again := seen[key]
		seen[key] = true
		return again
	})
}

// findAt looks at the memory that is live at the horizon of a census.
func findAt(s *snapshot.Snapshot, t *timeline.Timeline, c *code, m *census, of func(snapshot.StackID) bool) []Growth {
	horizon := m.horizon
	rows, rising := m.births(c, of), m.rising(c, of)
	if len(rows) == 0 && len(rising) == 0 {
		return nil
	}
	m.collect(rows, rising)
	models := map[snapshot.StackID][]int32{}
	for stack, of := range rows {
		if c.sort(stack)&ofModel != 0 {
			models[stack] = of
			delete(rows, stack)
		}
	}
	k := newClock(s, t, c, m, of)
	var found []*candidate
	sizes := m.liveSizes(c)
	for _, stack := range slices.Sorted(maps.Keys(rows)) {
		p := k.population(stack, rows[stack], horizon)
		if c.sort(stack)&nameless != 0 {
			p.beyond(t, sizes)
		}
		if cand := k.grows(p, horizon); cand != nil {
			found = append(found, cand)
		}
	}
	if len(found) > 0 {
		found = k.unreplaced(found, horizon)
	}
	for _, m := range k.models(models, rows, horizon) {
		found = slices.DeleteFunc(found, func(c *candidate) bool { return c.stack == m.stack })
		found = append(found, m)
	}
	out := k.join(append(found, k.rebuilt(rising, horizon)...), horizon)
	if slices.ContainsFunc(out, func(g Growth) bool { return g.Cause.Second && g.Cause.Pending }) {
		for i := range out { // losses that are computed with such gradients wait for the same backward pass
			c := &out[i].Cause
			c.Pending = c.Pending || c.Kind == Graph || c.Kind == Retained
		}
	}
	return out
}

// beyond leaves only survivors that cannot be the gradients of parameters: a parameter has one
// gradient of its size.
func (p *population) beyond(t *timeline.Timeline, parameters map[int64]int) {
	mine := map[int64]int{}
	for _, i := range p.kept {
		mine[t.Lives[p.rows[i]].Rounded]++
	}
	p.kept = slices.DeleteFunc(p.kept, func(i int) bool {
		size := t.Lives[p.rows[i]].Rounded
		return mine[size] <= parameters[size]
	})
}
