package phase

import (
	"regexp"

	"github.com/snapana/snapana/analyze/timeline"
)

// Release is a moment at which a program had given memory up: after a phase that is there for that, or in which most
// went, or after blocks went at once that had lived for most of the trace.
type Release struct {
	Phase  string // its name, "" where memory went outside of any
	Lap    int64  // from 1 on
	Event  int    // the last before the moment
	Before int64  // bytes allocated when it began
	Meant  bool   // the name of the phase says that it is to give memory up
}

// releasing are names of phases in which a program gives memory up, as inference engines and trainers that share a
// device with them call it.
var releasing = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:sleep|off-?load|unload|release|evict|free|clear|clean-?up|` +
	`tear-?down|shut-?down|suspend|park)`)

const (
	mostOf  = 2        // a release is of so many-th of what was allocated at its beginning, or more
	leastOf = 4 << 20  // in bytes: less is not worth a word
	descent = 3        // how often memory may go in a trace and still be released, not reused
	young   = 100      // events: less is no life of a program
	worked  = 16       // frees before a release: without them, all that there is may be one step
	rises   = 1.0 / 16 // of what went: when so much has come, a release is over
)

// FindRelease finds the last release of a device, nil for none: of phases whose names say so the last lap that the trace
// has as a whole, else a lap that gave most up, else what went at once that was there for long.
func FindRelease(t *timeline.Timeline, phases []Phase) *Release {
	if !t.HasHistory() || t.Recording.BlocksUnknown() {
		return nil
	}
	var best *Release
	named := false
	for i := range phases {
		p := &phases[i]
		says := !p.Library && releasing.MatchString(p.Name)
		for k := len(p.List) - 1; k >= 0; k-- {
			l := &p.List[k]
			gone := l.Start - l.End
			if l.How != ByTrace || !l.Ended || l.Start < leastOf || p.Library ||
				!says && (gone < l.Start/mostOf || l.Start < t.PeakAllocated.Bytes/mostOf) {
				continue
			}
			if best == nil || says && !named || says == named && l.Last > best.Event {
				best, named = &Release{p.Name, l.Number, l.Last, l.Start, says}, says
			}
			break
		}
	}
	if best != nil {
		return best
	}
	return atOnce(t)
}

// atOnce finds the last fall of memory to half in which most of what went had been there for half of the trace until
// then. Memory that falls so again and again is used anew in each step.
func atOnce(t *timeline.Timeline) *Release {
	level := t.AllocatedBytes()
	peak := t.PeakAllocated.Bytes
	if len(level) < young || peak < leastOf {
		return nil
	}
	falls, top, from, to := 0, 0, -1, -1
	high := false
	for i, n := range level {
		switch {
		case n >= peak/4*3:
			high, top = true, i
		case high && n <= peak/mostOf:
			high, from, to = false, top, i
			falls++
		}
	}
	if from < 0 || falls > descent {
		return nil
	}
	low := to // where it goes on to fall, but for what comes in between
	for i := to; i < len(level) && float64(level[i]-level[low]) <= rises*float64(level[from]-level[low]); i++ {
		if level[i] <= level[low] {
			low = i
		}
	}
	begin := from
	for begin > 0 && level[begin-1] >= level[begin] {
		begin--
	}
	var old int64
	before, first := 0, low // frees before, and the first of what was there for long
	for i := range t.Lives {
		l := &t.Lives[i]
		end := int(l.GivenUp())
		switch {
		case end >= from && end < low && end-int(l.Born) >= end/2:
			old += l.Rounded
			first = min(first, end)
		case end >= 0 && end < begin:
			before++
		}
	}
	if old < level[first]/mostOf || before < worked {
		return nil
	}
	return &Release{Event: low - 1, Before: level[first]}
}
