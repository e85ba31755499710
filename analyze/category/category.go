package category

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
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
	Other
	numCategories
)

var names = [numCategories]string{
	"unknown", "parameter", "gradient", "optimizer state", "autograd saved", "activation", "input",
	"temporary", "workspace", "communication", "other",
}

func (c Category) String() string { return names[c] }

// All lists the categories, Unknown first; each is its own index.
func All() []Category {
	out := make([]Category, numCategories)
	for i := range out {
		out[i] = Category(i)
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
	of []verdict
}

type verdict struct {
	category   Category
	confidence Confidence
}

// Of gives the category of a row of Timeline.Lives.
func (t *Table) Of(row int32) (Category, Confidence) { return t.of[row].category, t.of[row].confidence }

// Sum is the live memory of one category.
type Sum struct {
	Category  Category
	Count     int64
	Rounded   int64              // bytes taken in segments
	Requested int64              // bytes asked for
	Trust     [High + 1]int64    // rounded bytes by confidence
	Stacks    []snapshot.StackID // where most of it comes from, at most 3
	byStack   map[snapshot.StackID]int64
}

// Sums adds up the live blocks of a state, most bytes first. The sums close to the state's
// active bytes.
func (t *Table) Sums(tl *timeline.Timeline, st *timeline.State) []Sum {
	var all [numCategories]Sum
	add := func(row int32) {
		l, v := &tl.Lives[row], t.of[row]
		s := &all[v.category]
		if s.byStack == nil {
			s.byStack = map[snapshot.StackID]int64{}
		}
		s.Count++
		s.Rounded += l.Rounded
		s.Requested += l.Requested
		s.Trust[v.confidence] += l.Rounded
		s.byStack[l.Stack] += l.Rounded
	}
	for i := range st.Segments {
		for _, row := range st.Segments[i].Live {
			add(row)
		}
	}
	for _, row := range st.Outside {
		add(row)
	}
	var out []Sum
	for c := range all {
		if s := &all[c]; s.Count > 0 {
			s.Category = Category(c)
			s.Stacks = largest(s.byStack, 3)
			s.byStack = nil
			out = append(out, *s)
		}
	}
	slices.SortStableFunc(out, func(a, b Sum) int { return cmp.Compare(b.Rounded, a.Rounded) })
	return out
}

func largest(bytes map[snapshot.StackID]int64, n int) []snapshot.StackID {
	ids := make([]snapshot.StackID, 0, len(bytes))
	for id := range bytes {
		if id > snapshot.EmptyStack {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b snapshot.StackID) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), cmp.Compare(a, b))
	})
	return ids[:min(n, len(ids))]
}

// Find sorts every life of a device into a category.
func Find(s *snapshot.Snapshot, tl *timeline.Timeline, st *steps.Result, rules []Rule) *Table {
	f := newFinder(s, tl, st, rules)
	t := &Table{of: make([]verdict, len(tl.Lives))}
	for i := range tl.Lives {
		t.of[i] = f.judge(&tl.Lives[i])
	}
	return t
}
