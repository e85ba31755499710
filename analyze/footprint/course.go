package footprint

import (
	"slices"
	"sort"
	"weak"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
)

// Course is how the memory of a footprint's groups rose and fell over the trace.
type Course struct {
	Events  int      // length of the trace
	At      int      // event of the footprint's moment, -1 before the trace
	Peak    int      // first event after which most is active
	OOMs    []int    // events after which requests had failed
	Samples []Sample // of all events, in their order
	Steps   []Span   // of events, as Footprint.Steps has them
	// Groups are the rounded bytes of the first groups of the footprint, at each sample.
	Groups [][]int64
	// Others is memory of stacks that have none at the footprint's moment, in the order of their first blocks.
	Others []Other
	// Left is how many of Others there were no room for.
	Left int

	trace weak.Pointer[timeline.Timeline]
}

// IsSame reports whether two courses are of one trace, which was built once.
func (c *Course) IsSame(o *Course) bool { return c != nil && o != nil && c.trace == o.trace }

// Other is memory from one place and for one purpose, of stacks that have none at the footprint's moment.
type Other struct {
	Site, Module string
	Use          category.Category
	Bytes        []int64 // rounded, at each sample
}

// Sample is what is active right after Event, the one of the events First to Last after which most is: no peak is lost
// between samples, and the moment of the footprint has one of its own.
type Sample struct {
	Span
	Event  int
	Active int64 // rounded bytes
}

// Span is the events First to Last.
type Span struct{ First, Last int }

// maxFollowed bounds the groups whose course is kept, largest first, and the others.
const maxFollowed = 2000

// follow gives the course of the groups, with about n samples, which end where steps end, unless there are more of these.
func (f *Footprint) follow(q *Subject, event, n int, known *grouping) *Course {
	t := q.Timeline
	c := &Course{Events: t.Trace.Len(), At: event, trace: weak.Make(t)}
	if c.Events == 0 {
		return nil
	}
	active := t.ActiveLevels()
	_, c.Peak = active.Highest(0, c.Events-1)
	for i := range t.OOMs {
		if e := t.OOMs[i].Event; e >= 0 && e < c.Events {
			c.OOMs = append(c.OOMs, e)
		}
	}
	ends := []int{c.Events, event, event + 1}
	for k := range min(n, c.Events) {
		ends = append(ends, k*c.Events/min(n, c.Events))
	}
	for _, s := range q.Steps.Steps {
		c.Steps = append(c.Steps, Span{s.First, s.Last})
		if len(q.Steps.Steps) <= n {
			ends = append(ends, s.First, s.Last+1)
		}
	}
	slices.Sort(ends)
	first := 0
	for _, end := range slices.Compact(ends) {
		if end <= first || end > c.Events {
			continue
		}
		s := Sample{Span: Span{first, end - 1}}
		s.Active, s.Event = active.Highest(first, end-1)
		c.Samples = append(c.Samples, s)
		first = end
	}
	c.Groups = make([][]int64, min(len(f.Groups), maxFollowed))
	for g := range c.Groups {
		c.Groups[g] = make([]int64, len(c.Samples))
	}
	others := map[key]int{} // -1 for those that there is no room for
	places := map[placeOf]int{}
	bytesOf := func(row int32) []int64 {
		k := known.key(q, row)
		g, ok := known.of[k]
		at, met := others[k]
		if !ok && !met {
			if g, ok = known.find(k); ok {
				known.of[k] = g
			} else {
				at = c.other(known, k, places)
				others[k] = at
			}
		}
		switch {
		case ok && g < len(c.Groups):
			return c.Groups[g]
		case ok:
			return nil
		}
		if at < 0 {
			return nil
		}
		return c.Others[at].Bytes
	}
	// A life takes part in a run of samples: it is added to the first and taken off after the last.
	from := 0 // for a life; they come in order of birth
	for i := range t.Lives {
		l := &t.Lives[i]
		for from < len(c.Samples) && c.Samples[from].Event < int(l.Born) {
			from++
		}
		rest := c.Samples[from:]
		if len(rest) == 0 {
			break
		}
		if l.Freed >= 0 && int(l.Freed) <= rest[0].Event {
			continue // as most: it was there between two samples
		}
		bytes := bytesOf(int32(i))
		if bytes == nil {
			continue
		}
		bytes[from] += l.Rounded
		if l.Freed < 0 {
			continue
		}
		if k := sort.Search(len(rest), func(k int) bool { return rest[k].Event >= int(l.Freed) }); k < len(rest) {
			bytes[from+k] -= l.Rounded
		}
	}
	for _, bytes := range c.Groups {
		accumulate(bytes)
	}
	for i := range c.Others {
		accumulate(c.Others[i].Bytes)
	}
	return c
}

// other is the place among Others of a key that no group has, -1 where there is no room for it.
func (c *Course) other(known *grouping, k key, places map[placeOf]int) int {
	site, module, _ := known.codes.Names(k.place)
	p := placeOf{site, module, k.use}
	at, ok := places[p]
	if ok {
		return at
	}
	at = len(c.Others)
	if at == maxFollowed {
		at = -1
		c.Left++
	} else {
		c.Others = append(c.Others, Other{site, module, k.use, make([]int64, len(c.Samples))})
	}
	places[p] = at
	return at
}

// placeOf tells Others apart.
type placeOf struct {
	site, module string
	use          category.Category
}

// accumulate makes levels of changes.
func accumulate(bytes []int64) {
	for k := 1; k < len(bytes); k++ {
		bytes[k] += bytes[k-1]
	}
}
