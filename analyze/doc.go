// Package analyze strings the analyses of one snapshot together:
//
//  1. timeline rebuilds each device's memory over time, backward from the final state and
//     forward again, and counts what does not add up.
//  2. At the moments that matter (the peak, the last out-of-memory event, the end),
//     attribution groups what is live by the stack that allocated it, and fragmentation
//     measures what is free and what keeps it from being used.
//  3. steps finds the program's steps, category says what memory is for, and attribution what came
//     and went at once.
//  4. ghost looks for memory that every lap of a loop adds and never returns, or returns late,
//     and holder says which Python objects keep it, where the recorder's file lies beside
//     the snapshot.
//  5. whatif replays the run under other allocator settings, and oom says of the request that
//     failed in which circumstances it would not have.
//  6. verdict turns all of it into ranked findings and one line.
//  7. host does for pinned host memory, of which there is one for all devices, what of this applies
//     to it; its findings stand beside the verdict.
//
// Data flows this way only; no package looks at one that comes after it.
package analyze
