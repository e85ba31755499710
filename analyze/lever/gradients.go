package lever

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/timeline"
)

// pause is the time between two backward passes in which no optimizer needs the gradients of the first.
type pause struct {
	from, to int32 // from its first allocation to that of the next backward pass
	stepped  bool  // an optimizer allocated before it
	last     bool  // no backward pass follows
}

// gradients weighs those that live on while the program does something else: freed before the next backward pass, or
// after a step of the optimizer. Between backward passes without a step gradients accumulate, and are needed.
func (f *finder) gradients() {
	var bytes int64
	for _, row := range f.rows {
		l := &f.t.Lives[row]
		if c, trust := f.uses.Of(row); c == category.Gradient && trust >= category.Medium && l.Born >= 0 {
			bytes += l.Rounded
		}
	}
	if bytes < f.least {
		return
	}
	pauses := f.pauses()
	// Whether the gradients of the last pass are done with, the passes before it tell.
	dropped, kept := false, false
	f.inPauses(pauses, func(_ *timeline.Life, p *pause, end int32) {
		if !p.last && !p.stepped {
			dropped, kept = dropped || end <= p.to, kept || end > p.to
		}
	})
	v := finding.Lever{Kind: finding.KeptGradients, Confidence: finding.High, Inferred: true}
	f.inPauses(pauses, func(l *timeline.Life, p *pause, end int32) {
		if !p.stepped && (end > p.to || p.last && (kept || !dropped)) {
			return // the next pass adds to it, or may do
		}
		f.cut(l, p.from, min(end, p.to))
		if f.event >= int(p.from) && f.event < int(min(end, p.to)) {
			count(&v, l)
			if !p.stepped {
				v.Confidence = finding.Medium
			}
		}
	})
	f.weigh(v)
}

// inPauses calls do for each gradient and each pause that it is live in, with the event that ends its life.
func (f *finder) inPauses(pauses []pause, do func(l *timeline.Life, p *pause, end int32)) {
	for row := f.warm; row < len(f.t.Lives); row++ {
		if c, trust := f.uses.Of(int32(row)); c != category.Gradient || trust < category.Medium {
			continue
		}
		l := &f.t.Lives[row]
		end := f.end(l)
		i, _ := slices.BinarySearchFunc(pauses, l.Born, func(p pause, e int32) int { return cmp.Compare(p.from, e) })
		for ; i < len(pauses) && pauses[i].from < end; i++ {
			do(l, &pauses[i], end)
		}
	}
}

// pauses lists them in order.
func (f *finder) pauses() []pause {
	var out []pause
	var open pause
	passed := false
	open.from = -1
	for row := f.warm; row < len(f.t.Lives); row++ {
		l := &f.t.Lives[row]
		switch k := f.kind(l.Stack); {
		case k == backward:
			if open.from >= 0 {
				open.to = l.Born
				out = append(out, open)
			}
			passed, open = true, pause{from: -1}
		case !passed || k == unnamed:
		case k.optimizes():
			open = pause{from: -1, stepped: true}
		case open.from < 0:
			open.from = l.Born
		}
	}
	if open.from >= 0 {
		open.to, open.last = int32(f.t.Trace.Len()), true
		out = append(out, open)
	}
	return out
}
