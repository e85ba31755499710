// Package bands cuts the history of a device down to what a picture of some width can show,
// without ever being wrong about the total.
//
// A picture has columns, and a column covers a run of events. It shows one true moment of them:
// the one after which the most bytes were active, so that no peak is lost however far one is
// zoomed out. A band is one allocation: it has the columns at whose moments it was live, and lies
// on those that are older than it, as in PyTorch's own viewer. What is too small or too short to
// be seen gets no band of its own, but is summed by group at every column. So at each column
//
//	bands + merged = active bytes of the timeline at that moment
//
// An Index takes a pass over the trace to make and a few bytes per event to keep; a Window of
// it costs what the events in it cost, at most.
package bands
