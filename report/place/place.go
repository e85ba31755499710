// Package place puts files and folders where a user wants them: as a whole or not at all, whenever the
// program is killed, and however many of it write to one place.
//
// Everything is put together under a name that begins with ".snapana-" beside its place, locked as long as its
// writer lives, and renamed. A writer removes what others that were killed left there, which it knows by its name,
// its owner and the lock.
//
// A place may also be in a store: s3://BUCKET/NAME. There each file is put as a whole, and the folder is not: see mark.
package place

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/snapana/snapana/snapshot/store"
)

// File is a file in the making: its name in its folder, and what it holds.
type File struct {
	Name string
	Data []byte
	Fill func(w io.Writer) error // writes what it holds, in place of Data; nil for Data
}

// write writes what the file holds.
func (f *File) write(to *os.File) error {
	if f.Fill == nil {
		_, err := to.Write(f.Data)
		return err
	}
	w := bufio.NewWriterSize(to, 1<<18)
	if err := f.Fill(w); err != nil {
		return &fillError{err}
	}
	return w.Flush()
}

// fillError is why a file could not be filled, wherever it is.
type fillError struct{ error }

func (e *fillError) Unwrap() error { return e.error }

// plainMode is of new files, less the umask.
const plainMode = 0o644

// Write writes a file as a whole: what was there before stays until all is written. The mode of what it
// replaces stays as well, and so does its owner where the system allows that; a new file has 0644 less the
// umask. Folders above it that are missing are made, and go again where it fails. A link is replaced, not followed.
// The error is a *fs.PathError with the path.
func Write(ctx context.Context, path string, data []byte) error {
	return new(Series).Write(ctx, path, data)
}

// WriteBy is Write of what fill writes.
func WriteBy(ctx context.Context, path string, fill func(w io.Writer) error) error {
	return new(Series).write(ctx, path, &File{Fill: fill})
}

// Series writes files one after the other. What writers that were killed left in a folder it looks for once, before its
// first file there: a folder of digests may have a hundred thousand names, and each may be a question to a server. It is
// for one goroutine.
type Series struct{ swept map[string]bool }

// Write is the function Write.
func (s *Series) Write(ctx context.Context, path string, data []byte) error {
	return s.write(ctx, path, &File{Data: data})
}

// Add is Write of a file that whoever else writes it writes alike: in a store, one that is there by then stays, and the
// error is fs.ErrExist. Stores that know no conditions are written to as by Write.
func (s *Series) Add(ctx context.Context, path string, data []byte) error {
	remote, err := store.Is(path)
	if err != nil || !remote {
		return cmp.Or(err, s.Write(ctx, path, data))
	}
	err = store.Put(ctx, path, bytes.NewReader(data), int64(len(data)), true)
	if errors.Is(err, errors.ErrUnsupported) {
		err = s.Write(ctx, path, data)
	}
	return err
}

func (s *Series) write(ctx context.Context, path string, file *File) (err error) {
	if remote, err := store.Is(path); err != nil {
		return err
	} else if remote {
		return send(ctx, path, file)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s, not a file", kind(info.Mode()))}
	}
	made, err := makeParents(dir)
	defer func() {
		if err != nil {
			for _, p := range made {
				os.Remove(p)
			}
		}
	}()
	if err != nil {
		return asked(path, err)
	}
	if !s.swept[dir] {
		sweep(dir, func(string) bool { return false })
		if s.swept == nil {
			s.swept = map[string]bool{}
		}
		s.swept[dir] = true
	}
	tmp, f, err := fresh(dir, func(name string) (*os.File, error) {
		return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, modeFor(path))
	})
	if err == nil {
		step()
		if err = file.write(f); err == nil {
			err = inherit(tmp, path)
		}
		step()
		if err == nil {
			err = os.Rename(tmp, path)
		}
		if err != nil {
			os.Remove(tmp)
		}
		f.Close() // which unlocks it
	}
	if err != nil {
		return asked(path, err)
	}
	return nil
}

// asked is an error of the system by the name that was asked for.
func asked(path string, err error) error {
	if why := (*fs.PathError)(nil); errors.As(err, &why) {
		err = why.Err
	} else if why := (*os.LinkError)(nil); errors.As(err, &why) {
		err = why.Err
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

// modeFor is the mode to make a file with that will replace another: nobody else reads it before it has the mode
// of that. In the place of a link it has no right that the link's target lacks.
func modeFor(old string) fs.FileMode {
	info, err := os.Lstat(old)
	if err != nil {
		return plainMode
	}
	if info.Mode().IsRegular() {
		return 0o600
	}
	if info, err = os.Stat(old); err != nil {
		return plainMode
	}
	return plainMode & info.Mode()
}

// inherit gives path the owner and mode of old, if that is a file.
func inherit(path, old string) error {
	info, err := os.Lstat(old)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	mode := info.Mode().Perm()
	if !inheritOwner(path, info) {
		mode &^= 0o070 // of a group that it does not have
	}
	return os.Chmod(path, mode)
}

// kind is a word for what is no file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "special"
}

// step is called before each change. Tests end the program there.
var step = func() {}

// prefix begins the names of what is in the making, and temporary is all of such a name.
const prefix = ".snapana-"

var temporary = regexp.MustCompile(`^\.snapana-[0-9]+-[0-9]+$`)

// Temporary reports whether a name is of what is being put together, or was until its writer was killed.
func Temporary(name string) bool { return temporary.MatchString(name) }

// fresh makes a file or folder with a temporary name in dir, and locks it where the system can.
func fresh(dir string, create func(name string) (*os.File, error)) (path string, f *os.File, err error) {
	for i := range 10_000 {
		path = filepath.Join(dir, fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), i))
		step()
		if f, err = create(path); errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		flock(f, true)
		// Until it was locked another writer may have taken it for left behind.
		if is(path, f) {
			return path, f, nil
		}
		f.Close()
	}
	return "", nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrExist}
}

// is reports whether f is what has that name now.
func is(path string, f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(named, opened)
}

// mostSwept is how many entries of a folder are looked at for what writers left.
const mostSwept = 10_000

// sweep removes what writers that were killed left in dir. Of folders it removes files that are ours, and others
// that have another name elsewhere.
func sweep(dir string, ours func(name string) bool) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	names, _ := d.Readdirnames(mostSwept)
	d.Close()
	for _, name := range names {
		if !Temporary(name) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil || !own(info) || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		f, err := openNow(path)
		if err != nil {
			continue
		}
		// While it is locked nobody else removes it; until then its name may have gone to another writer.
		if now, err := f.Stat(); err == nil && os.SameFile(info, now) && abandoned(f, now) && is(path, f) {
			step()
			if info.IsDir() {
				discard(path, ours)
			} else {
				os.Remove(path)
			}
		}
		f.Close()
	}
}

// abandoned locks what is in the making, and reports whether nobody is at it.
func abandoned(f *os.File, info fs.FileInfo) bool {
	free, known := flock(f, false)
	return known && free || !known && time.Since(info.ModTime()) > time.Minute
}

// discard removes a folder that was in the making, or was replaced: of its files those that are ours or have
// another name elsewhere. What it cannot know to be of no use stays.
func discard(path string, ours func(name string) bool) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		info, err := e.Info()
		switch {
		case err != nil:
		case info.IsDir():
			if e.Name() == madeName || e.Name() == oldName || e.Name() == doneName {
				discard(name, ours)
			}
		case ours(e.Name()) || links(info) > 1:
			step()
			os.Remove(name)
		}
	}
	step()
	os.Remove(path)
}
