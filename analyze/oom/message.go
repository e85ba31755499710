package oom

import (
	"math"

	"github.com/snapana/snapana/snapshot/oomlog"
)

// figures are those that a message prints, and what follows from its form.
func (g *Group) figures() *Figures {
	f := &Figures{
		Stated: g.stated(), Requested: g.Tried, Segment: g.Tried, Absurd: absurd, Most: g.Total, Total: g.Total,
		Free: g.Free, Reserved: g.Reserved, Left: g.left(), Fraction: 1, Spilled: g.Spilled(),
		NoCache: g.Family == oomlog.Async, Pieces: g.Unallocated, Pools: g.PrivatePools,
	}
	if g.Family == oomlog.Exabyte {
		f.Requested = exact(math.MaxInt64)
	}
	if l := g.Ledger; l != nil {
		n, told := l.Get(RowOthers)
		if !told {
			n, _ = l.Get(RowForeign)
		}
		f.Foreign = exact(n)
	}
	return f
}

// stated is the cause that the form of a message says by itself.
func (g *Group) stated() Cause {
	switch {
	case g.Backend == "cpu":
		return Host
	case g.Family == oomlog.Outside:
		return Outside
	case g.Family == oomlog.Rejected:
		return Limit
	case g.Family != oomlog.MPS:
		return ""
	case !g.Tried.Known() || !g.Allowed.Known() || !g.Allocated.Known():
		return TooFew
	case g.Other.Bytes > g.Allocated.Bytes: // the watermark is a share of the machine's memory
		return Others
	}
	return Limit
}

// left is what the message's limit leaves to the process.
func (g *Group) left() oomlog.Size {
	held := g.Reserved
	if g.Family == oomlog.Async {
		held = g.Allocated
	}
	if !g.Allowed.Known() || !held.Known() {
		return oomlog.Size{}
	}
	return oomlog.Size{Bytes: g.Allowed.Bytes - g.Allowed.Step - held.Bytes, Step: g.Allowed.Step + held.Step}
}

// Spilled reports whether the process holds more than the device has: the driver moved part
// of it to the machine's memory, as it does under Windows and WSL.
func (g *Group) Spilled() bool {
	r := g.Reserved
	return g.Total.Known() && r.Known() && r.Bytes > g.Total.Bytes+r.Step+g.Total.Step
}
