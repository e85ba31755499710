package attribution

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// Moment is a point of a trace: right after Event, which is -1 before the first.
type Moment struct {
	Event int
	Name  string // "at the peak of active bytes", "at the end", "at step 3"
}

// NoTraceError says that a moment needs a trace, and the file has none of that device.
type NoTraceError struct{ Device int }

func (e *NoTraceError) Error() string {
	return fmt.Sprintf("the file has no trace of GPU %d", e.Device)
}

// MomentError says that a text names no moment of any trace.
type MomentError struct{ msg string }

func (e *MomentError) Error() string { return e.msg }

// AtWords is what Locate understands, for help and errors.
const AtWords = "peak, end, oom, start, an event like 1234, a time like +1.5s or 1750000000000000, " +
	"step:3, or annotation:TEXT"

// Locate finds the moment that a user typed:
//
//	start          before the first event
//	peak           the highest active bytes
//	oom            the last out-of-memory event
//	end            after the last event, which is the dump's own state
//	1234, #1234    right after an event of the trace
//	+1.5s, 83ms    that long after the first event
//	17500000000000 that time, in microseconds since the Unix epoch
//	step:3         after the last event of a step, by number from 0 or by name
//	annotation:x   right after the first annotation of a tensor that is x, else that has x in its text
//
// Without a trace the error is a *NoTraceError, and of a text that is none of these a *MomentError.
func Locate(s *snapshot.Snapshot, t *timeline.Timeline, at string) (Moment, error) {
	n := t.Trace.Len()
	switch at {
	case "start":
		return Moment{-1, "before the trace"}, nil
	case "end":
		return Moment{n - 1, "at the end"}, nil
	}
	if n == 0 {
		return Moment{}, &NoTraceError{t.Device}
	}
	if name, ok := strings.CutPrefix(at, "step:"); ok {
		return locateStep(steps.Find(s, t).Steps, name)
	}
	if text, ok := strings.CutPrefix(at, "annotation:"); ok {
		return locateAnnotation(s, t, text)
	}
	switch at {
	case "peak":
		return Peak(t, "active")
	case "oom":
		switch k := len(t.OOMs); k {
		case 0:
			return Moment{}, fmt.Errorf("the trace of GPU %d has no out-of-memory event", t.Device)
		case 1:
			return Moment{t.OOMs[0].Event, "when it ran out of memory"}, nil
		default:
			return Moment{t.OOMs[k-1].Event, fmt.Sprintf("when it ran out of memory for the last of %d times", k)}, nil
		}
	}
	if digits := strings.TrimPrefix(at, "#"); isNumber(digits) {
		v, err := strconv.ParseInt(digits, 10, 64)
		if err == nil && v >= oldestTime && digits == at {
			return locateTime(t, v, at)
		}
		if err != nil || v >= int64(n) {
			return Moment{}, fmt.Errorf("the trace of GPU %d has %s", t.Device, eventRange(n))
		}
		return Moment{int(v), "after event " + units.Count(v)}, nil
	}
	if d, err := time.ParseDuration(strings.TrimPrefix(at, "+")); err == nil && d >= 0 {
		return locateTime(t, t.Trace.Time(0)+d.Microseconds(), at)
	}
	return Moment{}, &MomentError{fmt.Sprintf("expected %s (the trace of GPU %d has %s)", AtWords, t.Device,
		eventRange(n)+timeRange(t))}
}

// Series lists what has a peak.
func Series() []string { return []string{"reserved", "active", "allocated", "requested"} }

// Peak is the moment of the highest bytes of one series: "reserved", "active", "allocated" or
// "requested". Without a trace the error is a *NoTraceError.
func Peak(t *timeline.Timeline, series string) (Moment, error) {
	i := slices.Index(Series(), series)
	if i < 0 {
		return Moment{}, fmt.Errorf("unknown series %q; choose from %s", series, strings.Join(Series(), ", "))
	}
	if t.Trace.Len() == 0 {
		return Moment{}, &NoTraceError{t.Device}
	}
	peaks := []timeline.Peak{t.PeakReserved, t.PeakActive, t.PeakAllocated, t.PeakRequested}
	return Moment{peaks[i].Event, "at the peak of " + series + " bytes"}, nil
}

// oldestTime tells times from events: as microseconds since the epoch it is in January 1970,
// and no trace has so many events.
const oldestTime = 1e12

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func eventRange(n int) string {
	if n == 1 {
		return "one event, 0"
	}
	return "events 0 to " + strconv.Itoa(n-1)
}

// timeRange is the trace's length for errors, empty when it has no times.
func timeRange(t *timeline.Timeline) string {
	if first, last, ok := times(t); ok {
		return ", times +0s to +" + span(last-first)
	}
	return ""
}

func times(t *timeline.Timeline) (first, last int64, ok bool) {
	first, last = t.Trace.Time(0), t.Trace.Time(t.Trace.Len()-1)
	return first, last, first > 0 && last >= first
}

// span writes microseconds so that Locate reads them.
func span(us int64) string { return (time.Duration(us) * time.Microsecond).String() }

// locateTime finds the last event before the clock passes a time. The allocator's lock makes
// times rise; where a clock was set back all the same, the first passing counts.
func locateTime(t *timeline.Timeline, us int64, at string) (Moment, error) {
	first, last, ok := times(t)
	switch {
	case !ok:
		return Moment{}, fmt.Errorf("the events of GPU %d have no times in this file; name an event, of %s",
			t.Device, eventRange(t.Trace.Len()))
	case us < first || us > last:
		return Moment{}, fmt.Errorf("the trace of GPU %d has times +0s to +%s, or %d to %d",
			t.Device, span(last-first), first, last)
	}
	e := 0
	for e+1 < t.Trace.Len() && t.Trace.Time(e+1) <= us {
		e++
	}
	return Moment{e, "at " + at}, nil
}

func locateStep(all []steps.Step, name string) (Moment, error) {
	if len(all) == 0 {
		return Moment{}, fmt.Errorf("no steps were found in this trace; name an event or a time")
	}
	found, err := strconv.Atoi(name)
	if err != nil || found < 0 || found >= len(all) {
		found = slices.IndexFunc(all, func(s steps.Step) bool { return name != "" && s.Name == name })
	}
	if found < 0 {
		names := ""
		if first := all[0].Name; first != "" {
			names = fmt.Sprintf(" (%s to %s)", first, all[len(all)-1].Name)
		}
		return Moment{}, fmt.Errorf("the trace has steps 0 to %d%s", len(all)-1, names)
	}
	word := fmt.Sprintf("after step %d of 0 to %d", found, len(all)-1)
	if n := all[found].Name; n != "" {
		word += " (" + n + ")"
	}
	return Moment{all[found].Last, word}, nil
}

func locateAnnotation(s *snapshot.Snapshot, t *timeline.Timeline, text string) (Moment, error) {
	all := Annotations(s, t)
	if len(all) == 0 {
		return Moment{}, fmt.Errorf("the trace of GPU %d has no annotations of tensors (torch.cuda.memory."+
			"_annotate_tensor, torch 2.14)", t.Device)
	}
	get := func(i int) string { return s.Strings.Get(all[i].Text) }
	found := -1
	for i := range all {
		if get(i) == text {
			found = i
			break
		}
		if found < 0 && text != "" && strings.Contains(get(i), text) {
			found = i
		}
	}
	if found < 0 {
		const most = 5
		var some []string
		for i := range all {
			if q := strconv.Quote(get(i)); !slices.Contains(some, q) && len(some) < most {
				some = append(some, q)
			}
		}
		return Moment{}, fmt.Errorf("no annotation of GPU %d has that text; there are %s", t.Device,
			strings.Join(some, ", "))
	}
	return Moment{all[found].Event, fmt.Sprintf("when a tensor was annotated %q", get(found))}, nil
}
