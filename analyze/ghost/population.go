package ghost

import (
	"math"
	"sort"

	"github.com/snapana/snapana/analyze/internal/trend"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// population is what one stack allocated up to the horizon: who was born in which lap, and who
// died when.
type population struct {
	stack snapshot.StackID
	rows  []int32 // of Lives, by birth
	lap   []int32 // of each row
	// starts are the births that began a lap.
	starts []int32
	loops  map[snapshot.FrameID]int // what ran the loop, and how often a lap began there
	kept   []int                    // places in rows of those that live at the horizon
}

// end is the event at which the program let go of a life, or none.
func end(l *timeline.Life, horizon int32) int32 {
	switch {
	case l.FreeRequested == timeline.PendingBefore:
		return -1
	case l.FreeRequested >= 0 && l.FreeRequested <= horizon:
		return l.FreeRequested
	case l.Freed >= 0 && l.Freed <= horizon:
		return l.Freed
	}
	return none
}

// none is later than any event.
const none = 1<<31 - 1

func (k *clock) population(stack snapshot.StackID, rows []int32, horizon int32) *population {
	p := &population{stack: stack, rows: rows, lap: make([]int32, len(rows)), loops: map[snapshot.FrameID]int{}}
	at := 0
	for i, row := range rows {
		l := &k.t.Lives[row]
		if i == 0 {
			p.starts = append(p.starts, l.Born)
		} else if f, ok := k.between(rows[i-1], row, &at); ok {
			p.starts = append(p.starts, l.Born)
			p.loops[f]++
		}
		p.lap[i] = int32(len(p.starts) - 1)
		if end(l, horizon) == none {
			p.kept = append(p.kept, i)
		}
	}
	return p
}

// lapAt is the lap that an event is in, -1 before the first.
func (p *population) lapAt(e int32) int32 {
	return int32(sort.Search(len(p.starts), func(i int) bool { return p.starts[i] > e })) - 1
}

// loop is the frame at which most laps began.
func (p *population) loop() snapshot.FrameID {
	var best snapshot.FrameID
	for f, n := range p.loops {
		if n > p.loops[best] || n == p.loops[best] && f < best {
			best = f
		}
	}
	return best
}

// left sums up what each lap left, for the laps that left something: rounded bytes, and the
// event of the first birth.
func (p *population) left(t *timeline.Timeline) (bytes []int64, births []int32) {
	last := int32(-1)
	for _, i := range p.kept {
		l := &t.Lives[p.rows[i]]
		if p.lap[i] != last {
			bytes, births, last = append(bytes, 0), append(births, l.Born), p.lap[i]
		}
		bytes[len(bytes)-1] += l.Rounded
	}
	return bytes, births
}

// levels is what of some rows of Lives is alive as each lap ends: rounded bytes and blocks.
func (p *population) levels(t *timeline.Timeline, rows []int32, horizon int32) (bytes, count []int64) {
	bytes, count = make([]int64, len(p.starts)), make([]int64, len(p.starts))
	for _, row := range rows {
		l := &t.Lives[row]
		born := max(p.lapAt(l.Born), 0)
		bytes[born] += l.Rounded
		count[born]++
		if e := end(l, horizon); e != none {
			died := max(p.lapAt(e), 0)
			bytes[died] -= l.Rounded
			count[died]--
		}
	}
	for i := 1; i < len(bytes); i++ {
		bytes[i] += bytes[i-1]
		count[i] += count[i-1]
	}
	return bytes, count
}

// Lifetime says how many allocations were alive some laps after their own had ended.
type Lifetime struct {
	Laps  int   `json:"laps"` // 0 is the end of their own lap
	Of    int64 `json:"of"`   // how many were born early enough to have lived as long
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"` // rounded
}

// lifetimes counts who lived on for 0, 1, 2, 4 ... laps, of those that were born early enough
// to have been able to.
func (p *population) lifetimes(t *timeline.Timeline, horizon int32) []Lifetime {
	var out []Lifetime
	laps := int32(len(p.starts))
	for n := int32(0); n < laps; n = max(1, 2*n) {
		at := Lifetime{Laps: int(n)}
		for i, row := range p.rows {
			if p.lap[i]+n+1 >= laps {
				break
			}
			l := &t.Lives[row]
			at.Of++
			if e := end(l, horizon); e == none || e >= p.starts[p.lap[i]+n+1] {
				at.Count++
				at.Bytes += l.Rounded
			}
		}
		out = append(out, at)
	}
	return out
}

// maxPoints bounds the series that trends are computed of: pairs grow with its square.
const maxPoints = 200

// thin takes at most maxPoints values, evenly and with the last. It also gives how many places
// the values lie apart.
func thin(v []int64) ([]int64, float64) {
	if len(v) <= maxPoints {
		return v, 1
	}
	out := make([]int64, maxPoints)
	step := float64(len(v)-1) / float64(maxPoints-1)
	for i := range out {
		out[i] = v[int(math.Round(float64(i)*step))]
	}
	return out, step
}

// slope is the Theil-Sen estimate of the growth of a series per place.
func slope(v []int64) float64 {
	v, step := thin(v)
	places := make([]int64, len(v))
	for i := range places {
		places[i] = int64(i)
	}
	perPlace, _, _ := trend.TheilSen(places, v, 0)
	return perPlace / step
}

// rises is the one-sided probability that a series without a trend would rise as much, by the
// test of Mann and Kendall; 1 where there are too few values to tell. Values of
// one series are not independent, so that the result ranks evidence and is no error rate.
func rises(v []int64) float64 {
	v, _ = thin(v)
	if len(v) < 3 {
		return 1
	}
	_, _, p := trend.MannKendall(v)
	return p
}
