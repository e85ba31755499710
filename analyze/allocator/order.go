package allocator

import "slices"

// order holds the free blocks of one pool and stream, smallest first. It is a list of short
// sorted runs, none empty: blocks come and go by moving a part of one run, so that a hundred
// thousand of them cost little more than ten.
type order struct {
	runs  [][]entry
	spare [][]entry // emptied runs, to use again
}

// entry is a free block by its place: size, tie (see Tie), address.
type entry struct {
	size  int64
	addr  uint64
	tie   uint32
	block int32
}

// A run holds at most maxRun entries, and joins a neighbor when it has less than minRun.
const (
	maxRun = 64
	minRun = 16
	// firstRun is the room that a run begins with.
	firstRun = 4
)

// spot is a place in an order.
type spot struct{ run, at int }

func (e *entry) before(o *entry) bool {
	if e.size != o.size {
		return e.size < o.size
	}
	if e.tie != o.tie {
		return e.tie < o.tie
	}
	if e.addr != o.addr {
		return e.addr < o.addr
	}
	return e.block < o.block // only where a driver gives an address twice
}

// seek finds the first entry that is not before key; it may be past the last.
func (o *order) seek(key *entry) spot {
	lo, hi := 0, len(o.runs)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if run := o.runs[mid]; run[len(run)-1].before(key) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(o.runs) {
		return o.end()
	}
	run := o.runs[lo]
	i, j := 0, len(run)
	for i < j {
		mid := int(uint(i+j) >> 1)
		if run[mid].before(key) {
			i = mid + 1
		} else {
			j = mid
		}
	}
	return spot{lo, i}
}

func (o *order) valid(s spot) bool { return s.run < len(o.runs) }
func (o *order) get(s spot) *entry { return &o.runs[s.run][s.at] }

// end is the place behind the last entry.
func (o *order) end() spot { return spot{len(o.runs), 0} }

// after is the next place; it may be past the last.
func (o *order) after(s spot) spot {
	if s.at+1 < len(o.runs[s.run]) {
		return spot{s.run, s.at + 1}
	}
	return spot{s.run + 1, 0}
}

// before is the place before, false when s is the first.
func (o *order) before(s spot) (spot, bool) {
	switch {
	case s.at > 0:
		return spot{s.run, s.at - 1}, true
	case s.run > 0:
		return spot{s.run - 1, len(o.runs[s.run-1]) - 1}, true
	}
	return spot{}, false
}

func (o *order) insert(e entry) {
	s := o.seek(&e)
	if s.run == len(o.runs) {
		if s.run == 0 {
			o.runs = append(o.runs, append(o.newRun(), e))
			return
		}
		s.run--
		s.at = len(o.runs[s.run])
	}
	run := append(o.runs[s.run], entry{})
	copy(run[s.at+1:], run[s.at:])
	run[s.at] = e
	o.runs[s.run] = run
	if len(run) == maxRun {
		upper := append(o.newRun(), run[maxRun/2:]...)
		o.runs[s.run] = run[:maxRun/2]
		o.runs = slices.Insert(o.runs, s.run+1, upper)
	}
}

func (o *order) newRun() []entry {
	if n := len(o.spare); n > 0 {
		run := o.spare[n-1]
		o.spare = o.spare[:n-1]
		return run
	}
	return make([]entry, 0, firstRun) // there are as many orders as streams
}

// remove takes out the entry of a block, which must be there.
func (o *order) remove(key *entry) { o.removeAt(o.place(key)) }

// place is that of the entry of a block, which must be there.
func (o *order) place(key *entry) spot {
	s := o.seek(key)
	if !o.valid(s) || o.get(s).block != key.block {
		panic("allocator: a free block is not where it belongs")
	}
	return s
}

func (o *order) removeAt(s spot) {
	run := o.runs[s.run]
	run = run[:s.at+copy(run[s.at:], run[s.at+1:])]
	o.runs[s.run] = run
	if len(run) >= minRun {
		return
	}
	switch into := max(s.run-1, 0); {
	case len(run) == 0:
		o.drop(s.run)
	case into+1 < len(o.runs) && len(o.runs[into])+len(o.runs[into+1]) <= maxRun*3/4:
		o.runs[into] = append(o.runs[into], o.runs[into+1]...)
		o.drop(into + 1)
	}
}

// replace puts e in the place of the entry at s: what is left of a block, or what it became part of. Both are often
// close to each other, so that less moves, and less is searched, than to take one out and to insert the other.
func (o *order) replace(s spot, e entry) {
	run := o.runs[s.run]
	i := s.at
	switch last := len(run) - 1; {
	case i < last && run[i+1].before(&e):
		if s.run+1 < len(o.runs) && run[last].before(&e) {
			o.removeAt(s)
			o.insert(e)
			return
		}
		for ; i < last && run[i+1].before(&e); i++ {
			run[i] = run[i+1]
		}
	case i == last && s.run+1 < len(o.runs) && o.runs[s.run+1][0].before(&e),
		i == 0 && s.run > 0 && e.before(&o.runs[s.run-1][len(o.runs[s.run-1])-1]):
		o.removeAt(s)
		o.insert(e)
		return
	case i > 0 && e.before(&run[i-1]):
		if s.run > 0 && e.before(&run[0]) {
			o.removeAt(s)
			o.insert(e)
			return
		}
		for ; i > 0 && e.before(&run[i-1]); i-- {
			run[i] = run[i-1]
		}
	}
	run[i] = e
}

func (o *order) drop(run int) {
	o.spare = append(o.spare, o.runs[run][:0])
	o.runs = slices.Delete(o.runs, run, run+1)
}
