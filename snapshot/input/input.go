// Package input opens the files that a user names: of this machine, or s3://BUCKET/NAME of an object store.
package input

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/snapana/snapana/snapshot/store"
)

// ErrNoWriter says that nobody writes to a named pipe.
var ErrNoWriter = errors.New("is a pipe that nobody writes to")

// ErrUnavailable says that a store could not be reached, or did not answer as it should.
var ErrUnavailable = store.ErrUnavailable

// patience is how long somebody has to begin to write to a named pipe.
const patience = 3 * time.Second

// File is a file to read. ReadAt needs a regular one.
type File interface {
	fs.File
	io.ReaderAt
}

// local is a file of this machine, of which reading ends with a context.
type local struct {
	*os.File
	stop func() bool
}

func (l local) Close() error {
	l.stop()
	return l.File.Close()
}

// Open opens a file to read, which ends when ctx is done. Where that is a pipe which nobody writes to, the system would
// wait without end; this waits for 3 seconds, or until ctx is done, and then gives ErrNoWriter or ctx.Err(). Other
// errors are *fs.PathError. A folder can be opened, for Stat alone.
func Open(ctx context.Context, path string) (File, error) {
	if remote, err := store.Is(path); err != nil {
		return nil, err
	} else if remote {
		o, err := store.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		return o, nil
	}
	f, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	// A pipe may have nothing to give.
	return local{f, context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })}, nil
}

func open(ctx context.Context, path string) (*os.File, error) {
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

// Stat is os.Stat, also of what is in a store.
func Stat(ctx context.Context, path string) (fs.FileInfo, error) {
	if remote, err := store.Is(path); err != nil {
		return nil, err
	} else if remote {
		return store.Stat(ctx, path)
	}
	return os.Stat(path)
}

// ReadDir is os.ReadDir, also of a folder in a store, whose order is the store's.
func ReadDir(ctx context.Context, dir string) (entries []fs.DirEntry, err error) {
	if remote, err := store.Is(dir); err != nil {
		return nil, err
	} else if !remote {
		return os.ReadDir(dir)
	}
	in, err := store.List(ctx, dir, false)
	for _, info := range in {
		entries = append(entries, fs.FileInfoToDirEntry(info))
	}
	return entries, err
}

// Walk is filepath.WalkDir, also of a folder in a store.
func Walk(ctx context.Context, dir string, each fs.WalkDirFunc) error {
	if remote, err := store.Is(dir); err != nil {
		return err
	} else if !remote {
		return filepath.WalkDir(dir, each)
	}
	all, err := store.List(ctx, dir, true)
	if err != nil {
		return each(dir, nil, err)
	}
	in, skipped := "", "" // folders, each with a slash
	for _, info := range all {
		name := info.Name()
		if skipped != "" && strings.HasPrefix(name, skipped) {
			continue
		}
		err = nil
		for i := range name {
			if name[i] != '/' || strings.HasPrefix(in, name[:i+1]) {
				continue
			}
			in = name[:i+1]
			if err = each(Join(dir, name[:i]), fs.FileInfoToDirEntry(store.Folder(name[:i])), nil); err != nil {
				break
			}
		}
		if errors.Is(err, fs.SkipDir) {
			skipped = in
			continue
		}
		if err = cmp.Or(err, each(Join(dir, name), fs.FileInfoToDirEntry(info.Base()), nil)); errors.Is(err, fs.SkipAll) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Join is filepath.Join, also of a folder in a store.
func Join(dir, name string) string {
	if remote, _ := store.Is(dir); remote {
		return store.Join(dir, name)
	}
	return filepath.Join(dir, name)
}

// Dir is filepath.Dir, also of what is in a store.
func Dir(path string) string {
	if remote, _ := store.Is(path); remote {
		return store.Parent(path)
	}
	return filepath.Dir(path)
}

// Abs is filepath.Abs. What is in a store is named in full.
func Abs(path string) (string, error) {
	if remote, err := store.Is(path); remote || err != nil {
		return path, err
	}
	return filepath.Abs(path)
}

// Keep gives a context for who reads a file several times: what is in a store is fetched once, as long as there is room
// for it in a temporary file, and cannot be opened again once it is another. What was read goes with release.
func Keep(ctx context.Context) (again context.Context, release func()) { return store.Keep(ctx) }

// With gives a context in which stores are reached with the same connections and credentials.
func With(ctx context.Context) context.Context { return store.With(ctx) }
