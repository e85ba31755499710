package export

import (
	"cmp"
	"context"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// device is one with what is asked of its allocations.
type device struct {
	*analyze.Device
	s       *snapshot.Snapshot
	codes   *attribution.Codes
	history bool   // HasHistory, which may look through all events
	peak    int    // event, -1 for the start
	oom     int    // the last failure, -1 for none
	leaked  []bool // by row of Lives: left behind by a loop
}

func newDevice(s *snapshot.Snapshot, d *analyze.Device) *device {
	t := d.Timeline
	out := &device{Device: d, s: s, codes: attribution.NewCodes(s, t), history: t.HasHistory(),
		peak: t.PeakActive.Event, oom: -1, leaked: make([]bool, len(t.Lives))}
	if n := len(t.OOMs); n > 0 {
		out.oom = t.OOMs[n-1].Event
	}
	for i := range d.Growth {
		for row := range d.Growth[i].Rows() {
			out.leaked[row] = true
		}
	}
	return out
}

// at reports whether a row of Lives counts at a moment. Without a history there is no peak.
func (d *device) at(m Moment, row int32) bool {
	l := &d.Timeline.Lives[row]
	switch m {
	case Peak:
		return d.history && l.LiveAfter(d.peak)
	case OOM:
		return d.oom >= 0 && l.LiveAfter(d.oom)
	case End:
		return l.LiveAfter(d.Timeline.Trace.Len() - 1)
	case Allocated:
		return l.Born >= 0
	case Leaked:
		return d.leaked[row]
	}
	return false
}

// home is where blocks lie, as far as samples tell it apart.
type home struct {
	known  bool // that it lies in a segment of the file
	stream snapshot.StreamID
	pool   snapshot.PoolID
}

const numMoments = 5

// group are allocations that a profile does not tell apart.
type group struct {
	code attribution.Code
	use  category.Category
	home home
	step int // -1 for none
	sums [numMoments]attribution.Sum
}

// entry is an allocation with what it is grouped by.
type entry struct {
	code, home, step, row int32
	use                   category.Category
}

// groups calls each with the allocations that count at any moment, summed up by all that a profile tells, and in an
// order that depends on nothing but the file.
func (d *device) groups(ctx context.Context, each func(*group) error) error {
	var (
		list           []entry
		codes          []attribution.Code
		homes          []home
		moments        = Moments()
		codeOf, homeOf = map[attribution.Code]int32{}, map[home]int32{}
	)
	for row, in := range d.Timeline.AllHomes() {
		l := &d.Timeline.Lives[row]
		if row%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e := entry{row: row, step: -1}
		if l.Born >= 0 {
			e.step = int32(d.Steps.At(int(l.Born)))
		}
		e.use, _ = d.Categories.Of(row)
		e.code, codes = intern(codeOf, codes, d.codes.Of(row))
		e.home, homes = intern(homeOf, homes, home{in.Size > 0, in.Stream, in.Pool})
		list = append(list, e)
	}
	same := func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.use, b.use), cmp.Compare(a.home, b.home), cmp.Compare(a.step, b.step))
	}
	sorting.By(list, func(a, b entry) int { return cmp.Or(same(a, b), cmp.Compare(a.row, b.row)) })
	for from := 0; from < len(list); {
		e := list[from]
		g := group{code: codes[e.code], use: e.use, home: homes[e.home], step: int(e.step)}
		for ; from < len(list) && same(list[from], e) == 0; from++ {
			row := list[from].row
			for i, m := range moments {
				if d.at(m, row) {
					g.sums[i].Add(attribution.SumOf(&d.Timeline.Lives[row]))
				}
			}
		}
		if g.sums != [numMoments]attribution.Sum{} {
			if err := each(&g); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// checkEvery is after how many rows a writer looks whether it is still wanted.
const checkEvery = 1 << 14

func intern[K comparable](index map[K]int32, list []K, v K) (int32, []K) {
	id, ok := index[v]
	if !ok {
		id = int32(len(list))
		index[v] = id
		list = append(list, v)
	}
	return id, list
}

// calls are the frames of a code, innermost first; what is said of code without any stands as one frame.
func (d *device) calls(code attribution.Code) []attribution.Frame {
	if list := d.codes.Frames(code); len(list) > 0 {
		return list
	}
	site, _, _ := d.codes.Names(code)
	return []attribution.Frame{{Name: site}}
}
