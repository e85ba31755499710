package snapshot

import "iter"

// Span is what a run of events has in sum.
type Span struct {
	Events           int
	Count            [NumActions]int // of them by Action
	Any, All         EventHas        // keys that an event has, and that each has
	Stacked, Labeled bool            // an event has a stack with frames, or a label
	// Oldest and Newest are the extremes of the times, 0 where there are none, and Back is the most by which a time is
	// below one before it: microseconds.
	Oldest, Newest int64
	Back           uint64
}

// Seen has a bit for each Action that an event has.
func (s *Span) Seen() (actions uint32) {
	for a, n := range s.Count {
		if n > 0 {
			actions |= 1 << a
		}
	}
	return actions
}

// Add goes on by an event.
func (s *Span) Add(e *Event) {
	if s.All &= e.Has; s.Events == 0 {
		s.All = e.Has
	}
	s.Events++
	s.Count[e.Action]++
	s.Stacked, s.Labeled = s.Stacked || e.Stack > EmptyStack, s.Labeled || e.Label != 0
	if e.Has&EventHasTime != 0 {
		s.times(e.Time, e.Time, 0)
	}
	s.Any |= e.Has
}

// Join goes on by the events of another.
func (s *Span) Join(o *Span) {
	switch {
	case o.Events == 0:
		return
	case s.Events == 0:
		*s = *o
		return
	}
	s.Events += o.Events
	for a := range s.Count {
		s.Count[a] += o.Count[a]
	}
	s.Stacked, s.Labeled = s.Stacked || o.Stacked, s.Labeled || o.Labeled
	if o.Any&EventHasTime != 0 {
		s.times(o.Oldest, o.Newest, o.Back)
	}
	s.Any, s.All = s.Any|o.Any, s.All&o.All
}

// times goes on by times.
func (s *Span) times(oldest, newest int64, back uint64) {
	if s.Any&EventHasTime == 0 {
		s.Oldest, s.Newest, s.Back = oldest, newest, back
		return
	}
	if oldest < s.Newest {
		back = max(back, uint64(s.Newest)-uint64(oldest))
	}
	s.Oldest, s.Newest, s.Back = min(s.Oldest, oldest), max(s.Newest, newest), max(s.Back, back)
}

// span sums up rows first to end-1 of a chunk.
func (c *columns) span(first, end int) (s Span) {
	var what [1 << 8]int
	for _, w := range c.what[first:end] {
		what[w]++
	}
	s.Events, s.All = end-first, ^EventHas(0)
	for w, n := range what {
		if n > 0 {
			s.Count[w&15] += n
			s.Any, s.All = s.Any|EventHas(w>>4), s.All&EventHas(w>>4)
		}
	}
	if len(c.whole) > 0 || (s.Any^s.All)&EventHasTime != 0 {
		s = Span{}
		for k := first; k < end; k++ {
			e := c.at(k)
			s.Add(&e)
		}
		return s
	}
	for k := first; k < end && !s.Stacked; k++ {
		s.Stacked = c.stack[k] > EmptyStack
	}
	for k := first; k < end && !s.Labeled; k++ {
		s.Labeled = c.label[k] != 0
	}
	if s.All&EventHasTime != 0 {
		oldest, newest, back := int64(c.after[first]), int64(c.after[first]), int64(0)
		for _, after := range c.after[first:end] {
			now := int64(after)
			oldest, newest, back = min(oldest, now), max(newest, now), max(back, newest-now)
		}
		s.Oldest, s.Newest, s.Back = c.time+oldest, c.time+newest, uint64(back)
	}
	return s
}

// Spans cuts a trace into runs of events, each with the number of its first. It is quick: what a run has is known from
// when it was read.
func (t Trace) Spans() iter.Seq2[int, *Span] {
	return func(yield func(int, *Span) bool) {
		for i := 0; i < t.len; {
			row := t.start + i
			c, k := t.events.chunks[row>>chunkBits], row&(chunkLen-1)
			n := min(chunkLen-k, t.len-i)
			s := &c.sum
			if n < chunkLen {
				s = new(Span)
				*s = c.span(k, k+n)
			}
			if !yield(i, s) {
				return
			}
			i += n
		}
	}
}

// Next is the first event from i on whose Action is one of kinds, which has a bit for each, and Len where there is none.
// It passes quickly over runs that have none.
func (t Trace) Next(kinds uint32, i int) int {
	for i < t.len {
		row := t.start + i
		c, k := t.events.chunks[row>>chunkBits], row&(chunkLen-1)
		end := min(chunkLen, k+t.len-i)
		if c.sum.Events == 0 || c.sum.Seen()&kinds != 0 {
			for n, what := range c.what[k:end] {
				if kinds>>(what&15)&1 != 0 {
					return i + n
				}
			}
		}
		i += end - k
	}
	return t.len
}

// Last is the last event before i of such a kind, -1 for none.
func (t Trace) Last(kinds uint32, i int) int {
	for i > 0 {
		row := t.start + i - 1
		c, k := t.events.chunks[row>>chunkBits], row&(chunkLen-1)
		first := max(0, k+1-i)
		if c.sum.Events == 0 || c.sum.Seen()&kinds != 0 {
			for n := k; n >= first; n-- {
				if kinds>>(c.what[n]&15)&1 != 0 {
					return i - 1 - (k - n)
				}
			}
		}
		i -= k + 1 - first
	}
	return -1
}

// Sum is what the whole trace has.
func (t Trace) Sum() (s Span) {
	for _, part := range t.Spans() {
		s.Join(part)
	}
	return s
}
