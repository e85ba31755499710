package oom

import "github.com/snapana/snapana/analyze/allocator"

// cause judges by arithmetic, the surest first.
func (r *Report) cause(e *Evidence) Cause {
	c := &e.Free.Classes
	own, private := c.Releasable+c.Hard+c.Soft, e.Free.Private
	foreign := c.Stream - private + c.Pending
	known := r.DeviceFree >= 0
	short := r.Segment - r.DeviceFree // what the device lacked
	room := r.DeviceFree >= r.Segment+allocator.RoundLarge
	switch {
	case r.Requested < 0 || r.Requested >= absurdBytes || r.Total != Unknown && r.Requested > r.Total:
		return Absurd
	case known && r.Requested > r.AtLeast:
		return TooLarge
	case r.Largest >= r.Requested:
		return Unsplit
	case own >= r.Requested:
		return Fragmentation
	case room && r.Fraction < 1:
		return Fraction
	case room:
		return Room
	case private >= r.Requested || known && private >= max(short, r.After.Reserved/10):
		return Pools
	case foreign >= r.Requested:
		return OtherStream
	case c.Sum() >= r.Requested: // all of them together
		return largest(own, private, foreign)
	case known && r.Lost >= max(short, r.AtLeast/10):
		return Others
	case r.Elsewhere != Unknown && r.Elsewhere >= max(short+ownOutside, r.Total/4):
		return Others
	case r.Ghosts.Bytes*4 >= r.After.Active && r.withoutGhosts():
		return Growth
	case known && own+r.DeviceFree >= r.Requested:
		return Joined
	}
	return Capacity
}

func largest(own, private, foreign int64) Cause {
	switch max(own, private, foreign) {
	case own:
		return Fragmentation
	case private:
		return Pools
	}
	return OtherStream
}
