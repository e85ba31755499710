// Package holder says who keeps the live memory of a snapshot: it joins the Python objects
// that the recorder saw with the blocks of the allocator, by address.
//
// In steps:
//
//  1. Each storage is laid over the live block that its address is in (normally both begin at
//     the same address). What matches nothing is counted on both sides, so that the bytes of
//     all holders and of the blocks without one add up to the allocated bytes.
//  2. From a virtual root above everything that keeps itself alive (modules, running functions,
//     classes, the interpreter, reference cycles, C++), the easiest chain of references to
//     each object is found: the fewest detours through autograd graphs, tracebacks and locals
//     that only pass by, then the fewest steps.
//  3. Going back along the chain from a tensor, the reference is found that a person would name:
//     a closure cell, a variable, an attribute. Positions in lists, keys and autograd edges are
//     passed over. Storages behind the same name are one Holder.
//  4. The dominator tree of the whole graph says what dropping the object behind that
//     reference would free: what cannot be reached without it.
//  5. A holder whose blocks are at sites that grow (package ghost) is a ghost: there the
//     inference from the trace and the objects that were seen agree. Holders that are as they
//     should be, such as a module's parameters, are told apart by how the chain runs.
//
// A chain is one way, chosen to be useful. What else refers to the same object is listed beside
// it, and what is freed is true whatever the chain.
package holder

import (
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Result says who holds the memory that is allocated at the end of a snapshot.
type Result struct {
	File string `json:"recorder"` // base name of the recorder's file
	// Dump and Earlier name the recorder's dump and the one that it was compared with, "" if
	// there was none.
	Dump    string   `json:"dump"`
	Earlier string   `json:"earlier"`
	Devices []Device `json:"devices"`
	Holders []Holder `json:"-"` // of all devices; ghosts first, then others, then what is as it should be
	// Stray are storages whose address is in no allocated block: memory of another allocator,
	// or freed between the two dumps. Their bytes are their own.
	Stray Sum `json:"stray"`
	// Unproven are growths of the trace whose memory is not, or for the most part not, behind
	// a ghost: what holds it is as it should be, or was not seen.
	Unproven []Unproven `json:"-"`
	Notes    []string   `json:"notes"`
	// Alone says that there is no snapshot: see Alone.
	Alone bool `json:"alone"`
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
	Ordinal   int `json:"device"`
	Allocated Sum `json:"allocated"` // blocks that the program has not freed
	Held      Sum `json:"held"`      // blocks that a storage lies in
	// Unheld are blocks that no storage lies in: workspaces of libraries, buffers of C++, and
	// memory that autograd keeps for itself.
	Unheld      Sum    `json:"unheld"`
	UnheldSites []Site `json:"unheld_sites"`

	free *int64 // on the device, at the snapshot's moment; nil unknown
}

// Holder is one reference, or many of the same name, with the memory behind it.
type Holder struct {
	Standing  Standing `json:"standing"`
	Reference `json:"reference"`
	// Formerly is the name that most of its storages had in the earlier dump, if it was another: a
	// list that was returned since, for example.
	Formerly *Reference `json:"formerly,omitempty"`
	Devices  []int      `json:"devices"` // ordinals
	// Bytes and Count are the memory whose easiest chain runs through it; all holders add up.
	Bytes   int64 `json:"bytes"`
	Count   int64 `json:"blocks"`
	Tensors int   `json:"tensors"`     // that are held directly, with or without a graph behind them
	Objects int   `json:"objects"`     // how many objects of this name
	Graph   int64 `json:"graph_bytes"` // of Bytes, what is reached through an autograd graph
	// Frees is what is freed when the objects behind the reference are dropped or emptied,
	// whoever else refers to them: also memory whose chain runs elsewhere. Alone is the part
	// of it that goes when only this one reference is dropped.
	Frees int64 `json:"frees"`
	Alone int64 `json:"frees_alone"`
	// Shared is the part of Bytes that something else keeps as well, and SharedWith some of
	// those references.
	Shared     int64    `json:"shared"`
	SharedWith []string `json:"shared_with"`
	Also       []string `json:"also"`    // other references to the same object
	Chain      string   `json:"chain"`   // from the root to one of the tensors
	Grown      int64    `json:"grown"`   // bytes at sites that grow, by the trace
	PerLap     int64    `json:"per_lap"` // bytes that each lap of the loop leaves
	Laps       int      `json:"laps"`    // of the loop
	// Storage are the storages by their own bytes, and Before those that were behind the same
	// name in the earlier dump.
	Storage Sum `json:"storages"`
	Before  Sum `json:"storages_before"`
	// Gone counts the keys of a dict that it had in the earlier dump, and has no more.
	Gone int64 `json:"keys_gone"`
	// Views are the storages that it keeps for a small part of each, nil for none.
	Views *finding.Views `json:"views,omitempty"`
	// Bound is nil where the memory is in no container, or in one without a bound that is known.
	Bound *finding.Bound `json:"bound,omitempty"`
	Sites []Site         `json:"sites"` // where it was allocated, most bytes first
	Uses  []Use          `json:"uses"`  // what it is for, most bytes first
	// Host is what of it is host memory that is pinned, shared or mapped from a file, most bytes first.
	Host []Use `json:"host"`

	Blocks      []Block          `json:"-"` // that Bytes and Count add up
	Hops        []string         `json:"-"` // Chain, hop by hop: a name may look like what is between hops
	GrownBlocks int64            `json:"-"` // that Grown adds up
	Loop        snapshot.FrameID `json:"-"` // the loop, 0 for none
	// Steady says that it had as much in the earlier dump, some steps before: its memory does
	// not grow, whatever the trace looks like.
	Steady bool `json:"-"`
	// Keys counts those of a dict in the earlier dump.
	Keys int64 `json:"-"`
	// Code is how the program's text uses the objects, nil unknown.
	Code *finding.Code `json:"-"`
	// Lost counts the storages that it had in the earlier dump, and has no more.
	Lost int64 `json:"-"`
	// Orphans counts the parameters that nothing but the optimizer refers to, Optimizers those that have state for
	// parameters of which others have state as well.
	Orphans    int64 `json:"-"`
	Optimizers int64 `json:"-"`
	// Hooks counts those of one function in one registry, of which each keeps memory of its own.
	Hooks int64 `json:"-"`
	// Doubled says that it had half as much at most in the earlier dump, some steps before.
	Doubled bool `json:"-"`
	// Logged says that most of the memory is in records of Python's logging.
	Logged bool `json:"-"`
	// Ordered says that it is an OrderedDict, which caches with a bound are mostly made of.
	Ordered bool `json:"-"`

	rows    []int32         // of graph.memory
	object  []int32         // the objects behind the reference
	host    tally[string]   // bytes by the kind of host memory
	growth  *ghost.Growth   // that most of Grown is part of, nil for none
	blind   bool            // no trace could show its memory growing
	logged  int64           // bytes behind records of Python's logging
	bounded map[int32]int64 // bytes in each container that has a bound, by node
	hooks   map[hooked]map[int32]bool
	aside   aside // what Fix needs to know
}

// Block is a block that is allocated at the end: a row of the Lives of a device's timeline.
type Block struct {
	Device int // ordinal
	Row    int32
}

// Site is the memory of one stack.
type Site struct {
	Stack snapshot.StackID `json:"-"`
	Name  string           `json:"site"` // of Stack, as package attribution gives it; "" without frames
	Sum
}

// Use is the memory of one category.
type Use struct {
	Name string `json:"use"`
	Sum
}

// Room is what a device could give when the snapshot was written, beyond the memory that is in use: what is
// free on it and what PyTorch has reserved; false when the recorder did not see it.
func (r *Result) Room(t *timeline.Timeline) (int64, bool) {
	for _, d := range r.Devices {
		if d.Ordinal == t.Device && d.free != nil {
			return *d.free + t.Final.Reserved - t.Final.Active, true
		}
	}
	return 0, false
}
