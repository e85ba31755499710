package bands

import (
	"sort"

	"github.com/snapana/snapana/analyze/timeline"
)

// blockLen is how many events an entry of the index stands for.
const blockLen = 64

// Index finds the highest active bytes of any run of events, and the allocations that begin and
// end in it.
type Index struct {
	t      *timeline.Timeline
	events int
	blocks []block // the last one is behind the trace
	deaths []int32 // rows of Lives by the block of their end, then by row
}

type block struct {
	before, peak int64 // active bytes before the first event, and the most after one of them
	at           int32 // the first event after which it was the most
	born, died   int32 // the first row of Lives, and of deaths, that does not come before
}

// New makes the index of one device.
func New(t *timeline.Timeline) *Index {
	x := &Index{t: t, events: t.Trace.Len()}
	x.blocks = make([]block, (x.events+blockLen-1)/blockLen+1)
	for i := range t.Lives {
		if b := x.blockOf(t.Lives[i].Freed); b >= 0 {
			x.blocks[b].died++
		}
	}
	sum := int32(0)
	for b := range x.blocks {
		sum, x.blocks[b].died = sum+x.blocks[b].died, sum
	}
	x.deaths = make([]int32, sum)
	next := make([]int32, len(x.blocks))
	for b := range next {
		next[b] = x.blocks[b].died
	}
	for i := range t.Lives {
		if b := x.blockOf(t.Lives[i].Freed); b >= 0 {
			x.deaths[next[b]] = int32(i)
			next[b]++
		}
	}
	row := sort.Search(len(t.Lives), func(i int) bool { return t.Lives[i].Born >= 0 })
	now := int64(0)
	for i := range t.Lives[:row] {
		now += bytes(&t.Lives[i])
	}
	var after [blockLen]int64
	for b := range x.blocks {
		p := &x.blocks[b]
		p.born, p.before, p.peak, p.at = int32(row), now, now, int32(b*blockLen)
		if b+1 == len(x.blocks) {
			break
		}
		for row < len(t.Lives) && int(t.Lives[row].Born) < (b+1)*blockLen {
			row++
		}
		x.blocks[b+1].born = int32(row)
		n := x.scan(b, &after)
		p.peak = after[0]
		for i, v := range after[:n] {
			if v > p.peak {
				p.peak, p.at = v, int32(b*blockLen+i)
			}
		}
		now = after[n-1]
	}
	return x
}

// blockOf is the block of an event, -1 for an event that the trace does not have.
func (x *Index) blockOf(event int32) int {
	if event < 0 || int(event) >= x.events {
		return -1
	}
	return int(event) / blockLen
}

// bytes is what a life takes; only files that contradict themselves have lives of less than 0.
func bytes(l *timeline.Life) int64 { return max(l.Rounded, 0) }

// scan fills in the active bytes after each event of a block and says how many it has.
func (x *Index) scan(b int, after *[blockLen]int64) int {
	p, q := &x.blocks[b], &x.blocks[b+1]
	first := b * blockLen
	clear(after[:])
	for row := p.born; row < q.born; row++ {
		l := &x.t.Lives[row]
		after[int(l.Born)-first] += bytes(l)
	}
	for _, row := range x.deaths[p.died:q.died] {
		l := &x.t.Lives[row]
		after[int(l.Freed)-first] -= bytes(l)
	}
	n := min(blockLen, x.events-first)
	now := p.before
	for i := range n {
		now += after[i]
		after[i] = now
	}
	return n
}

// Highest is the first event in from..to-1 after which the most bytes were active, and the
// bytes. The trace must have these events.
func (x *Index) Highest(from, to int) (event int, active int64) {
	event, active = from, -1
	var after [blockLen]int64
	for at := from; at < to; {
		b := at / blockLen
		end := min((b+1)*blockLen, to)
		if at%blockLen == 0 && (end%blockLen == 0 || end == x.events) {
			if p := &x.blocks[b]; p.peak > active {
				event, active = int(p.at), p.peak
			}
		} else {
			x.scan(b, &after)
			for ; at < end; at++ {
				if v := after[at%blockLen]; v > active {
					event, active = at, v
				}
			}
		}
		at = end
	}
	return event, active
}
