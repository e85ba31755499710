// Package steps finds the steps of a program in its trace: training steps, batches, prompts.
//
// Where the program named them, in record_function scopes that torch records beside the trace
// (ProfilerStep#N, or Optimizer.step), their number comes from there. But the loop itself shows
// in the stacks too: within one function, code runs from line to line, and when the line goes
// back, a loop has begun again. Find looks for the loop that
//
//   - runs in the program's own code and outside of modules, so that it is not one over layers,
//   - holds most of the trace's allocations,
//   - finds memory much as it was each time it begins again, a steady growth aside,
//   - and begins most often among those.
//
// The loop gives exact places, the names only times. So where both agree on the number, the
// loop's are taken, and the finding is certain.
package steps
