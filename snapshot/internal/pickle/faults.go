package pickle

import (
	"errors"
	"fmt"

	"github.com/snapana/snapana/snapshot"
)

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
	errUnderflow = corrupt("takes more values than there are")
	errCycle     = corrupt("changes a container that something else already refers to (a cycle?)")
	errDepth     = &fault{snapshot.ErrLimit, fmt.Sprintf("nested deeper than %d", maxDepth)}
	errStack     = &fault{snapshot.ErrLimit, fmt.Sprintf("more than %d values wait on the stack", maxStack)}
	errMemory    = &fault{snapshot.ErrLimit, "needs far more memory than its size explains"}
	errCopies    = &fault{snapshot.ErrLimit, "repeats its contents too often"}
)

// classOf gives the text of a fault and the class of errors that it belongs to.
func classOf(err error) (string, error) {
	if f := (*fault)(nil); errors.As(err, &f) {
		return f.msg, f.class
	}
	return err.Error(), err
}

// whole is a fault that has no place in the file.
func whole(err error) error {
	msg, class := classOf(err)
	return &snapshot.FormatError{Offset: -1, Msg: msg, Err: class}
}
