// Package allocator is PyTorch's CUDA caching allocator for one device, without the device: the
// same requests in the same order give the same segments, the same blocks and the same
// statistics (c10/cuda/CUDACachingAllocator.cpp).
//
// It can be read side by side with the rules:
//
//	rules.go       SPEC.md 5.1, 5.3      sizes, pools, and when a block is split: all that Conf decides
//	conf.go        SPEC.md 5.2           the settings, and a snapshot's; parse.go reads PYTORCH_CUDA_ALLOC_CONF
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
