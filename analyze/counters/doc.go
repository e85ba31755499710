// Package counters looks at PyTorch's memory counters over time, and beside a snapshot: does live
// memory grow from step to step, does reserved memory that nobody can use? It owns the series and
// their trends; what they come to is said in package verdict.
//
// The input is a sequence of samples of memory_stats. Taken at the end of each step these are
// exact, so the question is not noise but shape: memory comes and goes in teeth (garbage
// collection, buckets, caches), rises once (warm-up, the optimizer's state), differs between
// training and validation, and stays level (a plateau). Growth is told from these by what is
// never given back:
//
//  1. The first tenth is left out as warm-up, and the rest is cut into at most 64 windows, of
//     which only the lowest value counts: teeth and peaks shorter than a window vanish.
//  2. The floor at a moment is the lowest value from there to the end, so memory that is given
//     back later does not raise it. Floors must rise in each quarter of the samples (warm-up
//     rises in the first, a tooth in the last), each time by at least a tenth of an even share.
//  3. The windows must rise by the Mann-Kendall test, one-sided, at 1%, with its correction for
//     ties (Mann 1945, Kendall 1975); up to ten windows without ties the distribution is exact.
//  4. How fast: the Theil-Sen slope, the median of the slopes of all pairs, with the 95% interval
//     of Sen (1968).
//
// A leak that began late is looked for in the last three quarters and the last half, at 0.1%, and
// it must have left twice of what was ever given back. Where epochs are known, the lowest value
// of each epoch is tested in the same way. Below five windows nothing is called growing.
//
// A cache that grows on purpose looks the same as a leak: every verdict of growth is a heuristic.
//
// Compare puts a sample beside a snapshot of the same process: every counter that both know, at the
// same moment. PyTorch counts while it allocates, and a snapshot's trace is what it did, so where the
// trace goes back to the first allocation each counter can be counted again
// (analyze/allocator/SPEC.md 5.11) and must be equal. What differs has a reason, and the reason is said.
package counters
