package allocator

import "math/bits"

// Constants of the allocator, in bytes. They have not changed from torch 1.4 to 2.14
// (SPEC.md 5.1).
const (
	MinBlockSize  = 512      // rounding quantum and smallest block
	SmallSize     = 1 << 20  // rounded requests up to here use the small pool
	SmallBuffer   = 2 << 20  // segment size of the small pool
	LargeBuffer   = 20 << 20 // segment size for large requests below MinLargeAlloc
	MinLargeAlloc = 10 << 20 // rounded requests from here on have a segment of their own
	RoundLarge    = 2 << 20  // which is a multiple of this
	MaxRequest    = 1 << 50  // larger sizes are no sizes: more than any address space maps
)

// Roundup is roundup_power2_divisions by interval: slot i is for sizes with floor(log2(size))
// = 20+i, slot 0 also for all below, slot 15 for all above; 0 and 1 are off.
type Roundup [16]int64

// Round gives the rounded size of a request of n bytes, 0 <= n <= MaxRequest (SPEC.md 5.3,
// DeviceCachingAllocator::round_size).
func (c *Conf) Round(n int64) int64 {
	n += c.Padding
	if n < MinBlockSize {
		return MinBlockSize
	}
	div := c.Roundup[min(max(bits.Len64(uint64(n))-21, 0), len(c.Roundup)-1)]
	switch {
	case div > 1 && n > MinBlockSize*div:
		return roundDivision(n, div)
	case div == 1 && c.Exact:
		return n
	}
	return (n + MinBlockSize - 1) &^ (MinBlockSize - 1)
}

// roundDivision rounds up to the next of div equal steps between two powers of two
// (roundup_power2_next_division).
func roundDivision(n, div int64) int64 {
	floor := int64(1) << (bits.Len64(uint64(n)) - 1)
	if n == floor {
		return n
	}
	step := floor >> (bits.Len64(uint64(div)) - 1)
	if step == 0 {
		return 2 * floor
	}
	return (n + step - 1) &^ (step - 1)
}

// Small reports whether a request of a rounded size is served by the small pool (SPEC.md 5.4, get_pool).
func (c *Conf) Small(rounded int64) bool { return rounded <= SmallSize }

// SegmentSize gives what cudaMalloc is asked for when no free block serves a rounded size (SPEC.md 5.3,
// get_allocation_size).
func (c *Conf) SegmentSize(rounded int64) int64 {
	switch {
	case c.Small(rounded):
		return SmallBuffer
	case rounded < MinLargeAlloc:
		return c.LargeSegment
	}
	return roundUp(rounded, RoundLarge)
}

// Granule is what an expandable segment of the small or the large pool grows by (SPEC.md 5.6).
func (c *Conf) Granule(small bool) int64 {
	if small {
		return SmallBuffer
	}
	return c.LargeSegment
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// Splits reports whether a block of the small or the large pool is split when so many bytes remain after
// the request (SPEC.md 5.5 step 6, should_split).
func (c *Conf) Splits(rounded, remaining int64, small bool) bool {
	if small || c.Expandable {
		return remaining >= MinBlockSize
	}
	return (c.MaxSplit < 0 || rounded < c.MaxSplit) && remaining > SmallSize
}

// Takes reports whether a free block of a size is given to a request of a rounded size, which is not larger: max_split_size
// keeps large blocks for large requests, and those from being split far (SPEC.md 5.4, get_free_block).
func (c *Conf) Takes(rounded, size int64) bool {
	if limit := c.maxSplit(); rounded < limit {
		return size < limit
	}
	return size-rounded < c.MaxNonSplitRounding
}
