// Package allocator is PyTorch's CUDA caching allocator for one device, without the device: the
// same requests in the same order give the same segments, the same blocks and the same
// statistics (c10/cuda/CUDACachingAllocator.cpp).
//
// It can be read side by side with the rules:
//
//	rules.go       SPEC.md 5.1, 5.3      sizes, pools, and when a block is split: all that Conf decides
//	conf.go        SPEC.md 5.2           the settings, and a snapshot's
//	reading.go     SPEC.md 5.2           PYTORCH_CUDA_ALLOC_CONF as a release reads it: options.go has its keys
//	pool.go        SPEC.md 5.4           pools, and the free blocks of each by stream, size and tie
//	malloc.go      SPEC.md 5.4, 5.5      a request from its size to its block
//	expandable.go  SPEC.md 5.6           segments that grow by mapping
//	free.go        SPEC.md 5.7           frees, also those that wait for other streams
//	release.go     SPEC.md 5.8 to 5.10   what goes back to the driver, and when
//	stats.go       SPEC.md 5.11          the figures of torch.cuda.memory_stats()
//
// Memory comes from a Driver: Device is one of a given capacity. What happens outside of the
// allocator is told to it: which stream and pool a request is for, and when the last stream is
// done with a freed block. Left out are callbacks that free memory of other processes (CUDA
// IPC), memory pools with their own allocator, and pools that lend to requests which would fail
// (use_on_oom).
//
// An Allocator is owned by one goroutine. Blocks and their links lie in arrays that are used
// again, so that a run of millions of requests costs no garbage. Using a block after it was
// freed is a mistake of the caller, which panics or corrupts the simulation, as in torch.
package allocator

import "math"

// Options make an allocator.
type Options struct {
	Conf Conf
	Tie  Tie
	// Driver is where memory comes from; nil is a Device without limit.
	Driver Driver
	// Total is the device's memory in bytes, by which the fraction of Conf and the address space
	// of expandable segments go; 0 is unknown: no fraction, and address space for everything.
	Total int64
}

// Allocator is the caching allocator of one device.
type Allocator struct {
	conf     Conf
	tie      Tie
	driver   Driver
	total    int64
	allowed  int64 // the fraction's bytes
	maxSplit int64
	collects bool // garbage

	streams  []uint64
	byHandle map[uint64]Stream
	pools    []pool // large and small half of each memory pool by turns
	queues   []queue
	blocks   []block
	spare    []int32 // rows of blocks to use again
	spaces   []space
	count    uint32 // ties given so far

	waiting []Block // by ticket; none when done
	tickets Ticket  // those that came before waiting

	scratch  []int32
	smallest int64 // segment or granule: smaller blocks cannot be given back
	largest  int64 // see Largest

	stats Stats
}

// unlimited is the address space of an expandable segment on a device of unknown size.
const unlimited = 1 << 42

// New makes an allocator that has nothing reserved. Stream 0 is the default stream.
func New(o Options) *Allocator {
	a := &Allocator{conf: o.Conf, tie: o.Tie, driver: o.Driver, total: o.Total, smallest: SmallBuffer,
		byHandle: make(map[uint64]Stream)}
	if a.driver == nil {
		a.driver = &Device{}
	}
	a.maxSplit = a.conf.maxSplit()
	a.allowed = a.conf.allowed(a.total)
	a.collects = a.allowed < math.MaxInt64 && a.conf.Collects()
	a.stats.MaxSplitSize = a.conf.MaxSplit
	a.Stream(0)
	a.NewPool()
	return a
}

// Stats gives the statistics, which change with every call.
func (a *Allocator) Stats() *Stats { return &a.stats }

// Largest is the most bytes that a rounded request, a block with memory or a segment ever had. Under a max_split_size
// above that, and under none, the same requests get the same blocks.
func (a *Allocator) Largest() int64 { return a.largest }

// Addr is where a block begins.
func (a *Allocator) Addr(b Block) uint64 { return a.blocks[b].addr }

func (a *Allocator) reserved() int64 { return a.stats.ReservedBytes[All].Current }
