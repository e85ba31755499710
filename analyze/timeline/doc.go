// Package timeline rebuilds the memory of one device over time, exactly, from the events of a
// trace and the state at its end (SPEC.md 4.2).
//
// A trace names requested bytes, while the allocator counts rounded ones and hands out whole
// blocks where splitting does not pay. The sizes follow from where blocks lie, so Build plays
// the allocator's block lists:
//
//  1. match pairs every free with its allocation by address. A free of an address that no
//     event handed out ends a pre-trace block; so does a block of the final state.
//  2. unwind goes backward from the final segments through the segment events, to those that
//     were there before the trace.
//  3. replay goes forward from there over linked block lists: a request takes the front of
//     the free block that starts at its address, by the allocator's rule for splitting. Each
//     event changes the totals; their highest values are the peaks.
//  4. Where a later event proves that a size was guessed wrong (a block starts inside another
//     or behind a gap that nothing else can own) the size is corrected, and the replay run
//     again.
//
// The state is trusted over the trace. What contradicts it is counted in Checks and skipped;
// nothing in a file makes this package fail.
package timeline
