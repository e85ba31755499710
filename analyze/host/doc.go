// Package host measures what a program does with the memory of its machine. Read tells it of each
// process from the recorder's samples: does the process grow, is it tensors, Python objects or native
// memory that grow, do its workers copy what they should share, or is the machine short of memory while
// the program is not at fault?
//
// The size of a process is its RSS with what was swapped out, so that swapping does not look like
// memory given back. Growth is what package counters calls growing: never given back, in each
// quarter of the run. Tensors and objects are counted by what Python's collector can see, in those
// samples in which the recorder had the time. What grows along with the process is not proven to
// be the cause: each finding of growth is a heuristic.
//
// BuildPinned rebuilds the pinned host memory of a process over time, exactly, from the
// host_traces and host_segments of a snapshot (torch 2.13 and later, recorded with
// record_pinned_host_memory=True), and says who holds it, what is cached and what grows.
//
// The host allocator is simpler than a device's (aten/src/ATen/core/CachingHostAllocator.h, note
// HostAllocator design): it never splits, so a block is a segment; sizes are rounded up to a power of
// two, unless a limit is set (PR 171662); a block that streams still use waits for their events after
// its free. All sizes in the file are rounded ones (snapshot/SPEC.md 2.8): what was asked for is unknown.
//
//  1. It goes forward over the events, a block by its address. What an event uses and none made
//     was there before the trace, and so was what only the final state has.
//  2. Sums at each event follow, and with them the peaks; the end must equal the recorded state.
//     Memory that other code registered (cudaHostRegister) is in the trace, but need not be in the
//     state: it is told apart and is no residual.
//  3. Growth asks package ghost, with the allocations of a GPU in between as the clock: a loop
//     that pins one batch in each iteration may allocate nothing else on the host.
package host
