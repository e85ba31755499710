// Package footprint is the live memory of one device at one moment, by who allocated it and what for, without the
// snapshot that it was taken from: small enough to keep of many runs, and to compare (analyze/diff).
package footprint

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/internal/trend"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Footprint is the live memory of one device at one moment. Its groups sum up to the moment's active bytes.
type Footprint struct {
	Name   string          `json:"file"`
	Device int             `json:"device"` // ordinal
	At     string          `json:"at"`     // the moment as it was asked for: "peak", "end", "oom", "step:3", ...
	When   string          `json:"when"`   // in words: "at the peak of active bytes"
	Totals timeline.Totals `json:"totals"` // at that moment
	Peaks  timeline.Peaks  `json:"peaks"`
	// Bounds are those of Peaks: a damaged file, or one without some kinds of events, may have had more.
	Bounds timeline.Bounds `json:"-"`
	// HasHistory is false where the file has no trace to tell a peak by.
	HasHistory bool `json:"has_history"`
	// Late says that memory was allocated before the trace began: a ring that wrapped, or recording that began late.
	Late bool `json:"late"`
	// Recomputes says that the program makes activations anew in its backward passes, wherever in the trace.
	Recomputes bool                `json:"recomputes"`
	Writer     snapshot.Writer     `json:"-"`
	Settings   snapshot.Settings   `json:"-"`
	Unit       string              `json:"unit"` // what Steps are: "iteration of train (train.py:31)"
	Steps      []Step              `json:"steps"`
	Frames     []attribution.Frame `json:"-"`
	Stacks     [][]int32           `json:"-"` // rows of Frames, innermost first
	Groups     []Group             `json:"-"`
	Top        int                 `json:"-"` // of Groups, that of the block which was allocated at the moment itself; -1 none
	// Course is nil where it was not asked for, and without a trace.
	Course *Course `json:"-"`
}

// Step is one step of the program.
type Step struct {
	Peak   int64 `json:"peak"`   // highest active bytes in it
	Growth int64 `json:"growth"` // active bytes at its end less those at its start
}

// Group is live memory that one stack allocated for one purpose.
type Group struct {
	Stack  int32  // of Footprint.Stacks, -1 without frames
	Site   string // as attribution.Site has it, or why there is none
	Module string // the path of module calls, "" outside of any
	Known  bool   // that Site is code
	Use    category.Category
	attribution.Sum
	Sizes []Size // of its blocks, smallest first
	top   bool   // has the block that was allocated at the moment
}

// Size is how many blocks of a group asked for so many bytes, and how many each got.
type Size struct{ Requested, Rounded, Count int64 }

// Subject is what a footprint is taken of.
type Subject struct {
	Name     string
	Snapshot *snapshot.Snapshot
	Timeline *timeline.Timeline
	Uses     *category.Table
	Steps    *steps.Result
	// Samples is about how many the footprint's course has; 0 for none.
	Samples int
}

// Usual is the word for the moment of a device that is looked at unless told otherwise: its peak, or the end where the
// file has no history to tell a peak by.
func Usual(hasHistory bool) string {
	if hasHistory {
		return "peak"
	}
	return "end"
}

// Take gives the footprint of a device at the moment of a word, as attribution.Locate has them and fails for them. At the
// usual one it does not fail.
func Take(q *Subject, at string) (*Footprint, error) {
	t := q.Timeline
	m, err := attribution.Locate(q.Snapshot, t, at)
	if err != nil {
		return nil, err
	}
	st := t.StateAt(m.Event)
	f := &Footprint{
		Name: q.Name, Device: t.Device, When: m.Name, At: at, Totals: st.Totals, Peaks: t.Peaks,
		HasHistory: t.HasHistory(), Late: t.Checks.PreTraceBlocks > 0 && t.Trace.Len() > 0,
		Recomputes: frames.Recomputes(q.Snapshot),
		Writer:     q.Snapshot.Writer, Settings: q.Snapshot.Settings, Unit: q.Steps.Unit,
	}
	f.Bounds = t.Recording.Told().Peak
	if q.Snapshot.Partial != nil {
		f.Bounds.AtLeast()
	}
	for _, s := range q.Steps.Steps {
		f.Steps = append(f.Steps, Step{s.Peak, s.Growth})
	}
	known := f.group(q, st)
	if q.Samples > 0 {
		f.Course = f.follow(q, m.Event, q.Samples, known)
	}
	f.Top = slices.IndexFunc(f.Groups, func(g Group) bool { return g.top })
	return f, nil
}

// key tells the groups of a footprint apart.
type key struct {
	place attribution.Code
	use   category.Category
}

// shown is what a group shows of its key. Stacks that differ in frames that nobody is shown are one.
type shown struct {
	stack        int32 // of Footprint.Stacks, -1 for none
	site, module string
	use          category.Category
}

// grouping tells to which group a row of the timeline belongs.
type grouping struct {
	codes  *attribution.Codes
	of     map[key]int // places in Footprint.Groups
	same   map[shown]int
	tables *tables
}

// tables are the frames and stacks that a footprint has by now.
type tables struct {
	frames map[attribution.Frame]int32
	stacks map[string]int32 // by their rows
}

func newTables() *tables { return &tables{map[attribution.Frame]int32{}, map[string]int32{}} }

func (g *grouping) key(q *Subject, row int32) key {
	use, _ := q.Uses.Of(row)
	return key{g.codes.Of(row), use}
}

// group finds the groups.
func (f *Footprint) group(q *Subject, st *timeline.State) *grouping {
	t := q.Timeline
	all := &grouping{attribution.NewCodes(q.Snapshot, t), map[key]int{}, map[shown]int{}, newTables()}
	for _, row := range st.Rows() {
		k := all.key(q, row)
		g, ok := all.of[k]
		if !ok {
			site, module, isCode := all.codes.Names(k.place)
			s := shown{f.addStack(all.tables, all.codes.Frames(k.place)), site, module, k.use}
			if g, ok = all.same[s]; !ok {
				g = len(f.Groups)
				all.same[s] = g
				f.Groups = append(f.Groups, Group{Stack: s.stack, Site: site, Module: module, Known: isCode, Use: k.use})
			}
			all.of[k] = g
		}
		l := &t.Lives[row]
		f.Groups[g].Sum.Add(attribution.SumOf(l))
		f.Groups[g].Sizes = append(f.Groups[g].Sizes, Size{l.Requested, l.Rounded, 1})
		f.Groups[g].top = f.Groups[g].top || l.Born >= 0 && int(l.Born) == st.Event
	}
	for i := range f.Groups {
		f.Groups[i].Sizes = counted(f.Groups[i].Sizes)
	}
	order := make([]int, len(f.Groups))
	for i := range order {
		order[i] = i
	}
	sorting.Stable(order, func(a, b int) int { return cmp.Compare(f.Groups[b].Rounded, f.Groups[a].Rounded) })
	sorted, place := slices.Clone(f.Groups), make([]int, len(order))
	for to, from := range order {
		sorted[to], place[from] = f.Groups[from], to
	}
	f.Groups = sorted
	for k, g := range all.of {
		all.of[k] = place[g]
	}
	for s, g := range all.same {
		all.same[s] = place[g]
	}
	return all
}

// counted sorts sizes, and makes one of equal ones.
func counted(sizes []Size) []Size {
	sorting.By(sizes, func(a, b Size) int {
		return cmp.Or(cmp.Compare(a.Requested, b.Requested), cmp.Compare(a.Rounded, b.Rounded))
	})
	n := 0
	for _, s := range sizes {
		if n > 0 && sizes[n-1].Requested == s.Requested && sizes[n-1].Rounded == s.Rounded {
			sizes[n-1].Count += s.Count
			continue
		}
		sizes[n] = s
		n++
	}
	return slices.Clone(sizes[:n])
}

// addStack gives the row of a stack, -1 for one without frames.
func (f *Footprint) addStack(known *tables, calls []attribution.Frame) int32 {
	if len(calls) == 0 {
		return -1
	}
	rows := make([]int32, len(calls))
	for i, call := range calls {
		row, ok := known.frames[call]
		if !ok {
			row = int32(len(f.Frames))
			known.frames[call] = row
			f.Frames = append(f.Frames, call)
		}
		rows[i] = row
	}
	key := keyOf(rows)
	at, ok := known.stacks[key]
	if !ok {
		at = int32(len(f.Stacks))
		known.stacks[key] = at
		f.Stacks = append(f.Stacks, rows)
	}
	return at
}

// keyOf is the key of a stack by its rows.
func keyOf(rows []int32) string {
	key := make([]byte, 0, 4*len(rows))
	for _, row := range rows {
		key = binary.LittleEndian.AppendUint32(key, uint32(row))
	}
	return string(key)
}

// find gives the group of a key that no live row has, false for none.
func (g *grouping) find(k key) (place int, ok bool) {
	calls := g.codes.Frames(k.place)
	s := shown{stack: -1, use: k.use}
	if len(calls) > 0 {
		rows := make([]int32, len(calls))
		for i, call := range calls {
			if rows[i], ok = g.tables.frames[call]; !ok {
				return 0, false
			}
		}
		if s.stack, ok = g.tables.stacks[keyOf(rows)]; !ok {
			return 0, false
		}
	}
	s.site, s.module, _ = g.codes.Names(k.place)
	place, ok = g.same[s]
	return place, ok
}

// Growth is the median of what the steps leave behind, in active bytes, those of the first half left out, in which a
// program still warms up. It is unknown where there are fewer than four steps.
func (f *Footprint) Growth() (bytes int64, known bool) {
	if len(f.Steps) < 4 {
		return 0, false
	}
	return MedianGrowth(f.Steps[len(f.Steps)/2:]), true
}

// MedianGrowth is the median of what steps leave behind, in active bytes: the upper one of two, 0 of none.
func MedianGrowth(list []Step) int64 {
	all := make([]int64, len(list))
	for i, s := range list {
		all[i] = s.Growth
	}
	return trend.Median(all)
}

// Place is the frame that a stack stands for, nil for none: the innermost of the code that matters most.
func (f *Footprint) Place(stack int32) (best *attribution.Frame) {
	if stack < 0 {
		return nil
	}
	for _, row := range f.Stacks[stack] {
		if v := &f.Frames[row]; best == nil || v.Origin > best.Origin {
			best = v
		}
	}
	return best
}

// MostGroups is how many groups of a footprint Cut keeps.
const MostGroups = 500

// leftOut is the site of the groups that stand for those that Cut did not keep.
var leftOut = fmt.Sprintf("(not among the %d largest)", MostGroups)

// IsCut reports whether f is what Cut left of a footprint with more groups.
func (f *Footprint) IsCut() bool {
	return slices.ContainsFunc(f.Groups, func(g Group) bool { return !g.Known && g.Site == leftOut })
}

// Compact is what a report keeps of a footprint: what Cut leaves, without the steps where there are too many.
func (f *Footprint) Compact() *Footprint {
	const mostSteps = 1000
	out := *f.Cut()
	if len(f.Steps) > mostSteps {
		out.Unit, out.Steps = "", nil
	}
	return &out
}

// Cut keeps the largest groups, and for each purpose one of all others, which has no stack. The groups sum up to the
// same. What is cut stays as it is. Courses are kept of the largest groups alone.
func (f *Footprint) Cut() *Footprint {
	if f.IsCut() {
		return f
	}
	out := *f
	if f.Course != nil {
		c := *f.Course
		c.Groups = c.Groups[:min(len(c.Groups), MostGroups)]
		out.Course = &c
	}
	out.Frames, out.Stacks, out.Groups, out.Top = nil, nil, nil, -1
	known := newTables()
	rest := map[category.Category]int{}
	for i, g := range f.Groups {
		if i >= MostGroups {
			at, ok := rest[g.Use]
			if !ok {
				at = len(out.Groups)
				rest[g.Use] = at
				out.Groups = append(out.Groups, Group{Stack: -1, Site: leftOut, Use: g.Use})
			}
			out.Groups[at].Sum.Add(g.Sum)
			continue
		}
		if g.Stack >= 0 {
			calls := make([]attribution.Frame, len(f.Stacks[g.Stack]))
			for k, row := range f.Stacks[g.Stack] {
				calls[k] = f.Frames[row]
			}
			g.Stack = out.addStack(known, calls)
		}
		if i == f.Top {
			out.Top = i
		}
		out.Groups = append(out.Groups, g)
	}
	for _, at := range rest {
		out.Groups[at].Sizes = means(&out.Groups[at].Sum)
	}
	return &out
}

// means are blocks of about the same size that sum up to those of a group.
func means(s *attribution.Sum) []Size {
	mean := Size{Requested: s.Requested / s.Count, Rounded: s.Rounded / s.Count}
	larger := s.Rounded - mean.Rounded*s.Count // so many have a byte more
	var out []Size
	for _, z := range []Size{{mean.Requested, mean.Rounded, s.Count - larger}, {mean.Requested, mean.Rounded + 1, larger}} {
		if z.Count > 0 {
			out = append(out, z)
		}
	}
	return out
}
