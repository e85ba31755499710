// Package pickle turns a pickled (or JSON) snapshot into typed columns in one pass.
//
// # Safety
//
// A pickle is a program. This machine runs only the opcodes that build plain data; every
// opcode that would import, call or restore something is refused by name and byte offset.
// The single exception is collections.OrderedDict with no arguments, which memory_stats
// dumps contain and which is read as a dict. Lengths are never trusted: memory grows with
// the bytes that were really read, and the stack, the memo and copies have limits.
//
// # Model
//
// The input is read in large chunks, by a second goroutine, and each byte is looked at
// once. Values on the machine's stack are 16 bytes and hold no pointers. A dict is
// recognized by its keys the moment it is complete and becomes a row of a table (an event, a
// segment, a block, a frame); what stays on the stack is the row's number. Lists of frames
// become interned stack ids, lists of rows become ranges. So a million events wait on the
// stack as one value, and nothing that the file repeats by reference is ever copied.
//
// Python memoizes a container before it fills it. A reference to a container that is still
// being filled (a cycle) is refused: snapshots have none.
package pickle

import (
	"errors"
	"fmt"

	"github.com/snapana/snapana/snapshot"
)

// Options steer one decoding. The zero value is usable.
type Options struct {
	// Size is the length of the input in bytes where it is known, 0 where it is not. It
	// only tightens limits.
	Size int64
	// Partial keeps everything decoded before a fault: Decode then returns both the
	// snapshot and the error.
	Partial bool
	// Progress, if set, is called about once per mebibyte with the bytes read so far.
	Progress func(bytes int64)
	// Each, if set, gets every event in the order of the file, while it is read: event i of list number list, as the
	// file counts its lists of events. s is the snapshot so far. What it does not keep is left out of the traces and
	// takes no memory.
	Each func(s *snapshot.Snapshot, list, i int, e *snapshot.Event) (keep bool)
}

// Info is what Decode learned about the encoding itself.
type Info struct {
	Protocol int   // pickle protocol 0 to 5
	Bytes    int64 // length of the pickle, up to and including STOP
	// Lists are the numbers that Options.Each got for the lists of Snapshot.Traces, by device; -1 for one that is empty.
	Lists []int
}

// fault is an error before its place in the file is known.
type fault struct {
	class error
	msg   string
}

func (f *fault) Error() string { return f.msg }

func corrupt(format string, args ...any) error {
	return &fault{snapshot.ErrCorrupt, fmt.Sprintf(format, args...)}
}

var (
	errUnderflow = corrupt("takes more values than the stack has")
	errCycle     = corrupt("changes a container that something else already refers to (a cycle?)")
	errDepth     = &fault{snapshot.ErrLimit, fmt.Sprintf("values are nested more than %d deep", maxDepth)}
	errStack     = &fault{snapshot.ErrLimit, fmt.Sprintf("more than %d values on the stack", maxStack)}
	errMemory    = &fault{snapshot.ErrLimit, "needs far more memory than its size explains"}
	errScattered = &fault{snapshot.ErrLimit, "lists events in another order than it contains them, which cannot be read " +
		"in part"}
	errCopies = &fault{snapshot.ErrLimit, "refers to its contents too often"}
)

// placed is err as an error about the data at a byte offset, -1 where that does not apply.
func placed(err error, offset int64, op string) *snapshot.FormatError {
	e := &snapshot.FormatError{Offset: offset, Op: op, Msg: err.Error(), Err: err}
	if f := (*fault)(nil); errors.As(err, &f) {
		e.Err = f.class
	}
	return e
}
