package fit

import (
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/analyze/whatif"
)

// mostValue is the highest value that is tried.
const mostValue = 1 << 30

// beyond is how many values above the first that fails are tried, for fit is not quite monotonic.
const beyond = 3

// largest searches the largest value that fits, with the settings and with others.
func (f *fitter) largest(r *Result) error {
	base := f.all[0].At // with the other values of the last that was asked for, or recorded
	for _, rec := range f.all {
		if slices.Compare(rec.At, base) > 0 {
			base = rec.At
		}
	}
	if n := len(f.q.To); n > 0 {
		base = f.q.To[n-1]
	}
	at := func(x int64) Point {
		p := slices.Clone(base)
		p[0] = x
		return p
	}
	stage.At(f.ctx, stage.Searching, 0, 0)
	search := func(s side, set *whatif.Setting, margin float64, guess int64) (int64, error) {
		c := search{hi: f.most(at, s, margin) + 1, fits: func(x int64) (bool, error) {
			ok, _, err := f.fits(at(x), s, set, margin)
			return ok, err
		}}
		return c.run(guess)
	}
	n, err := search(mid, nil, 0, 0)
	if err != nil {
		return err
	}
	if n >= mostValue {
		r.Notes = append(r.Notes, "Memory does not grow with "+f.q.Names[0]+" in these recordings.")
		return nil
	}
	if n > 0 {
		r.Largest = &n
	}
	l := &Limit{Values: at(n + 1), Low: n, High: n, Beyond: []int64{}}
	r.Limit = l
	ok, out, err := f.fits(l.Values, mid, nil, 0)
	if err != nil {
		return err
	}
	if !ok {
		m := f.model(f.nearest(l.Values, -1))
		if out.First != nil {
			l.Place, l.Requested = m.place(out.First.Event), out.First.Requested
			l.Short = max(out.First.Reserved+f.conf.SegmentSize(f.conf.Round(out.First.Requested))-f.capacity, 0)
		} else {
			l.Place = m.place(-1)
		}
	}
	for x := n + 2; x < n+2+beyond && n < mostValue; x++ {
		if ok, _, err := f.fits(at(x), mid, nil, 0); err != nil {
			return err
		} else if ok {
			l.Beyond = append(l.Beyond, x)
		}
	}
	off := f.off(l.Values)
	if l.Low, err = search(high, nil, off, int64(float64(n)/(1+off))); err != nil {
		return err
	}
	if l.High, err = search(low, nil, -off/(1+off), int64(float64(n)*(1+off))); err != nil {
		return err
	}
	l.Low, l.High = min(l.Low, n), max(l.High, n)
	p := f.all[0].program
	settings := p.Settings(false)
	if f.q.Settings != nil {
		settings = append(f.q.Settings[:len(f.q.Settings):len(f.q.Settings)], settings[0])
	}
	var outs [2][]*whatif.Outcome // at the largest value and the next
	for i := range outs {
		x := at(max(n, 1) + int64(i))
		q, err := f.program(f.model(f.nearest(x, -1)), x, mid)
		if err != nil {
			return err
		}
		if outs[i], err = q.Sweep(f.ctx, settings, f.options(nil, f.capacity)); err != nil {
			return err
		}
	}
	r.Tried = make([]Tried, len(settings))
	for i := range settings {
		set := &settings[i]
		stage.At(f.ctx, stage.Searching, i, len(settings))
		best := n
		if n == 0 || !served(outs[0][i]) || served(outs[1][i]) || f.model(f.nearest(at(n), -1)).chance {
			if best, err = search(mid, set, 0, n); err != nil {
				return err
			}
		}
		r.Tried[i] = Tried{Text: set.Text, Largest: best}
		if rel := p.Recorded.Release; rel != 0 && set.Conf.Needs > rel {
			r.Tried[i].Needs = set.Conf.Needs.String()
		}
	}
	return nil
}

// most is a value above which nothing fits, for the requested bytes alone are more than there is.
func (f *fitter) most(at func(int64) Point, s side, margin float64) int64 {
	k := mostKey{s, margin}
	n, ok := f.mosts[k]
	if !ok {
		limit := int64(float64(f.capacity) / (1 + margin))
		n = int64(sort.Search(mostValue, func(i int) bool {
			p := at(int64(i) + 1)
			m := f.model(f.nearest(p, -1))
			sides := []side{s}
			if s == mid {
				sides = m.likely()
			}
			return !slices.ContainsFunc(sides, func(s side) bool {
				most, _ := m.peak(p, s)
				return most <= limit
			})
		}))
		f.mosts[k] = n
	}
	return n
}

type mostKey struct {
	side   side
	margin float64
}

// search looks for the largest value that fits.
type search struct {
	lo, hi int64 // fits, and does not
	fits   func(int64) (bool, error)
}

// try looks at a value, and reports whether it fits.
func (c *search) try(x int64) (ok bool, err error) {
	if ok, err = c.fits(x); ok {
		c.lo = x
	} else {
		c.hi = x
	}
	return ok, err
}

// run looks near a guess, or where there is none near the highest value: with growing strides up to one that is too far,
// and in halves then.
func (c *search) run(guess int64) (int64, error) {
	up := false
	if c.lo < guess && guess < c.hi {
		ok, err := c.try(guess)
		if err != nil {
			return 0, err
		}
		up = ok
	}
	for stride := int64(1); c.hi-c.lo > 1; stride *= 2 {
		x := max(c.hi-stride, c.lo+1)
		if up {
			x = min(c.lo+stride, c.hi-1)
		}
		ok, err := c.try(x)
		if err != nil {
			return 0, err
		}
		if ok != up {
			break
		}
	}
	for c.hi-c.lo > 1 {
		if _, err := c.try(c.lo + (c.hi-c.lo)/2); err != nil {
			return 0, err
		}
	}
	return c.lo, nil
}
