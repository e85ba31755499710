// Package fragmentation measures why reserved memory cannot serve requests, and what would have
// to be freed.
//
// Every reserved byte is in exactly one place. Coarsely,
//
//	reserved = active + releasable + split
//
// where releasable is free in segments without a live block, and split in the others. Finer,
// what is reserved but not allocated is
//
//	reserved - allocated = releasable + hard + soft + stream + pending
//
//	releasable  free segments of the default pools: torch.cuda.empty_cache() returns them
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
// most reserved memory.
package fragmentation

import "snapana/snapshot"

// Report is the free memory of one device at one moment, in bytes.
type Report struct {
	Reserved    int64 // all segments
	Active      int64 // rounded bytes of live blocks
	Releasable  int64 // free bytes in segments that hold no live block
	Split       int64 // free bytes in partly used segments
	Rounding    int64 // rounded minus requested bytes of live blocks, Remainder included
	LargestFree int64 // largest contiguous free range of any stream and pool
	Segments    int
	PartlyUsed  int
	// Pins lists the partly used segments, most free bytes first.
	Pins []Pin

	Stream    snapshot.StreamID // the stream in question
	Classes   Classes
	Remainder int64 // of Rounding, what was not worth a split
	// LargestUsable is the largest free range of the default pools on the stream in question:
	// the largest request that needs no cudaMalloc.
	LargestUsable int64
	// Holes counts the free ranges by size: Holes[i] have 2^i bytes or more, but less than
	// 2^(i+1).
	Holes [64]Holes
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
	Count int64
	Bytes int64
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

// Pin is a segment that cannot be released, and what keeps it.
type Pin struct {
	Segment int     // row of State.Segments
	Free    int64   // bytes held hostage
	Live    int64   // rounded bytes of the live blocks
	Lives   []int32 // rows of Timeline.Lives
}
