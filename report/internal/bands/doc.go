// Package bands cuts the history of a device down to what a picture of some width can show,
// without ever being wrong about the total.
//
// A picture has columns, and a column covers a run of events. It shows one true moment of them:
// the one after which the most bytes were active, so that no peak is lost however far one is
// zoomed out. A page keeps the allocations that matter most, and of the others the sums by group at
// every column. So at each column
//
//	kept + rest = active bytes of the timeline at that moment
//
// An Index takes a pass over the trace to make and a few bytes per event to keep. What a page
// leaves out, Ranks finds again for a part of the trace.
package bands
