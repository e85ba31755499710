// Package whatif says what other allocator settings, or another device, would have done to a
// recorded run: it replays the requests of a trace on the allocator of package allocator
// (analyze/allocator/SPEC.md 5.12).
//
//  1. NewProgram takes from a timeline what the run asked of its allocator: requests, frees and
//     empty_cache calls, without what the allocator made of them.
//  2. Program.Validate replays it under the recorded settings with the recorded segment
//     addresses, and compares every block's address with the trace. The share that agrees is the
//     accuracy of everything below.
//  3. Program.Run replays it under other settings, with a device of its own.
//  4. Sweep runs many settings, Advise picks one if it wins by a margin, and
//     SmallestCapacity searches for the smallest device that serves every request.
//
// A replay answers for the allocator, not for the program: requests are taken to come in the
// same order and sizes whatever the settings are, which holds unless the program reads its own
// memory statistics or stops at a failure. Where the trace goes on after a request that the
// replay cannot serve, the replay goes on without that block.
package whatif
