// Package attribution says whose memory it is: live bytes grouped by the stack that
// allocated them, and the first frame of the user's own code in a stack.
package attribution

import "snapana/snapshot"

// Group is the live memory that one stack allocated.
type Group struct {
	Stack     snapshot.StackID
	Count     int64
	Rounded   int64 // bytes taken in segments
	Requested int64
	PreTrace  int64 // rounded bytes of blocks from before the trace
	Site      string
	Frames    []string // innermost first, noise removed: "file:line function"
}
