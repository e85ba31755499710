package oom

import "github.com/snapana/snapana/analyze/allocator"

// Cause is why a request failed, as far as the figures say.
type Cause string

const (
	Absurd        Cause = "absurd"          // no device has so much, or this one has not
	TooLarge      Cause = "too-large"       // more than the process could have with every tensor freed
	Limit         Cause = "limit"           // the memory fraction or watermark is used up
	Fragmentation Cause = "fragmentation"   // enough of its stream's memory is free, in pieces
	Pools         Cause = "private-pools"   // what is free is kept for CUDA graphs and other private pools
	OtherStream   Cause = "other-stream"    // what is free is another stream's, or waits for one
	Unsplit       Cause = "unsplit"         // one piece is large enough, and max_split_size_mb kept it
	Fraction      Cause = "fraction"        // a memory fraction is set, and the device had room
	Room          Cause = "room"            // the device had room, and no fraction is recorded
	Others        Cause = "other-processes" // memory outside of PyTorch's took what was missing
	Growth        Cause = "growth"          // without what a loop leaves behind, it would have been served
	Joined        Cause = "joined"          // free pieces and the device's rest would do together
	Capacity      Cause = "capacity"        // live tensors fill the device
	Outside       Cause = "outside"         // the caching allocator did not fail, CUDA did
	Host          Cause = "host"            // the machine's memory, not a device's
	TooFew        Cause = "unknown"         // too few figures
)

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
