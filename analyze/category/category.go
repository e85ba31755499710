// Package category says what memory is for: parameters, gradients, optimizer state, and so on.
//
// A snapshot does not record it, so every category is an inference from two things: the stack
// that allocated a block (inside an optimizer, inside a module's forward, in the autograd
// engine's own thread, which has no Python frames) and how long the block lived (to the end of
// the backward pass, past the step, to the end). Each comes with a confidence, and what neither
// tells stays unknown: blocks from before the trace without a stack, for one.
//
//	parameter        made by Module.to, a constructor or a checkpoint, and kept
//	optimizer state  allocated inside an optimizer, and alive after the step
//	gradient         allocated by the backward pass: those of parameters outlive it, those of
//	                 activations do not, and have a low confidence; of the program's own code
//	                 in it (autograd.Function) those of parameters alone
//	autograd saved   allocated in forward, and alive while backward runs
//	activation       allocated in forward, and not (only inference, or recomputed)
//	input            allocated by the program's own code before the step's forward pass
//	temporary        freed soon, or within the optimizer, or backward code of the program's
//	                 own, that made it
//	workspace        scratch memory of cuBLAS, cuBLASLt and cuDNN
//	kv cache         key-value caches of generation: of transformers, and of inference servers
//	communication    buffers of torch.distributed
//	other            the program's own code, none of the above
//
// Rules of the user's, patterns over frames, come before all of it.
package category

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Category is what a block is for.
type Category uint8

const (
	Unknown Category = iota
	Parameter
	Gradient
	OptimizerState
	AutogradSaved
	Activation
	Input
	Temporary
	Workspace
	Communication
	KVCache
	Other
	numCategories
)

var names = [numCategories]string{
	"unknown", "parameter", "gradient", "optimizer state", "autograd saved", "activation", "input",
	"temporary", "workspace", "communication", "kv cache", "other",
}

func (c Category) String() string { return names[c] }

// MarshalText is String.
func (c Category) MarshalText() ([]byte, error) { return []byte(names[c]), nil }

// Parse gives the category of a name, false for none.
func Parse(name string) (Category, bool) {
	i := slices.Index(names[:], name)
	return Category(max(i, 0)), i >= 0
}

// All lists the categories, Unknown first; each is its own index.
func All() []Category {
	var out []Category
	for c := range numCategories {
		out = append(out, c)
	}
	return out
}

// Confidence says how far a category can be trusted.
type Confidence uint8

const (
	None   Confidence = iota // of Unknown
	Low                      // a hint
	Medium                   // a pattern that seldom misleads
	High                     // the stack says so, or a rule of the user's
)

func (c Confidence) String() string { return [...]string{"none", "low", "medium", "high"}[c] }

// Table has the category of every life of one device.
type Table struct {
	of     []verdict
	hopper bool
}

type verdict struct {
	category   Category
	confidence Confidence
}

// Of gives the category of a row of Timeline.Lives.
func (t *Table) Of(row int32) (Category, Confidence) { return t.of[row].category, t.of[row].confidence }

// Sum is the live memory of one category.
type Sum struct {
	Category Category `json:"category"`
	attribution.Sum
	Trust  [High + 1]int64 `json:"-"` // rounded bytes by confidence
	Stacks []Source        `json:"-"` // recorded stacks that it comes from, most bytes first
}

// Source is a stack that allocated memory of one category.
type Source struct {
	Stack snapshot.StackID
	Bytes int64 // rounded
}

// Site is the site that allocated most, by all of its stacks, and how much; "" where that is not recorded.
func (s *Sum) Site(snap *snapshot.Snapshot) (most string, bytes int64) {
	sites := map[string]int64{}
	for _, from := range s.Stacks {
		sites[attribution.Site(snap, from.Stack)] += from.Bytes
	}
	delete(sites, "")
	for site, n := range sites {
		if n > bytes || n == bytes && site < most {
			most, bytes = site, n
		}
	}
	return most, bytes
}

// Sums adds up the live blocks of a state, most bytes first. The sums close to the state's
// active bytes.
func (t *Table) Sums(tl *timeline.Timeline, st *timeline.State) []Sum {
	var all [numCategories]Sum
	for _, g := range attribution.GroupBy(tl, st, func(_ int, row int32) verdict { return t.of[row] }) {
		s := &all[g.Key.category]
		s.Category = g.Key.category
		s.Add(g.Sum)
		s.Trust[g.Key.confidence] += g.Rounded
	}
	type source struct {
		category Category
		stack    snapshot.StackID
	}
	sources := attribution.GroupBy(tl, st, func(_ int, row int32) source {
		return source{t.of[row].category, tl.Lives[row].Stack}
	})
	sorting.By(sources, func(a, b attribution.Keyed[source]) int {
		return cmp.Or(cmp.Compare(b.Rounded, a.Rounded), cmp.Compare(a.Key.stack, b.Key.stack))
	})
	for _, g := range sources {
		if s := &all[g.Key.category]; g.Key.stack > snapshot.EmptyStack {
			s.Stacks = append(s.Stacks, Source{g.Key.stack, g.Rounded})
		}
	}
	out := slices.DeleteFunc(all[:], func(s Sum) bool { return s.Count == 0 })
	sorting.Stable(out, func(a, b Sum) int { return cmp.Compare(b.Rounded, a.Rounded) })
	return out
}

// Namer gives what names the category of a row of Timeline.Lives, empty when it is unknown. It looks
// at nothing before the first call.
func Namer(s *snapshot.Snapshot, tl *timeline.Timeline, rules []Rule) func(row int32) string {
	table := sync.OnceValue(func() *Table {
		found := steps.Find(s, tl)
		return Find(s, tl, &found, rules)
	})
	return func(row int32) string {
		if c, _ := table().Of(row); c != Unknown {
			return c.String()
		}
		return ""
	}
}

// Find sorts every life of a device into a category.
func Find(s *snapshot.Snapshot, tl *timeline.Timeline, st *steps.Result, rules []Rule) *Table {
	f := newFinder(s, tl, st, rules)
	t := &Table{of: make([]verdict, len(tl.Lives))}
	for i := range tl.Lives {
		f.advance(tl.Lives[i].Born)
		t.of[i] = f.judge(&tl.Lives[i])
		t.hopper = t.hopper || t.of[i].category == Workspace && tl.Lives[i].Requested == frames.HopperWorkspaceSize
	}
	return t
}

// Hopper reports whether there is a workspace as large as on that.
func (t *Table) Hopper() bool { return t.hopper }

// Sample is what the active memory is for right after Event, the one of the events First to
// Last after which most is active: peaks are never lost between samples.
type Sample struct {
	First, Last, Event int
	Bytes              [numCategories]int64 // rounded bytes by category; sums to the active bytes
}

// Over samples a device up to n times, evenly spread over its trace.
func (t *Table) Over(tl *timeline.Timeline, n int) []Sample {
	events := tl.Trace.Len()
	out := make([]Sample, min(n, events))
	if len(out) == 0 {
		return nil
	}
	active := tl.ActiveLevels()
	for k := range out {
		s := &out[k]
		s.First, s.Last = k*events/len(out), (k+1)*events/len(out)-1
		_, s.Event = active.Highest(s.First, s.Last)
	}
	// A life takes part in a run of samples: add it to the first and take it off after the last.
	first := 0 // for a life; they come in order of birth
	for i := range tl.Lives {
		l := &tl.Lives[i]
		c := t.of[i].category
		for first < len(out) && out[first].Event < int(l.Born) {
			first++
		}
		if first == len(out) {
			break
		}
		if l.Freed >= 0 && int(l.Freed) <= out[first].Event {
			continue // as most: it was there between two samples
		}
		out[first].Bytes[c] += l.Rounded
		if l.Freed >= 0 {
			rest := out[first+1:]
			if k := sort.Search(len(rest), func(k int) bool { return rest[k].Event >= int(l.Freed) }); k < len(rest) {
				rest[k].Bytes[c] -= l.Rounded
			}
		}
	}
	for k := 1; k < len(out); k++ {
		for c := range out[k].Bytes {
			out[k].Bytes[c] += out[k-1].Bytes[c]
		}
	}
	return out
}
