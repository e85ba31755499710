package timeline

import "sync"

// Levels tell how many bytes of blocks there are before the trace, at event -1, and after each event. They take 4 bytes
// for each life and little more: what lies within a run of events is summed up anew when it is asked for. A Levels is
// for one goroutine; others take one of their own.
type Levels struct {
	*levels
	run int           // that is laid out, -1 at first
	now [runLen]int64 // after each of its events
}

// ActiveLevels are those of active bytes.
func (t *Timeline) ActiveLevels() *Levels {
	return t.active.of(t, t.Initial.Active, false)
}

// AllocatedLevels are those of what the program has not freed.
func (t *Timeline) AllocatedLevels() *Levels {
	return t.allocated.of(t, t.Initial.Allocated, true)
}

// LevelsOf are those of what the trace allocated from some stacks and the program has not freed.
func (t *Timeline) LevelsOf(stacks []bool) *Levels {
	v := &levels{stacks: stacks}
	return v.of(t, 0, true)
}

// fanOut is how many runs, or spans of them, a span of the next kind has.
const (
	fanBits = 6
	runLen  = 1 << fanBits // events of a run
)

// levels are what all Levels of one kind share.
type levels struct {
	made sync.Once

	lives     []Life
	allocated bool   // lives end as the program gives them up
	stacks    []bool // whose lives of the trace count; nil for all lives
	initial   int64
	events    int
	older     int     // lives from before the trace, which come first
	births    []int32 // by run, and one behind: how many lives begin before it
	deaths    []int32 // by run, and one behind: its place in died
	died      []int32 // rows of Lives by the run of their end
	before    []int64 // by run, the level at its beginning
	spans     [][]extremes
}

// extremes are those of a span of events: spans[k] has one for every 1<<(k+1)*fanBits.
type extremes struct {
	most, least int64
	at          int32 // of the first of the highest
}

// of makes them at the first call. A timeline that Build did not make has none to keep.
func (v *levels) of(t *Timeline, initial int64, allocated bool) *Levels {
	if v == nil {
		v = new(levels)
	}
	v.made.Do(func() {
		v.lives, v.events, v.initial, v.allocated = t.Lives, t.Trace.Len(), initial, allocated
		v.sort()
		v.sum()
	})
	return &Levels{levels: v, run: -1}
}

// counts reports whether a life that the trace has is one of those.
func (v *levels) counts(l *Life) bool { return v.stacks == nil || v.stacks[l.Stack] }

// end is the event that ends a life, below 0 for none, and for one that does not count.
func (v *levels) end(l *Life) int32 {
	if v.stacks != nil && (l.Born < 0 || !v.stacks[l.Stack]) {
		return -1
	}
	if v.allocated {
		return l.GivenUp()
	}
	return l.Freed
}

// sort finds the lives that begin and end in each run.
func (v *levels) sort() {
	runs := (v.events + runLen - 1) >> fanBits
	v.births, v.deaths = make([]int32, runs+1), make([]int32, runs+1)
	n := int32(0)
	for i := range v.lives {
		l := &v.lives[i]
		if l.Born < 0 {
			v.older++
		} else {
			v.births[l.Born>>fanBits+1]++
		}
		if e := v.end(l); e >= 0 {
			v.deaths[e>>fanBits+1]++
			n++
		}
	}
	for r := range runs {
		v.births[r+1] += v.births[r]
		v.deaths[r+1] += v.deaths[r]
	}
	v.died = make([]int32, n)
	next := v.deaths[:runs:runs]
	for i := range v.lives {
		if e := v.end(&v.lives[i]); e >= 0 {
			v.died[next[e>>fanBits]] = int32(i)
			next[e>>fanBits]++
		}
	}
	copy(v.deaths[1:], next) // each now has the place of the run behind it
	if runs > 0 {
		v.deaths[0] = 0
	}
}

// sum finds the highest and lowest levels.
func (v *levels) sum() {
	runs := len(v.births) - 1
	v.before = make([]int64, runs)
	spans := make([]extremes, runs)
	l := Levels{levels: v, run: -1}
	level := v.initial
	for r := range runs {
		v.before[r] = level
		now := l.layOut(r)
		spans[r], level = extremesOf(now, r<<fanBits), now[len(now)-1]
	}
	v.spans = [][]extremes{spans}
	for len(spans) > 1 {
		above := make([]extremes, (len(spans)+runLen-1)>>fanBits)
		for i := range above {
			part := spans[i<<fanBits : min((i+1)<<fanBits, len(spans))]
			above[i] = part[0]
			for _, x := range part[1:] {
				above[i].add(x)
			}
		}
		v.spans = append(v.spans, above)
		spans = above
	}
}

// extremesOf are those of some levels, of which the first is that after an event.
func extremesOf(levels []int64, event int) extremes {
	x := extremes{levels[0], levels[0], int32(event)}
	for i, n := range levels {
		if n > x.most {
			x.most, x.at = n, int32(event+i)
		}
		x.least = min(x.least, n)
	}
	return x
}

// add joins the span behind it.
func (x *extremes) add(y extremes) {
	if y.most > x.most {
		x.most, x.at = y.most, y.at
	}
	x.least = min(x.least, y.least)
}

// layOut gives the levels after each event of a run.
func (l *Levels) layOut(run int) []int64 {
	v := l.levels
	now := l.now[:min(runLen, v.events-run<<fanBits)]
	if run == l.run {
		return now
	}
	l.run = run
	clear(now)
	born := v.lives[v.older:][v.births[run]:v.births[run+1]]
	for i := range born {
		if v.counts(&born[i]) {
			now[uint32(born[i].Born)%runLen] += born[i].Rounded
		}
	}
	for _, row := range v.died[v.deaths[run]:v.deaths[run+1]] {
		x := &v.lives[row]
		now[uint32(v.end(x))%runLen] -= x.Rounded
	}
	level := v.before[run]
	for i := range now {
		level += now[i]
		now[i] = level
	}
	return now
}

// At is the level after an event.
func (l *Levels) At(event int) int64 {
	if event < 0 {
		return l.initial
	}
	return l.layOut(event >> fanBits)[event%runLen]
}

// Highest finds the highest level after the events first to last, and the first event that it comes after.
func (l *Levels) Highest(first, last int) (bytes int64, event int) {
	x := l.extremes(first, last)
	return x.most, int(x.at)
}

// Lowest is the lowest level after the events first to last.
func (l *Levels) Lowest(first, last int) int64 { return l.extremes(first, last).least }

// extremes are those after the events first to last.
func (l *Levels) extremes(first, last int) extremes {
	n := l.At(first)
	x := extremes{n, n, int32(first)}
	for e := first + 1; e <= last; {
		if k := l.span(e, last); k >= 0 {
			x.add(l.spans[k][e>>((k+1)*fanBits)])
			e += 1 << ((k + 1) * fanBits)
			continue
		}
		to := min(e|(runLen-1), last)
		x.add(extremesOf(l.layOut(e >> fanBits)[e%runLen:to%runLen+1], e))
		e = to + 1
	}
	return x
}

// span is the kind of the largest span that begins with an event and does not go beyond another, -1 for none.
func (l *Levels) span(first, last int) int {
	k := -1
	for k+1 < len(l.spans) {
		size := 1 << ((k + 2) * fanBits)
		if first%size != 0 || min(first+size, l.events)-1 > last {
			break
		}
		k++
	}
	return k
}

// Reaches finds the first event from one on after which the level is bytes or more.
func (l *Levels) Reaches(from int, bytes int64) (event int, ok bool) {
	return l.find(from, func(x extremes) bool { return x.most >= bytes })
}

// FallsTo finds the first event from one on after which the level is bytes or less.
func (l *Levels) FallsTo(from int, bytes int64) (event int, ok bool) {
	return l.find(from, func(x extremes) bool { return x.least <= bytes })
}

// find is the first event from one on after which has holds; of a span, has tells whether there is one in it.
func (l *Levels) find(from int, has func(extremes) bool) (event int, ok bool) {
	for e := from; e < l.events; {
		k := -1
		if e >= 0 {
			k = l.span(e, l.events-1)
		}
		for k >= 0 && has(l.spans[k][e>>((k+1)*fanBits)]) {
			k--
		}
		if k >= 0 {
			e += 1 << ((k + 1) * fanBits)
			continue
		}
		for to := e | (runLen - 1); e <= to && e < l.events; e++ {
			if n := l.At(e); has(extremes{most: n, least: n}) {
				return e, true
			}
		}
	}
	return 0, false
}

// LastReaching finds the last event after which the level is bytes or more.
func (l *Levels) LastReaching(bytes int64) (event int, ok bool) {
	at := 0 // in spans[k]
	for k := len(l.spans) - 1; k >= 0; k-- {
		spans := l.spans[k]
		first := at << fanBits
		if k == len(l.spans)-1 {
			first = 0
		}
		for at = min(first+runLen, len(spans)) - 1; at >= first && spans[at].most < bytes; at-- {
		}
		if at < first {
			return -1, l.initial >= bytes
		}
	}
	now := l.layOut(at)
	e := len(now) - 1
	for now[e] < bytes {
		e--
	}
	return at<<fanBits + e, true
}

// Values are all levels, first that before the trace: 8 bytes for each event.
func (l *Levels) Values() []int64 {
	out := make([]int64, 1, l.events+1)
	out[0] = l.initial
	for run := range l.before {
		out = append(out, l.layOut(run)...)
	}
	return out
}
