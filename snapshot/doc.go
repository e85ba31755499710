// Package snapshot is the model of a torch.cuda.memory snapshot: slices of small structs that refer
// to each other by integer ids, never by pointer. Package load reads files into it.
//
// A trace event is 40 bytes whatever the length of its stack: frame lists are interned as
// they are read (equal stacks share one StackID), and so are strings, streams and the rare
// per-event labels. Id 0 always means "none", so zero values are safe. Readers (the pickle
// machine, the JSON reader, the fixtures) fill the tables through the Add and Intern methods;
// once a Snapshot is handed out nobody changes it, and it may be read from many goroutines.
//
// Field facts are from snapshot/SPEC.md 2.1 to 2.10 and analyze/timeline/SPEC.md 3.1, which cite
// torch/csrc/cuda/memory_snapshot.cpp and torch/csrc/profiler/combined_traceback.cpp.
package snapshot
