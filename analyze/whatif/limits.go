package whatif

import (
	"cmp"
	"context"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Rung is how a run fares when the allocator can reserve so much memory.
type Rung struct {
	Limit int64 // bytes
	// Start says that what was there before the trace does not fit: nothing else is known then.
	Start  bool
	Failed int   // event of the first request that fails, -1 for none
	Asked  int64 // bytes of that request
	Peak   int64 // of reserved bytes, up to that request
	About  bool  // it comes after a request that failed in the run and does not here, so that it is an estimate
}

// Ladder is how a run fares under one setting on devices of several sizes: exactly at its rungs, and in between within
// bounds that hold for any size.
type Ladder struct {
	Rungs []Rung // by limit
	// Safe says until when no request fails. With a limit below Bytes of a step and of none before it, none does before
	// the step's Event; with no such step, none does at all. Nil is unknown.
	Safe []Bound
	// SafeTo bounds the limits of which Safe knows, 0 for all.
	SafeTo int64
	// Sure says by when one has failed: with a limit below Bytes of a step, at its Event or before.
	Sure []Bound
}

// Bound is a step of a Ladder. Bytes and events of a list rise.
type Bound struct {
	Event int
	Bytes int64
}

// Limits of a ladder.
const (
	mostBounds = 64 // of a list
	mostHalves = 9  // replays that look for the least memory that serves all requests
	mostSpread = 6  // replays below that
)

// Climb makes the ladders of the settings that were tried, of which the replays make at most so many steps in all: where
// these are few, those of the recorded settings and the best only, or none. It does nothing where the replay is not to be
// trusted, and fails only when ctx ends.
func (a *Answer) Climb(ctx context.Context, steps int) error {
	if !a.Accuracy.Trusted || a.program == nil {
		return nil
	}
	rows := make([]int, len(a.Rows))
	for i := range rows {
		rows[i] = i
	}
	n := max(len(a.program.ops), 1)
	if steps/len(rows) < 4*n {
		rows = rows[:1]
		if a.Best > 0 {
			rows = append(rows, a.Best)
		}
	}
	return each(len(rows), func(k int) error {
		c := climber{Answer: a, ctx: ctx, row: rows[k], left: steps / len(rows)}
		return c.climb()
	})
}

// At replays one of the settings that were tried, with a limit in bytes.
func (a *Answer) At(ctx context.Context, row int, limit int64) (Rung, error) {
	p := a.program
	o := Options{Conf: a.settings[row].Conf, Capacity: limit, Total: limit, UntilFailure: true}
	if p.StartReserved > limit {
		o.Start = Anew
	}
	out, err := p.Run(ctx, o)
	if err != nil {
		return Rung{}, err
	}
	return rung(limit, out), nil
}

func rung(limit int64, out *Outcome) Rung {
	r := Rung{Limit: limit, Start: out.StartFailed, Failed: -1, Peak: out.ReservedPeak, About: out.Assumed != nil}
	if f := out.First; f != nil {
		r.Failed, r.Asked, r.About = f.Event, f.Requested, !out.Proves(f.Event)
	}
	return r
}

// climber makes one ladder.
type climber struct {
	*Answer
	ctx  context.Context
	row  int
	left int // steps
}

func (c *climber) climb() error {
	r, set := &c.Rows[c.row], &c.settings[c.row]
	l := &Ladder{}
	r.Ladder = l
	out, limit := &r.Outcome, c.Capacity.Reservable
	if limit > 0 && !out.StartFailed {
		l.Rungs = append(l.Rungs, c.own(out))
		l.SafeTo = limit
		if free, err := c.free(); err != nil {
			return err
		} else if free != nil {
			out, l.SafeTo = free, 0
		}
	}
	if set.Conf.Waits() && c.Start.Mode != "anew" {
		l.Safe = safe(out)
	}
	sure := c.program.sure(&set.Conf)
	l.Sure = fewer(sure, func(_, last Bound) Bound { return last })
	defer func() {
		sorting.By(l.Rungs, func(a, b Rung) int { return cmp.Compare(a.Limit, b.Limit) })
		l.Rungs = slices.CompactFunc(l.Rungs, func(a, b Rung) bool { return a.Limit == b.Limit })
	}()
	if l.SafeTo > 0 || out.First != nil || out.StartFailed || len(sure) == 0 {
		return nil
	}
	if set.Conf.Waits() {
		l.Rungs = append(l.Rungs, rung(up(out.ReservedPeak), out))
	} else if _, ok, err := c.try(l, up(out.ReservedPeak)/capacityStep); !ok || err != nil {
		return err
	}
	return c.search(l, sure[len(sure)-1].Bytes, out.ReservedPeak)
}

// own is the rung of the limit that the settings were tried with.
func (c *climber) own(out *Outcome) Rung {
	r := rung(c.Capacity.Reservable, out)
	if out.First != nil && out.Curve != nil {
		r.Peak = 0
		for _, s := range out.Curve {
			if s.First <= out.First.Event {
				r.Peak = max(r.Peak, s.Reserved)
			}
		}
	}
	return r
}

// free is a replay without a limit, nil where there are no steps left for it.
func (c *climber) free() (*Outcome, error) {
	if !c.draw(len(c.program.ops)) {
		return nil, nil
	}
	return c.program.Run(c.ctx, Options{Conf: c.settings[c.row].Conf, Curve: 512})
}

func (c *climber) draw(n int) bool {
	if c.left < n {
		return false
	}
	c.left -= n
	return true
}

// search replays limits, of which all below fails are too little for certain and fits is enough: where requests begin to
// fail, and then evenly spread below.
func (c *climber) search(l *Ladder, fails, fits int64) error {
	low, high := (fails-1)/capacityStep, up(fits)/capacityStep
	for range mostHalves {
		if high-low < 2 {
			break
		}
		mid := low + (high-low)/2
		x, ok, err := c.try(l, mid)
		if !ok || err != nil {
			return err
		}
		if x.Failed < 0 && !x.Start {
			high = mid
		} else {
			low = mid
		}
	}
	for i := range int64(mostSpread) {
		if _, ok, err := c.try(l, low*(mostSpread-i)/(mostSpread+1)); !ok || err != nil {
			return err
		}
	}
	return nil
}

// try adds the rung of a limit in units of capacityStep, false where there are no steps left for it.
func (c *climber) try(l *Ladder, at int64) (Rung, bool, error) {
	if at < 1 || c.left < len(c.program.ops) {
		return Rung{}, false, nil
	}
	x, err := c.At(c.ctx, c.row, at*capacityStep)
	if err != nil {
		return x, false, err
	}
	took := len(c.program.ops)
	if x.Failed >= 0 {
		took = 1 + took*x.Failed/max(c.Events, 1)
	}
	c.left -= took
	l.Rungs = append(l.Rungs, x)
	return x, true, nil
}

func up(n int64) int64 { return (n + capacityStep - 1) / capacityStep * capacityStep }

// safe finds until when the reserved bytes of a replay stay below a limit: until then a smaller device changes nothing.
func safe(out *Outcome) []Bound {
	var all []Bound
	most := int64(-1)
	for _, s := range out.Curve {
		if s.Reserved > most {
			most = s.Reserved
			all = append(all, Bound{s.First, most})
		}
	}
	return fewer(all, func(first, last Bound) Bound { return Bound{first.Event, last.Bytes} })
}

// sure sums up what the program holds at least, whatever the allocator makes of it, with each request: no smaller device
// serves that.
func (p *Program) sure(conf *allocator.Conf) []Bound {
	size := func(row int32) int64 { return conf.Round(p.asks[row].bytes) }
	live := make(map[int32]int64)
	var sum, most int64
	for i := range p.start {
		for k, row := range p.start[i].rows {
			if row >= 0 {
				x := &p.start[i].Pieces[k]
				live[row] = min(x.Size, conf.Round(x.Requested))
				sum += live[row]
			}
		}
	}
	held := make([]bool, len(p.asks))
	most = sum
	all := []Bound{{-1, sum}}
	for i := range p.ops {
		switch op := &p.ops[i]; op.kind {
		case opAlloc, opFail:
			n := size(op.row)
			if sum+n > most {
				most = sum + n
				all = append(all, Bound{int(op.event), most})
			}
			if op.kind == opAlloc {
				held[op.row] = true
				sum += n
			}
		case opFree, opRequest:
			// A block that waits is there until a request needs it, which then waits for the other stream.
			if n, ok := live[op.row]; ok {
				sum -= n
				delete(live, op.row)
			} else if held[op.row] {
				held[op.row] = false
				sum -= size(op.row)
			}
		}
	}
	return all
}

// fewer joins steps that follow each other, so that few are left.
func fewer(all []Bound, join func(first, last Bound) Bound) []Bound {
	n := len(all)
	if n <= mostBounds {
		return all
	}
	out := make([]Bound, mostBounds)
	for i := range out {
		out[i] = join(all[i*n/mostBounds], all[(i+1)*n/mostBounds-1])
	}
	return out
}
