package oom

import (
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot/oomlog"
)

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

// Figures are what is known of a request that failed, from a snapshot or from a message. What a source
// does not tell is unknown, and no cause is judged by it: a message knows no single piece, no stream and no
// growth, a snapshot seldom the device's size.
type Figures struct {
	Stated    Cause       // what the source says by itself, "" for nothing: then arithmetic decides
	Requested oomlog.Size // in a message, what the device was asked for
	Segment   oomlog.Size // what the device was asked for
	Absurd    int64       // sizes from here on are mistakes
	Most      oomlog.Size // what this process could have with every tensor freed
	Total     oomlog.Size // memory of the device
	Free      oomlog.Size // on the device
	Reserved  oomlog.Size // by the allocator

	Left     oomlog.Size // what a limit in bytes leaves to the process
	Fraction float64     // of the device that the process may reserve, 1 for all or unknown
	Spilled  bool        // the driver moved a part to the machine's memory, so that Free is no limit
	NoCache  bool        // the allocator keeps no free blocks

	Pieces  oomlog.Size // free blocks that the request may use, together
	Largest oomlog.Size // of them
	Private oomlog.Size // free blocks of private pools
	Streams oomlog.Size // free blocks of other streams, and blocks that wait for one
	// Pools is Private where it is a part of what counts as allocated, as in messages: these
	// name it before the device's room, and only where it is enough by itself.
	Pools oomlog.Size

	Lost      oomlog.Size // by how much Elsewhere is known to have grown
	Elsewhere oomlog.Size // outside of PyTorch's allocator, this process's included
	// Foreign is Elsewhere by a message, without this process's where that is told apart. Free pieces
	// and free device memory joined come before it, and count with it.
	Foreign oomlog.Size
	Growth  bool // without what a loop leaves behind, a large part, the request would have been served
}

// absurd is beyond what any device has: sizes from there on are mistakes.
const absurd = 1 << 40

// exact is a figure that is not rounded.
func exact(n int64) oomlog.Size { return oomlog.Size{Bytes: n, Step: 1} }

// Cause judges by arithmetic, the surest first.
func (f *Figures) Cause() Cause {
	asked, free, pieces := f.Requested.Bytes, f.Free.Bytes, f.Pieces.Bytes
	device := f.Free.Known()
	short := f.Segment.Bytes - free // what the device lacked
	room := device && free >= f.Segment.Bytes+allocator.RoundLarge
	enough := func(s oomlog.Size) bool { return s.Known() && s.Bytes >= asked }
	switch {
	case f.Requested.Known() && (asked < 0 || asked >= f.Absurd):
		return Absurd
	case f.Stated != "":
		return f.Stated
	case !f.Requested.Known():
		return TooFew
	case f.Most.Known() && asked > f.Most.Bytes:
		return TooLarge
	case f.Left.Known() && asked > f.Left.Bytes && free >= asked:
		return Limit
	case f.Spilled:
		return Capacity
	case enough(f.Largest):
		return Unsplit
	case enough(f.Pieces):
		return Fragmentation
	case enough(f.Pools):
		return Pools
	case room && f.Fraction < 1:
		return Fraction
	case room:
		return Room
	case f.NoCache && device:
		return Capacity
	case enough(f.Private) || f.Private.Bytes > 0 && device && f.Private.Bytes >= max(short, f.Reserved.Bytes/10):
		return Pools
	case enough(f.Streams):
		return OtherStream
	case f.Streams.Known() && pieces+f.Private.Bytes+f.Streams.Bytes >= asked: // all of them together
		return largest(pieces, f.Private.Bytes, f.Streams.Bytes)
	case !f.Pieces.Known() || !f.Largest.Known() && !device:
		return TooFew
	case f.Lost.Known() && f.Lost.Bytes >= max(short, f.Most.Bytes/10):
		return Others
	case f.Elsewhere.Known() && f.Elsewhere.Bytes >= max(short+ownOutside, f.Total.Bytes/4):
		return Others
	case f.Growth:
		return Growth
	case device && free >= asked && pieces == 0:
		return Room // barely
	case device && pieces+free >= asked:
		return Joined
	case f.Foreign.Known() && f.Foreign.Bytes >= f.Total.Bytes/4 && free+pieces+f.Foreign.Bytes >= asked:
		return Others
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

// figures are those of a report, with which cause is judged.
func (r *Report) figures(e *Evidence) *Figures {
	c := &e.Free.Classes
	private := e.Free.Private
	f := &Figures{
		Requested: exact(r.Requested), Segment: exact(r.Segment), Absurd: absurd,
		Reserved: exact(r.After.Reserved), Fraction: r.Fraction,
		Pieces: exact(c.Releasable + c.Hard + c.Soft), Largest: exact(r.Largest),
		Private: exact(private), Streams: exact(c.Stream - private + c.Pending),
		Growth: r.Ghosts.Blocks > 0 && r.Ghosts.Bytes*4 >= r.After.Active && r.withoutGhosts(),
	}
	if r.DeviceFree >= 0 {
		f.Free, f.Most, f.Lost = exact(r.DeviceFree), exact(r.AtLeast), exact(r.Lost)
	}
	if r.Total != Unknown {
		f.Total, f.Elsewhere = exact(r.Total), exact(r.Elsewhere)
		if r.Total < f.Absurd {
			f.Absurd = r.Total + 1 // no setting helps either
		}
	}
	return f
}
