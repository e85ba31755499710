// Package failure names what can go wrong, for programs: one table of codes, and the code of an error. Commands,
// servers and libraries that answer in JSON all take their errors from here.
package failure

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"unicode"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/analyze/window"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/store"
)

// Failure is an error as programs are told it.
type Failure struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`          // one line, without the hint
	Hint    string `json:"hint"`             // what to do, one line, never empty
	File    string `json:"file,omitempty"`   // that it is about, where that is known
	Offset  *int64 `json:"offset,omitempty"` // byte in the decoded (uncompressed) file, where it is about one
}

// Of says of an error, which is not nil, what programs are told.
func Of(err error) Failure {
	kind := KindOf(err)
	f := Failure{Code: kind.Code, Message: Line(err.Error()), Hint: kind.Hint}
	if kind.Code == Stopped {
		f.Message = kind.Meaning // the error has Go's words
	}
	if advised := (*advised)(nil); errors.As(err, &advised) {
		f.Hint = Line(advised.hint)
		f.Message = without(f.Message, f.Hint)
	}
	var fault *snapshot.FormatError
	var path *fs.PathError
	switch {
	case errors.As(err, &fault):
		f.File = Line(fault.Name)
		if fault.Offset >= 0 {
			f.Offset = new(fault.Offset)
		}
	case errors.As(err, &path):
		f.File = Line(path.Path)
	}
	return f
}

// without is a message without the hint that it ends with, or has in parentheses.
func without(message, hint string) string {
	if said, ok := strings.CutSuffix(message, "; "+hint); ok {
		return said
	}
	return strings.Replace(message, " ("+hint+")", "", 1)
}

// KindOf is the row of the table that an error, which is not nil, belongs to.
func KindOf(err error) Kind {
	code := codeOf(err)
	for _, k := range Kinds() {
		if k.Code == code {
			return k
		}
	}
	panic("failure: no row for " + code)
}

// classes tells codes by the errors that packages export; the first that fits.
var classes = []struct {
	err  error
	code Code
}{
	{device.ErrNoDriver, NoDriver}, {input.ErrUnavailable, Unavailable}, {input.ErrNoWriter, NoData},
	{store.ErrChanged, Changed}, {store.ErrURL, Usage},
	{fs.ErrPermission, Permission}, {syscall.ENOSPC, NoSpace}, {syscall.EDQUOT, NoSpace},
	{syscall.EIO, IO}, {fs.ErrNotExist, NoSuchFile},
	{snapshot.ErrTruncated, Truncated}, {snapshot.ErrRefused, Unsafe}, {snapshot.ErrLimit, Limit},
	{snapshot.ErrSnapshot, WrongKind}, {sidecar.ErrForeign, WrongKind}, {footprint.ErrNoFootprint, WrongKind},
	{snapshot.ErrNotSnapshot, NotSnapshot}, {snapshot.ErrCorrupt, Corrupt}, {sidecar.ErrNotSidecar, WrongKind},
	{whatif.ErrAsync, CannotReplay},
}

// codeOf is what an error is marked as, or what its class is.
func codeOf(err error) Code {
	if errors.Is(err, context.Canceled) {
		return Stopped
	}
	var marked *marked
	for e := err; errors.As(e, &marked); e = marked.err {
		if marked.code != WriteFailed {
			return marked.code
		}
	}
	for _, class := range classes {
		// What is not there, or what is no such thing, is the place's fault where something is written.
		if errors.Is(err, class.err) && (marked == nil || class.code.surroundings()) {
			return class.code
		}
	}
	if marked != nil {
		return marked.code
	}
	is := func(target any) bool { return errors.As(err, target) }
	if refusal := (*fit.Refusal)(nil); errors.As(err, &refusal) && refusal.NoHistory {
		return NoHistory
	} else if refusal != nil {
		return Unlike
	}
	switch {
	case is(new(*attribution.NoTraceError)):
		return NoHistory
	case is(new(*attribution.NoKeyError)), is(new(*window.Error)), is(new(*change.LineError)):
		return NotInFile
	case is(new(*attribution.MomentError)), is(new(*change.UnknownError)), is(new(*ranks.ExpectedError)):
		return Usage
	case is(new(*change.RefusedError)):
		return CannotReplay
	case is(new(*snapshot.NothingError)):
		return NoData
	case is(new(*oom.PackedError)):
		return WrongKind
	case is(new(*snapshot.FormatError)):
		return Corrupt
	}
	return Failed
}

// surroundings reports whether it is not the fault of what is read or asked.
func (c Code) surroundings() bool {
	return c == Permission || c == NoSpace || c == Unavailable || c == IO
}

type marked struct {
	code Code
	err  error
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// Mark gives an error its code, nil for nil. Of several marks the outermost counts; WriteFailed leaves the code to
// the others, and to what the system said, where that has one of its own.
func Mark(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &marked{code, err}
}

type advised struct {
	hint string
	err  error
}

func (a *advised) Error() string { return a.err.Error() }
func (a *advised) Unwrap() error { return a.err }

// Advise tells programs what to do about an error, in place of what the table says, nil for nil. The error's own words
// stay as they are.
func Advise(hint string, err error) error {
	if err == nil {
		return nil
	}
	return &advised{hint, err}
}

// Line takes line breaks and whatever else could drive a terminal out of a message: parts of it come from names of files
// and from the file itself.
func Line(s string) string {
	// A byte that is no UTF-8 may be a C1 control of a terminal of 8 bits.
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\ufffd"), func(r rune) bool {
		return r != ' ' && !unicode.IsGraphic(r)
	}), " ")
}
