// Package input opens the files that a user names.
package input

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// ErrNoWriter says that nobody writes to a named pipe.
var ErrNoWriter = errors.New("is a pipe that nobody writes to")

// patience is how long somebody has to begin to write to a named pipe.
const patience = 3 * time.Second

// Open opens a file to read. Where that is a pipe which nobody writes to, the system would wait without
// end; this waits for 3 seconds, or until ctx is done, and then gives ErrNoWriter or ctx.Err(). Other errors are
// those of os.Open.
func Open(ctx context.Context, path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result, 1)
	go func() {
		f, err := os.Open(path)
		opened <- result{f, err}
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	var err error
	select {
	case r := <-opened:
		return r.f, r.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNoWriter}
	}
	go func() { // should somebody come after all
		if r := <-opened; r.err == nil {
			r.f.Close()
		}
	}()
	return nil, err
}
