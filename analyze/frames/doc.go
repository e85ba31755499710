// Package frames says what code a frame is: whose, and of which part of torch.
//
// Frames have a file, a function's name and a line, but no module and no class
// (snapshot/SPEC.md 2.9), so that all of it goes by the texts of paths and names: one table of
// torch's files, and a few names of other libraries. What a Part is for, each who asks decides;
// the facts are here alone.
//
// A class is worked out at the first question for a frame and kept with the snapshot, so that
// stacks may be walked often. Of is safe for concurrent use.
package frames
