package snapshot

import (
	"errors"
	"fmt"
)

// The classes of rejected input, for errors.Is.
var (
	ErrTruncated   = errors.New("file ends early")
	ErrRefused     = errors.New("refused: the file contains Python objects, not only data")
	ErrLimit       = errors.New("limit exceeded")
	ErrCorrupt     = errors.New("corrupt data")
	ErrNotSnapshot = errors.New("not a memory snapshot")
	// ErrSnapshot is that of a memory snapshot where something else is wanted.
	ErrSnapshot = errors.New("a memory snapshot")
)

// Stranger is the ErrNotSnapshot of what something else can read.
type Stranger string

const (
	Folder    Stranger = "a folder"
	Text      Stranger = "a text"      // a log, perhaps, or a table
	Data      Stranger = "data"        // counters, perhaps, as JSON or a pickle
	Recording Stranger = "a recording" // of the recorder, a .snapana file
	Digest    Stranger = "a digest"    // of a snapshot, by snapana
)

func (s Stranger) Error() string { return "not a memory snapshot but " + string(s) }
func (s Stranger) Unwrap() error { return ErrNotSnapshot }

// NothingError says that a file has nothing of what is wanted of it.
type NothingError struct{ Msg string }

func (e *NothingError) Error() string { return e.Msg }

// FormatError is a rejection of the input at one place.
type FormatError struct {
	Name   string // base name of the file
	Offset int64  // byte offset in the decoded (uncompressed) data; -1 when it does not apply
	Op     string // opcode or structure at that place, "" when it does not apply
	Msg    string // what is wrong and what to do
	Err    error  // one of the classes, or an error of that class
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

// What a file may unpack to where nothing is set: the larger of FreeBytes, and MaxRatio times its size. Traces of one
// repeated step compress about 13 to 1 with gzip, 24 to 1 with xz; decompression bombs are at 1000 to 1 and up.
const (
	FreeBytes = 64 << 20
	MaxRatio  = 250
)

// LimitError is an ErrLimit that a caller can lift, by setting how many bytes a file may unpack to.
type LimitError struct {
	Bytes int64 // that were allowed, 0 where nothing was set
	Ratio int64 // bytes out of each that went in, allowed where nothing was set
}

func (e *LimitError) Error() string {
	if e.Bytes > 0 {
		return fmt.Sprintf("exceeds the %d bytes that are allowed", e.Bytes)
	}
	return fmt.Sprintf("unpacks to over %d times its size, like a decompression bomb", e.Ratio)
}

func (e *LimitError) Unwrap() error { return ErrLimit }
