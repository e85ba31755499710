package holder

import (
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Result says who holds the memory that is allocated at the end of a snapshot.
type Result struct {
	Devices []Device
	Holders []Holder // of all devices; ghosts first, then others, then what is as it should be
	// Stray are storages whose address is in no allocated block: memory of another allocator,
	// or freed between the two dumps. Their bytes are their own.
	Stray Sum
	// Dump and Earlier name the recorder's dump and the one that it was compared with, "" if
	// there was none.
	Dump, Earlier string
	File          string // base name of the recorder's file
	// Unproven are growths of the trace whose memory is not, or for the most part not, behind
	// a ghost: what holds it is as it should be, or was not seen.
	Unproven []Unproven
	Notes    []string
}

// Unproven is a growth and what holds its memory, most bytes first.
type Unproven struct {
	Device int
	*ghost.Growth
	Holders []int // of Result.Holders
}

// Device is the closing of one device's books:
// Allocated = the bytes of all holders on it + Unheld.
type Device struct {
	Ordinal   int
	Allocated Sum // blocks that the program has not freed
	Held      Sum // blocks that a storage lies in
	// Unheld are blocks that no storage lies in: workspaces of libraries, buffers of C++, and
	// memory that autograd keeps for itself.
	Unheld      Sum
	UnheldSites []Site
	free        *int64 // on the device, at the snapshot's moment; nil unknown
}

// Holder is one reference, or many of the same name, with the memory behind it.
type Holder struct {
	Reference
	Standing Standing
	Devices  []int // ordinals
	// Sum is the memory whose easiest chain runs through it; all holders add up.
	Sum
	Blocks  []Block // that Sum adds up
	Graph   Sum     // of it, what is reached through an autograd graph
	Tensors int     // that are held directly, with or without a graph behind them
	Objects int     // how many objects of this name
	// Frees is what is freed when the objects behind the reference are dropped or emptied,
	// whoever else refers to them: also memory whose chain runs elsewhere. Alone is the part
	// of it that goes when only this one reference is dropped.
	Frees, Alone int64
	// Shared is the part of Sum that something else keeps as well, and SharedWith some of
	// those references.
	Shared     int64
	SharedWith []string
	Also       []string // other references to the same object
	Chain      string   // from the root to one of the tensors
	Hops       []string // the same, hop by hop: a name may look like what is between hops
	Sites      []Site   // where it was allocated, most bytes first
	Uses       []Use    // what it is for, most bytes first
	// Grown is the memory at sites that grow, by the trace.
	Grown  Sum
	PerLap int64            // bytes that each lap of the loop leaves
	Laps   int              // of the loop
	Loop   snapshot.FrameID // the loop, 0 for none
	// Storage are the storages by their own bytes, and Before those that were behind the same
	// name in the earlier dump. Formerly is the name that most of them had then, if it was
	// another: a list that was returned since, for example.
	Storage, Before Sum
	Formerly        *Reference

	// Steady says that it had as much in the earlier dump, some steps before: its memory does
	// not grow, whatever the trace looks like.
	Steady bool
	// Keys counts those of a dict in the earlier dump, and Gone those of them that it has no more.
	Keys, Gone int64
	// Ordered says that it is an OrderedDict, which caches with a bound are mostly made of.
	Ordered bool
	// Bound is nil where the memory is in no container, or in one without a bound that is known.
	Bound *Bound

	rows    []int32         // of graph.memory
	object  []int32         // the objects behind the reference
	growth  *ghost.Growth   // that most of Grown is part of, nil for none
	bounded map[int32]int64 // bytes in each container that has a bound, by node
	hooked  bool            // a hook is on the chain
	back    string          // an attribute by which a cycle closes
}

// Block is a block that is allocated at the end: a row of the Lives of a device's timeline.
type Block struct {
	Device int // ordinal
	Row    int32
}

// Site is the memory of one stack.
type Site struct {
	Stack snapshot.StackID
	Sum
}

// Use is the memory of one category.
type Use struct {
	Name string
	Sum
}

// Room is what a device could give when the snapshot was written, beyond the memory that is in use: what is free
// on it and what PyTorch has reserved; false when the recorder did not see it.
func (r *Result) Room(t *timeline.Timeline) (int64, bool) {
	for _, d := range r.Devices {
		if d.Ordinal == t.Device && d.free != nil {
			return *d.free + t.Final.Reserved - t.Final.Active, true
		}
	}
	return 0, false
}
