package snapshot

import (
	"errors"
	"fmt"
)

// The classes of rejected input, for errors.Is.
var (
	ErrTruncated   = errors.New("file ends early")
	ErrRefused     = errors.New("refused: the file holds Python objects, not only data")
	ErrLimit       = errors.New("limit exceeded")
	ErrCorrupt     = errors.New("corrupt data")
	ErrNotSnapshot = errors.New("not a memory snapshot")
)

// FormatError is a rejection of the input at one place.
type FormatError struct {
	Name   string // base name of the file
	Offset int64  // byte offset in the decoded (uncompressed) data; -1 when it does not apply
	Op     string // opcode or structure at that place, "" when it does not apply
	Msg    string // what is wrong and what to do
	Err    error  // one of the classes
}

func (e *FormatError) Error() string {
	s := e.Msg
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if e.Offset >= 0 {
		s = fmt.Sprintf("at byte %d: %s", e.Offset, s)
	}
	if e.Name != "" {
		s = e.Name + ": " + s
	}
	return s
}

func (e *FormatError) Unwrap() error { return e.Err }
