// Package pinned rebuilds the pinned host memory of a process over time, exactly, from the
// host_traces and host_segments of a snapshot (torch 2.13 and later, recorded with
// record_pinned_host_memory=True), and says who holds it, what is cached and what grows.
//
// The host allocator is simpler than a device's (aten/src/ATen/core/CachingHostAllocator.h, note
// HostAllocator design): it never splits, so a block is a segment; sizes are rounded up to a power of
// two, unless a limit is set (PR 171662); a block that streams still use waits for their events after
// its free. All sizes in the file are rounded ones (snapshot/SPEC.md 2.8): what was asked for is unknown.
//
//  1. Build goes forward over the events, a block by its address. What an event uses and none made
//     was there before the trace, and so was what only the final state has.
//  2. Sums at each event follow, and with them the peaks; the end must equal the recorded state.
//     Memory that other code registered (cudaHostRegister) is in the trace, but need not be in the
//     state: it is told apart and is no residual.
//  3. Growth asks package ghost, with the allocations of a GPU in between as the clock: a loop
//     that pins one batch in each iteration may allocate nothing else on the host.
package pinned
