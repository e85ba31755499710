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
	level, n := t.AllocatedLevels(), t.Trace.Len()
	peak := t.PeakAllocated.Bytes
	if n+1 < young || peak < leastOf {
		return nil
	}
	from, to := -1, -1 // events: after the one it is high for the last time, after the other low
	for falls, at := 0, -1; ; falls++ {
		high, ok := level.Reaches(at, peak/4*3)
		if ok {
			at, ok = level.FallsTo(high, peak/mostOf)
		}
		if !ok {
			if falls == 0 {
				return nil
			}
			break
		}
		if falls == descent {
			return nil
		}
		to = at
	}
	for from = to - 1; level.At(from) < peak/4*3; {
		from--
	}
	low, top, least := to, level.At(from), level.At(to) // where it goes on to fall, but for what comes in between
	for e := to + 1; e < n; e++ {
		now := level.At(e)
		if float64(now-least) > rises*float64(top-least) {
			break
		}
		if now <= least {
			low, least = e, now
		}
	}
	begin := from
	for begin >= 0 && level.At(begin-1) >= level.At(begin) {
		begin--
	}
	var old int64
	before, first := 0, low+1 // frees before, and the first of what was there for long
	for i := range t.Lives {
		l := &t.Lives[i]
		end := int(l.GivenUp())
		switch {
		case end > from && end <= low && end-int(l.Born) >= end/2:
			old += l.Rounded
			first = min(first, end)
		case end >= 0 && end <= begin:
			before++
		}
	}
	was := level.At(first - 1)
	if old < was/mostOf || before < worked {
		return nil
	}
	return &Release{Event: low, Before: was}
}
