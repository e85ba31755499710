// Package attach has a Python program that runs already record its memory: it brings the recorder in, has it take a
// snapshot and look who holds what, and has it leave everything as it was.
//
// There are two ways in. CPython 3.14 and later run a script when a debugger asks for it (PEP 768): what it takes is
// written into the memory of the process, by the rights that a debugger needs. Any program that uses the recorder may
// listen, whose functions then look for requests in a folder of /tmp/snapana-UID; that needs no rights but those of the
// user.
//
// Either way requests and answers are files in a folder that only the owner of the process can enter. A request is a
// file with a name until the process gives it another one, so that both sides know whether it was taken: one that was
// withdrawn does nothing if it is come upon later. As long as a recording lasts, this process holds a lock on a file of
// the folder: when it dies, the recorder notices and ends by itself.
//
// Nothing that comes from the other process is trusted: numbers are checked before anything is written where they point
// to, and its files are opened so that no link leads out of their folder.
package attach

import (
	"io/fs"
	"runtime"
	"time"
)

// Supported tells whether Run can do anything on the system that this is built for.
const Supported = runtime.GOOS == "linux"

// Options say what to record.
type Options struct {
	PID        int           // as this process sees it
	Record     time.Duration // how long; 0 takes what is there at once
	Output     string        // the files' path without their endings; .snapana and .pickle are added
	Patience   time.Duration // how long to wait until the program takes a request
	MaxEntries int           // of the allocator's history, if it is turned on
	Progress   func(elapsed time.Duration)
}

// Result is what was recorded.
type Result struct {
	Recording string        // path of the recorder's file
	Snapshot  string        // path of PyTorch's snapshot, "" if there is none: without CUDA, or by a fault
	Python    string        // its version
	Listened  bool          // the program's own recorder answered
	CUDA      bool          // the program has used a GPU
	WasOn     bool          // the allocator's history had been turned on by the program; it still is
	Recorded  bool          // the history was on from the beginning of the recording to its end
	Exited    bool          // the program came to its end meanwhile
	Elapsed   time.Duration // from the first answer to the end of the recording
	Faults    []string      // what the recorder could not do
}

// Kind is why nothing was recorded.
type Kind int

// The kinds of errors.
const (
	Failed      Kind = iota // something else, which the error tells
	NoProcess               // there is none with this number
	Ended                   // it ended meanwhile, or is about to
	NotPython               // it runs no Python
	Version                 // its Python has no way in that is known
	Disabled                // it was started so that nothing can be brought in
	OtherUser               // it belongs to another user
	Rights                  // the system does not let this process look into it
	Busy                    // another debugger, or another recording, is at it
	Unanswered              // it runs no Python code at the moment
	Refused                 // its interpreter refused to run a script
	NoTorch                 // it has not imported PyTorch
	Unsupported             // this system has no such thing
)

// Error is why nothing was recorded.
type Error struct {
	Kind     Kind
	Children []int // with NoTorch: processes with a Python that it has started, 16 at most

	what string
	err  error // what the system said, if it did
}

func (e *Error) Error() string { return e.what }

// Unwrap is fs.ErrPermission where rights are missing.
func (e *Error) Unwrap() error {
	if e.err == nil && (e.Kind == OtherUser || e.Kind == Rights) {
		return fs.ErrPermission
	}
	return e.err
}
