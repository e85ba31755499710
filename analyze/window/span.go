package window

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// EdgeWords is what From and To of a Span understand, for help and errors.
const EdgeWords = "an event like 1234, a time like +1.5s or 1750000000000000, step:3, start or end"

// Span is the part of a trace that is asked for, both ends included. An end is
//
//	start, end     that of the trace, which an empty one means too
//	1234, #1234    an event, by its number in the file
//	+1.5s, 83ms    the time so long after the first event
//	17500000000000 that time, in microseconds since the Unix epoch
//	step:3         a step that the program named, by number from 0 or by name
//
// Numbers of events are those of one GPU. Where events have times, the others are cut at the same.
type Span struct {
	From, To string
	// Device is the GPU whose events the numbers mean, below 0 for the one that has most.
	Device int
	// Steps are those that were recorded beside the snapshot, if any.
	Steps []Step
}

// Step is a step of the program, of times in microseconds since the Unix epoch, both included.
type Step struct {
	Name       string
	Start, End int64
}

// Named reports whether an end of it is a step.
func (sp *Span) Named() bool {
	return strings.HasPrefix(sp.From, "step:") || strings.HasPrefix(sp.To, "step:")
}

// Recorded lists the steps of the last run in a recorder's file, each from the end of the one before it.
func Recorded(f *sidecar.File) (out []Step) {
	if len(f.Runs) == 0 {
		return nil
	}
	run := &f.Runs[len(f.Runs)-1]
	from := run.Time / 1000 // of nanoseconds
	for _, sample := range run.Samples {
		if sample.Step == nil {
			continue
		}
		end := sample.Time / 1000
		out = append(out, Step{Name: strconv.FormatInt(*sample.Step, 10), Start: from, End: end})
		from = end + 1
	}
	return out
}

// edge is one end of a span: an event, a time, or a step.
type edge struct {
	text   string
	event  int   // -1 for none
	time   int64 // in microseconds since the Unix epoch, below 0 for none
	after  int64 // in microseconds since the first event, below 0 for none
	step   string
	isStep bool
}

// oldestTime tells times from events: as microseconds since the epoch it is in January 1970, and no trace has so many
// events.
const oldestTime = 1e12

// edges reads both ends.
func (sp *Span) edges() (out [2]edge, err error) {
	for i, text := range []string{cmp.Or(sp.From, "start"), cmp.Or(sp.To, "end")} {
		if out[i], err = parse(text); err != nil {
			return out, err
		}
	}
	a, b := &out[0], &out[1]
	if a.event > b.event && b.event >= 0 || a.time > b.time && b.time >= 0 || a.after > b.after && b.after >= 0 {
		return out, refuse("it would begin at %s, after its end %s", a.text, b.text)
	}
	return out, nil
}

// Check says what is wrong with the words of a span, nil for nothing.
func (sp *Span) Check() error {
	_, err := sp.edges()
	return err
}

func parse(text string) (edge, error) {
	e := edge{text: text, event: -1, time: -1, after: -1}
	switch text {
	case "start":
		e.event = 0
		return e, nil
	case "end":
		e.event = math.MaxInt32
		return e, nil
	}
	if e.step, e.isStep = strings.CutPrefix(text, "step:"); e.isStep {
		return e, nil
	}
	if digits := strings.TrimPrefix(text, "#"); digits != "" && strings.Trim(digits, "0123456789") == "" {
		v, err := strconv.ParseInt(digits, 10, 64)
		switch {
		case err == nil && v >= oldestTime && digits == text:
			e.time = v
			return e, nil
		case err == nil && v < math.MaxInt32:
			e.event = int(v)
			return e, nil
		}
		return e, refuse("%s is more than any trace has", text)
	}
	if d, err := time.ParseDuration(strings.TrimPrefix(text, "+")); err == nil && d >= 0 {
		e.after = d.Microseconds()
		return e, nil
	}
	return e, refuse("expected %s, not %q", EdgeWords, text)
}

// limit is an end of a window in one trace: an event, or a time where event is below 0.
type limit struct {
	event int
	time  int64
}

type limits struct{ from, to limit }

// reached reports whether event i lies at a beginning or behind it.
func (l *limit) reached(i int, e *snapshot.Event) bool {
	if l.event >= 0 {
		return i >= l.event
	}
	return e.Time >= l.time
}

// passed reports whether event i lies behind an end.
func (l *limit) passed(i int, e *snapshot.Event) bool {
	if l.event >= 0 {
		return i > l.event
	}
	return e.Time > l.time
}

// main is the GPU whose events the numbers mean.
func (v *survey) main(lists []int, device int) (int, *list) {
	best, most := -1, -1
	for d, at := range lists {
		if at >= 0 && (d == device || device < 0 && v.lists[at].Events > most) {
			best, most = d, v.lists[at].Events
		}
	}
	if best < 0 {
		return device, &list{}
	}
	return best, &v.lists[lists[best]]
}

// extent says which events and times a trace has.
func extent(device int, l *list) string {
	switch {
	case l.Events == 0:
		return fmt.Sprintf("GPU %d has no trace", device)
	case l.First == 0 || l.Last < l.First:
		return fmt.Sprintf("the trace of GPU %d has events 0 to %d, and no times", device, l.Events-1)
	}
	return fmt.Sprintf("the trace of GPU %d has events 0 to %d, times +0s to +%s, or %d to %d", device, l.Events-1,
		time.Duration(l.Last-l.First)*time.Microsecond, l.First, l.Last)
}

// resolve finds the limits in each trace, by device.
func (sp *Span) resolve(s *snapshot.Snapshot, all *survey, lists []int, edges [2]edge) ([]limits, error) {
	device, l := all.main(lists, sp.Device)
	timed := l.First > 0 && l.Last >= l.First
	var found [2]limit // of that device
	var at [2]int64    // for the others, below 0 for none
	for k, e := range edges {
		at[k] = -1
		switch {
		case e.isStep:
			var err error
			if found[k], at[k], err = sp.step(s, device, l, e.step, k); err != nil {
				return nil, err
			}
		case e.event == math.MaxInt32 || e.event == 0 && e.text == "start":
			found[k] = limit{event: e.event}
		case e.event >= l.Events:
			return nil, refuse("no event %s; %s", e.text, extent(device, l))
		case e.event >= 0:
			found[k] = limit{event: e.event}
			if timed {
				at[k] = l.times[k]
			}
		default:
			us := max(e.time, 0)
			if e.after >= 0 {
				us = l.First + e.after
			}
			if !timed || us < l.First && k == 1 || us > l.Last && k == 0 {
				return nil, refuse("no event at %s; %s", e.text, extent(device, l))
			}
			found[k], at[k] = limit{event: -1, time: us}, us
		}
	}
	out := make([]limits, len(lists))
	for d, list := range lists {
		mine := found
		if d != device && list >= 0 && all.lists[list].First > 0 {
			for k := range mine {
				if at[k] >= 0 {
					mine[k] = limit{event: -1, time: at[k]}
				}
			}
		}
		out[d] = limits{mine[0], mine[1]}
	}
	return out, nil
}

// step finds where a step begins (end 0) or ends (1), with the time for other devices, below 0 for none: among those
// that were recorded beside the snapshot, that scopes name, and that user_metadata names.
func (sp *Span) step(s *snapshot.Snapshot, device int, l *list, name string, end int) (limit, int64, error) {
	timed := l.First > 0 && l.Last >= l.First
	all := sp.Steps
	if len(all) == 0 && timed {
		for _, sc := range steps.Named(s, device, l.First, l.Last) {
			all = append(all, Step{sc.Name, sc.Start, sc.End})
		}
	}
	if len(all) > 0 && timed {
		k := pick(name, len(all), func(i int) string { return all[i].Name })
		if k < 0 {
			return limit{}, 0, refuse("no step %q; the file has steps 0 to %d (%s to %s)", name, len(all)-1, all[0].Name,
				all[len(all)-1].Name)
		}
		us := [2]int64{all[k].Start, all[k].End}[end]
		return limit{event: -1, time: us}, us, nil
	}
	text := func(i int) string { return s.Strings.Get(l.named[i].text) }
	if n := len(l.named); n > 0 {
		k := pick(name, n, text)
		if k < 0 {
			return limit{}, 0, refuse("no step %q; user_metadata names %d stretches, from %q to %q", name, n, text(0),
				text(n-1))
		}
		if end == 1 { // the last stretch of that text
			for i := n - 1; i > k; i-- {
				if l.named[i].text == l.named[k].text {
					k = i
					break
				}
			}
		}
		return limit{event: [2]int{l.named[k].first, l.named[k].last}[end]}, -1, nil
	}
	return limit{}, 0, refuse("no step %q: the program named none, in record_function scopes or user_metadata, and those of "+
		"its loops show in the whole trace alone; %s", name, extent(device, l))
}

// pick is the place of a name, or of the one with that number; -1 for none.
func pick(name string, n int, of func(int) string) int {
	for i := range n {
		if name != "" && of(i) == name {
			return i
		}
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < n {
		return i
	}
	return -1
}
