// Package fragmentation measures why reserved memory cannot serve requests, and what would have
// to be freed.
//
// Every reserved byte is in exactly one place. Coarsely,
//
//	reserved = active + releasable + split
//
// where releasable is free in segments without a live block, or a whole page of an expandable segment,
// and split is the rest. Finer, what is reserved but not allocated is
//
//	reserved - allocated = releasable + hard + soft + stream + pending
//
//	releasable  free segments of the default pools, and free pages of their expandable segments (2 MiB
//	            each for small blocks, 20 MiB for large ones): torch.cuda.empty_cache() returns them
//	hard        free pieces that live blocks keep in their segment: only a request that fits
//	            one of them can use it
//	soft        those of them at an edge of their segment with free memory right behind the edge:
//	            one piece, were the segments one, as expandable segments are
//	stream      free, but of another stream than the one in question, or of a private pool
//	pending     freed by the program, while another stream may still use it (record_stream)
//
// and what is active but was not asked for is
//
//	active - requested = rounding + remainder
//
//	rounding    up to the next 512 bytes, or as roundup_power2_divisions says
//	remainder   what was left of a block and not worth a split: up to 1 MiB
//
// The stream in question is that of the request where one failed, and else the one with the
// most reserved memory. With free(h) the size of a hole h, a range between live blocks:
//
//	scatter        = 1 - max free(h) / sum free(h)
//	largest usable = max free(h) over the holes of the default pools on that stream: the largest
//	                 request that needs no cudaMalloc
//	with cudaMalloc  the larger of that and of the device's free memory, down to 2 MiB
//
// What keeps a segment is measured in three ways. A block holds hostage the holes that touch it:
// without it they are one. Free and Clear find the fewest blocks without which a request is
// served, by whole segments that go back to the device or by one hole that is large enough. Rank
// goes by stacks, since a program can do without a stack's blocks rather than without some.
package fragmentation

import (
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
)

// Report is the free memory of one device at one moment, in bytes.
type Report struct {
	Reserved    int64 `json:"reserved"`     // all segments
	Active      int64 `json:"active"`       // rounded bytes of live blocks
	Releasable  int64 `json:"releasable"`   // free bytes in segments that hold no live block
	Split       int64 `json:"split"`        // free bytes in partly used segments
	Rounding    int64 `json:"rounding"`     // rounded minus requested bytes of live blocks, Remainder included
	LargestFree int64 `json:"largest_free"` // largest contiguous free range of any stream and pool
	Segments    int   `json:"segments"`
	PartlyUsed  int   `json:"partly_used"`

	Stream    snapshot.StreamID `json:"stream"` // the stream in question
	Classes   Classes           `json:"classes"`
	Remainder int64             `json:"remainder"` // of Rounding, what was not worth a split
	// LargestUsable is the largest free range of the default pools on the stream in question:
	// the largest request that needs no cudaMalloc.
	LargestUsable int64 `json:"largest_usable"`
	// Holes counts the free ranges by size: Holes[i] have 2^i bytes or more, but less than
	// 2^(i+1).
	Holes   [64]Holes `json:"-"`
	Private int64     `json:"private"` // of Classes.Stream, what is of private pools
	// Groups are the streams and pools, most reserved bytes first. They sum to the device's.
	Groups []Group `json:"groups"`
	// Pins lists the partly used segments, most free bytes first.
	Pins []Pin `json:"-"`
}

// Classes is what is reserved but not allocated, by what keeps it from being used.
type Classes struct {
	Releasable int64 `json:"releasable"`
	Hard       int64 `json:"hard"`
	Soft       int64 `json:"soft"`
	Stream     int64 `json:"stream"`
	Pending    int64 `json:"pending"`
}

// Sum is reserved minus allocated.
func (c *Classes) Sum() int64 { return c.Releasable + c.Hard + c.Soft + c.Stream + c.Pending }

// Holes are free ranges of about one size.
type Holes struct {
	From  int64 `json:"from"` // bytes of the smallest that it counts, a power of two; 0 in a row without any
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

// Group is the memory of one stream in one pool: a free block serves only requests of both.
type Group struct {
	Stream     snapshot.StreamID `json:"stream"`
	Segments   int               `json:"segments"`
	Reserved   int64             `json:"reserved"`
	Active     int64             `json:"active"`
	Pending    int64             `json:"pending"`      // of Active, what waits for another stream
	Releasable int64             `json:"releasable"`   // free bytes in segments without a live block, and in pages
	Split      int64             `json:"split"`        // free bytes in the others
	Largest    int64             `json:"largest_free"` // largest hole
	Pool       snapshot.PoolID   `json:"pool"`         // zero is the default pools, small and large
}

// Scatter is the share of the free memory that is not in the largest piece: 0 when it is all in
// one, near 1 when it is in many small ones, 0 too when nothing is free.
func (r *Report) Scatter() float64 {
	free := r.Releasable + r.Split
	if free == 0 {
		return 0
	}
	return 1 - float64(r.LargestFree)/float64(free)
}

// Servable is the largest request that could succeed when the device has so many bytes free, -1
// for unknown: then it is what needs no cudaMalloc.
func (r *Report) Servable(deviceFree int64) int64 {
	return max(r.LargestUsable, deviceFree/allocator.RoundLarge*allocator.RoundLarge)
}

// Pin is a segment that cannot be released, and what keeps it.
type Pin struct {
	Segment int     // row of State.Segments
	Free    int64   // bytes held hostage: those that empty_cache would not return
	Live    int64   // rounded bytes of the live blocks
	Lives   []int32 // rows of Timeline.Lives
}
