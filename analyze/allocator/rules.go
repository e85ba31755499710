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

// RoundSize gives the rounded size of a request of n bytes, 0 <= n <= MaxRequest (SPEC.md 5.3,
// DeviceCachingAllocator::round_size).
func RoundSize(n int64, up *Roundup) int64 {
	if n < MinBlockSize {
		return MinBlockSize
	}
	div := up[min(max(bits.Len64(uint64(n))-21, 0), len(up)-1)]
	if div > 1 && n > MinBlockSize*div {
		return roundDivision(n, div)
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

// SegmentSize gives what cudaMalloc is asked for when no free block serves a rounded size (SPEC.md 5.3,
// get_allocation_size). largeSegment is large_segment_size in bytes, LargeBuffer by default.
func SegmentSize(rounded, largeSegment int64) int64 {
	switch {
	case rounded <= SmallSize:
		return SmallBuffer
	case rounded < MinLargeAlloc:
		return largeSegment
	}
	return roundUp(rounded, RoundLarge)
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// SplitsSmall reports whether a block of the small pool, or one handed out in expandable
// mode, is split when so many bytes remain after the request (SPEC.md 5.5 step 6, should_split).
func SplitsSmall(remaining int64) bool { return remaining >= MinBlockSize }

// SplitsLarge is the rule for the large pool. maxSplit is max_split_size in bytes, -1 for no
// limit.
func SplitsLarge(rounded, remaining, maxSplit int64) bool {
	return (maxSplit < 0 || rounded < maxSplit) && remaining > SmallSize
}
