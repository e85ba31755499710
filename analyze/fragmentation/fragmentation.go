// Package fragmentation measures why reserved memory cannot serve requests.
package fragmentation

// Report is the free memory of one device at one moment.
//
//	reserved = active + releasable + split
type Report struct {
	Reserved    int64 // all segments
	Active      int64 // rounded bytes of live blocks
	Releasable  int64 // free bytes in segments that hold no live block: empty_cache returns them
	Split       int64 // free bytes in partly used segments
	Rounding    int64 // rounded minus requested bytes of live blocks (inside Active)
	LargestFree int64 // largest contiguous free range: the largest request that needs no cudaMalloc
	Segments    int
	PartlyUsed  int
	// Pins lists the partly used segments, most free bytes first.
	Pins []Pin
}

// Pin is a segment that cannot be released, and what keeps it.
type Pin struct {
	Segment int     // row of State.Segments
	Free    int64   // bytes held hostage
	Live    int64   // rounded bytes of the live blocks
	Lives   []int32 // rows of Timeline.Lives
}
