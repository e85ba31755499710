package fit

import (
	"math"

	"github.com/snapana/snapana/analyze/kernel"
	"github.com/snapana/snapana/snapshot"
)

// Sizes that depend on the data, as lengths of sentences do, differ from step to step although the values do not.

// slot is a request of one call of the program in each step; where no steps were found all of a stack, if it has frames.
type slot struct {
	stack int32
	nth   int32 // of its stack in the step
}

// observed is what the recordings have of a slot.
type observed struct {
	row         int32   // of the first
	least, most float64 // by what share sizes differ from those of the first, in either recording
	term        *term   // of a proven law
	logs        float64 // sum of the logarithms of how sizes differ between the recordings
	pairs       float64
	// Of those in both: sums of the squares of these logarithms, of those of sizes, and of the squares of those.
	logs2, sizes, sizes2 float64
	own, others          float64 // sums of sizes
	rows                 float64
	unproven             int
	// Of those that are not proven: by how much the recordings differ in the last, how often in that while sizes did, and whether in
	// another.
	shift, size float64
	steady      int
	shifted     bool
	laws        map[int32]bool // those that are not proven
	// What divides all sizes, and the largest, of this recording and of the other.
	unit, itsUnit int64
	top, itsTop   int64
}

// differs reports whether steps differ in the sizes of a slot. Where they differ too much the slot is not one call: the order of
// calls does.
func (v *observed) differs() bool {
	const much = 16
	return v.least < v.most && v.most < much*v.least
}

// moves reports whether the sizes of a slot go with the steps alike in both recordings, as those of a cache of keys and values do:
// that is not the data.
func (v *observed) moves() bool {
	const several = 3
	return v.steady >= several && !v.shifted
}

// varies reports whether the sizes of a slot depend on the data.
func (v *observed) varies(steps bool) bool {
	const several = 4
	if v.moves() {
		return false
	}
	if steps {
		return v.differs() && v.unproven > 0
	}
	return len(v.laws) >= several && 5*v.unproven >= int(v.rows)
}

// class tells laws of sizes that depend on data apart.
type class struct {
	slot  slot
	size  float64
	its   float64 // of the partner, where no steps were found
	known int32   // the law where it is sound, else -1
}

// observation is what the recordings have of slots, this one and the other that is furthest away.
type observation struct {
	slots     []slot // by row
	of        map[slot]*observed
	size, its func(row int) float64 // of a row and of its partner, 0 for none
	at, other Point
	all       []term
	scales    value
	steps     bool // the recording has several
	same      bool // the recordings' steps work on the same data
	padded    bool // most of it is padded with the batch, see observed
}

// vary finds the slots whose sizes differ from step to step although the values do not: they depend on the data. What no
// proven law gives of them is an estimate.
func (m *model) vary(others []*recording, partners [][]int32, all []term, scales value) {
	if len(others) == 0 {
		return
	}
	o := m.observe(others, partners)
	o.all, o.scales = all, scales
	const good = 25 // of so many bytes one
	var uneven, total int64
	for _, v := range o.of {
		bytes := int64(v.own / v.rows)
		total += bytes
		if v.varies(o.steps) || o.steps && v.least < v.most && !v.moves() {
			uneven += bytes
		}
	}
	m.depends = good*uneven > total
	o.same = o.steps && sameData(o.of)
	o.padded = o.steps && scales == batch && o.isPadded()
	if m.depends && o.steps && scales == batch {
		m.lawOfLikes(o)
		m.flatten(o)
	}
	made := map[class]int32{}
	for row := m.bounds[0]; row < len(m.of); row++ {
		v := o.of[o.slots[row]]
		if !v.varies(o.steps) || m.sound(m.of[row]) && !o.padded {
			continue
		}
		k := class{slot: o.slots[row], size: o.size(row), known: -1}
		if m.sound(m.of[row]) {
			k.known = m.of[row]
		}
		if !o.steps {
			k.its = o.its(row)
		}
		id, ok := made[k]
		if !ok {
			var l *law
			if k.known >= 0 {
				known := *m.laws[k.known]
				l = &known
			} else {
				l = o.estimate(v, row)
				m.chance = m.chance || !o.same
			}
			l.from, l.full = o.at, o.full(v)
			id = int32(len(m.laws))
			made[k] = id
			m.laws, m.seen = append(m.laws, l), append(m.seen, m.seen[m.of[row]])
		}
		m.of[row] = id
	}
}

// lawOfLikes gives rows that seem to go with the square of a batch the law of rows with the same code and size that is sound: where
// steps differ an alignment takes a weight's gradient for other memory now and then.
func (m *model) lawOfLikes(o *observation) {
	known := map[likes]int32{}
	for row := m.warm; row < len(m.of); row++ {
		k := m.likesOf(row)
		if _, ok := known[k]; !ok && m.sound(m.of[row]) {
			known[k] = m.of[row]
		}
	}
	for row := m.bounds[0]; row < len(m.of); row++ {
		if v := o.of[o.slots[row]]; v.least == v.most || m.laws[m.of[row]].kind != proven || m.sound(m.of[row]) {
			continue
		}
		if law, ok := known[m.likesOf(row)]; ok {
			m.of[row] = law
		}
	}
}

// flatten has what is only estimated, and by the square of a batch, go with less: items of one may be longer by chance.
func (m *model) flatten(o *observation) {
	made := map[int32]int32{}
	for row, id := range m.of {
		if l := m.laws[id]; l.kind != estimated || l.parts[0].term[0] < 2 {
			continue
		}
		m.amend(row, made, func(l *law) {
			at := float64(l.at(o.at))
			l.high = &law{parts: l.parts}
			l.parts = along(nearestTerm(notSquared(o.all), o.at, o.other, at/float64(max(l.at(o.other), 1))), int64(at), o.at).parts
		})
	}
}

// observe gathers what the recordings have of each slot.
func (m *model) observe(others []*recording, partners [][]int32) *observation {
	far := 0 // the other recording that is furthest away
	for k := range others {
		if away(m.At, others[k].At) > away(m.At, others[far].At) {
			far = k
		}
	}
	o := &observation{slots: make([]slot, len(m.of)), of: map[slot]*observed{}, at: m.At, other: others[far].At, steps: m.numSteps() > 1}
	o.size = func(row int) float64 { return float64(m.Timeline.Lives[row].Requested) }
	o.its = func(row int) float64 {
		if j := partners[far][row]; j >= 0 {
			return float64(others[far].Timeline.Lives[j].Requested)
		}
		return 0
	}
	nth := map[int32]int32{}
	for i := range m.numSteps() {
		clear(nth)
		s := m.step(i)
		for row := s.from; row < s.to; row++ {
			k := slot{m.stackOf(row), nth[m.stackOf(row)]}
			if o.steps || m.Timeline.Lives[row].Stack <= snapshot.EmptyStack {
				nth[k.stack]++
			}
			o.slots[row] = k
			v := o.of[k]
			if v == nil {
				v = &observed{row: int32(row), least: 1, most: 1}
				o.of[k] = v
			}
			v.add(m, row, o.size, o.its, o.steps)
		}
	}
	return o
}

// estimate is a law of a row whose size depends on data. Where the recordings' steps are of the same data each goes by itself, as
// recorded. Else their mean goes with the term of another step of the slot, or else with that by which the recordings differ on the
// whole; what a size differs from the mean, as the sum of many parts does, with the root. The bounds are as far apart as the steps are.
func (o *observation) estimate(v *observed, row int) *law {
	t, nearest := v.termAt(o)
	here, there := float64(t.of(o.at)), float64(t.of(o.other))
	size := o.size(row)
	mean := (v.own + v.others*here/there) / (v.rows + v.pairs)
	least, most := v.least, v.most
	switch its := o.its(row); {
	case o.same:
		mean = size
	case !o.steps:
		if mean = size; its > 0 {
			mean = (size + its*here/there) / 2
		}
		least, most = min(mean/size, 1), max(mean/size, 1)
	}
	l := along(t, int64(mean), o.at)
	l.kind, l.rest = estimated, size-mean
	l.low = along(t, int64(size*least/most), o.at)
	l.high = along(nearest, int64(size*most/least), o.at)
	return l
}

// full is the law of what is padded with the batch, from twice that on: it is as large as any there is. It is nil for others.
func (o *observation) full(v *observed) *law {
	t, _ := v.termAt(o)
	if !o.padded || t.degree() != 1 {
		return nil
	}
	most := max(float64(v.top), float64(v.itsTop)*float64(t.of(o.at))/float64(t.of(o.other)))
	l := along(t, int64(most), o.at)
	l.from = o.at
	if t.of(o.at) < t.of(o.other) {
		l.from = o.other
	}
	return l
}

// sameData reports whether steps of both recordings worked on the same data, each on as large a part of it: where one has a larger
// size than in another step, so has the other, by as much. That is so of most bytes.
func sameData(of map[slot]*observed) bool {
	const clear, least = 4, 1e-6 // times the variance, and that of sizes that differ at all
	var same, other int64
	for _, v := range of {
		n := v.pairs
		if n < 2 || !v.differs() {
			continue
		}
		sizes, ratios := v.sizes2-v.sizes*v.sizes/n, v.logs2-v.logs*v.logs/n
		switch {
		case sizes < least:
		case clear*ratios < sizes:
			same += int64(v.own / v.rows)
		default:
			other += int64(v.own / v.rows)
		}
	}
	return same > other
}

// termAt is the term by which the sizes of two recordings differ, and the one that is nearest to that: it is not by the square of a
// batch, of which one may have longer items by chance.
func (v *observed) termAt(o *observation) (t, nearest term) {
	if v.term != nil {
		return *v.term, *v.term
	}
	ratio := math.Exp(v.logs / max(v.pairs, 1))
	nearest = nearestTerm(o.all, o.at, o.other, ratio)
	if o.scales != batch || nearest[0] < 2 {
		return nearest, nearest
	}
	return nearestTerm(notSquared(o.all), o.at, o.other, ratio), nearest
}

// isPadded reports whether most of what depends on the data, and differs from step to step, is padded with the batch, see observed.
func (o *observation) isPadded() bool {
	var yes, no int64
	for _, v := range o.of {
		if !v.varies(true) {
			continue
		}
		t, _ := v.termAt(o)
		switch bytes := int64(v.own / v.rows); {
		case t.degree() != 1:
		case v.padded(t.of(o.at), t.of(o.other)):
			yes += bytes
		default:
			no += bytes
		}
	}
	return yes > no
}

// add adds a row.
func (v *observed) add(m *model, row int, size, its func(int) float64, steps bool) {
	own, n := size(row), its(row)
	q := own / size(int(v.row))
	v.least, v.most = min(v.least, q), max(v.most, q)
	v.own += own
	v.rows++
	v.unit, v.top = kernel.GCD(v.unit, int64(own)), max(v.top, int64(own))
	v.itsUnit, v.itsTop = kernel.GCD(v.itsUnit, int64(n)), max(v.itsTop, int64(n))
	if was := its(int(v.row)); n > 0 {
		if was > 0 {
			v.least, v.most = min(v.least, n/was), max(v.most, n/was)
		}
		v.others += n
		log, ratio := math.Log(own), math.Log(own/n)
		v.logs, v.logs2 = v.logs+ratio, v.logs2+ratio*ratio
		v.sizes, v.sizes2 = v.sizes+log, v.sizes2+log*log
		v.pairs++
	}
	switch l := m.laws[m.of[row]]; {
	case l.kind != proven:
		shift := own - n
		switch {
		case v.unproven > 0 && shift != v.shift:
			v.shifted = true
		case v.unproven > 0 && own != v.size:
			v.steady++
		}
		v.shift, v.size = shift, own
		if v.unproven++; v.laws == nil {
			v.laws = map[int32]bool{}
		}
		v.laws[m.of[row]] = true
	case steps && !m.sound(m.of[row]):
	case len(l.parts) == 1:
		v.term = &l.parts[0].term
	}
}

// padded reports whether sizes that depend on the data are so many times a number of the batch, as where all of it is padded to the
// longest: what divides the sizes of both recordings goes so often into what divides those of one as its batch has more.
func (v *observed) padded(batch, its int64) bool {
	if v.itsUnit == 0 || batch == its || min(batch, its) < 1 {
		return false
	}
	const byChance = 50 // sums are so in one of so many cases, at most
	both, common := kernel.GCD(v.unit, v.itsUnit), kernel.GCD(batch, its)
	factor, itsFactor := batch/common, its/common
	return v.unit/both%factor == 0 && v.itsUnit/both%itsFactor == 0 &&
		math.Pow(float64(factor), v.rows)*math.Pow(float64(itsFactor), v.pairs) > byChance
}

// sound reports whether a law is proven also where sizes depend on the data: there two of them are now and then in the ratio
// of a square by chance.
func (m *model) sound(id int32) bool {
	l := m.laws[id]
	return l.kind == proven && (m.seen[id] > 2 || len(l.parts) != 1 || l.parts[0].degree() < 2)
}

// nearestTerm is the term by which sizes at two points are in about such a ratio. What depends on data goes with the square
// of a value only where nothing else would do.
func nearestTerm(all []term, a, b Point, ratio float64) term {
	best, least := all[1], math.Inf(1)
	for _, t := range all {
		if t.ofPixels() {
			break
		}
		away := math.Abs(math.Log(ratio) - math.Log(float64(t.of(a))/float64(t.of(b))))
		if t.degree() > 1 {
			away *= 2
		}
		if away < least {
			best, least = t, away
		}
	}
	return best
}
