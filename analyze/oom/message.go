package oom

import (
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// cause judges by arithmetic on the printed figures.
func (g *Group) cause() Cause {
	free, unallocated, tried := g.Free.Bytes, g.UnallocatedBytes(), g.Tried.Bytes
	switch {
	case g.Family == oomlog.Exabyte || tried >= 1<<50:
		return Absurd
	case g.Backend == "cpu":
		return Host
	case g.Family == oomlog.Outside:
		return Outside
	case g.Family == oomlog.Rejected:
		return Limit
	case !g.Tried.Known():
		return TooFew
	case g.Total.Known() && tried > g.Total.Bytes:
		return TooLarge
	case g.Family == oomlog.MPS:
		return g.watermark()
	case g.limited():
		return Limit
	case g.Spilled():
		return Capacity // of the device; what is free on it is not the limit
	case unallocated.Known() && unallocated.Bytes >= tried:
		return Fragmentation
	case g.PrivatePools.Known() && g.PrivatePools.Bytes >= tried:
		return Pools
	case g.Free.Known() && free >= tried+allocator.RoundLarge:
		return Room
	case g.Family == oomlog.Async && g.Free.Known():
		return Capacity // this backend has no free blocks of its own
	case !g.Free.Known() || !unallocated.Known():
		return TooFew
	case free+unallocated.Bytes >= tried:
		return Joined
	case g.foreign() >= g.Total.Bytes/4 && g.Total.Known() && free+unallocated.Bytes+g.foreign() >= tried:
		return Others
	}
	return Capacity
}

// limited reports whether the process may not take as much as the device has left.
func (g *Group) limited() bool {
	if !g.Allowed.Known() {
		return false
	}
	held := g.ReservedBytes()
	if g.Family == oomlog.Async {
		held = g.Allocated
	}
	return held.Known() && held.Bytes+g.Tried.Bytes > g.Allowed.Bytes-g.Allowed.Step && g.Free.Bytes >= g.Tried.Bytes
}

// watermark is the judgement on family K, whose limit is a share of the machine's memory.
func (g *Group) watermark() Cause {
	switch {
	case !g.Allowed.Known() || !g.Allocated.Known():
		return TooFew
	case g.Other.Bytes > g.Allocated.Bytes:
		return Others
	}
	return Limit
}

// foreign is what other processes hold; where the message does not tell them from this
// process's own non-PyTorch memory, both.
func (g *Group) foreign() int64 {
	l := g.Ledger
	if l == nil {
		return 0
	}
	if n, ok := l.Get(RowOthers); ok {
		return n
	}
	n, _ := l.Get(RowForeign)
	return n
}

// Spilled reports whether the process holds more than the device has: the driver moved part
// of it to the machine's memory, as it does under Windows and WSL.
func (g *Group) Spilled() bool {
	r := g.ReservedBytes()
	return g.Total.Known() && r.Known() && r.Bytes > g.Total.Bytes+r.Step+g.Total.Step
}
