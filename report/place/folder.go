package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/snapana/snapana/snapshot/store"
)

// What is in a folder whose files are replaced one by one. New ones are in madeName. Old ones are moved to
// oldName, which is renamed to doneName when all are there: until then the old files count, then the new ones.
const madeName, oldName, doneName = "new", "old", "replaced"

// Create makes a folder of files, with its parents. The error is fs.ErrExist where it is there by now.
// Modes are 0644 and 0755 less the umask.
func Create(ctx context.Context, dir string, files []File, ours func(name string) bool) (err error) {
	if remote, err := store.Is(dir); err != nil {
		return err
	} else if remote {
		return putAll(ctx, dir, files, ours, true)
	}
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	made, err := makeParents(parent)
	defer func() {
		if err != nil {
			for _, p := range made {
				os.Remove(p)
			}
		}
	}()
	if err != nil {
		return err
	}
	defer hold()()
	sweep(parent, ours)
	tmp, f, err := stage(parent, files, "", ours)
	if err != nil {
		return err
	}
	defer f.Close()
	step()
	if err = os.Rename(tmp, dir); err != nil {
		discard(tmp, ours)
	}
	return err
}

// MkdirAll is os.MkdirAll. In a store there is nothing to make.
func MkdirAll(dir string) error {
	if remote, err := store.Is(dir); remote || err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// Remove is os.Remove, also of what is in a store.
func Remove(ctx context.Context, path string) error {
	if remote, err := store.Is(path); remote || err != nil {
		if err == nil {
			err = store.Remove(ctx, path)
		}
		return err
	}
	return os.Remove(path)
}

// makeParents makes dir and what lies above it, and lists what it made, innermost first.
func makeParents(dir string) (made []string, err error) {
	for p := dir; ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) || p == filepath.Dir(p) {
			break
		}
		made = append(made, p)
	}
	return made, os.MkdirAll(dir, 0o755)
}

// Replace puts files into a folder in place of those there that are ours; others stay. Where the system
// can exchange two folders, who looks sees all of the old files or all of the new ones. Where it cannot, or the
// folder is the current one, a mount point, or has folders in it, files are moved one by one, and Mend or the
// next Replace ends what a writer that was killed began. Modes are those of what is replaced.
func Replace(ctx context.Context, dir string, files []File, ours func(name string) bool) error {
	if remote, err := store.Is(dir); err != nil {
		return err
	} else if remote {
		return putAll(ctx, dir, files, ours, false)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	unlock, locked, err := lock(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	defer hold()()
	if err := mend(dir, locked, ours); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := room(dir, files, entries); err != nil {
		return err
	}
	if done, err := exchange(dir, files, entries, ours); done || err != nil {
		return err
	}
	return replaceEach(dir, files, entries, ours)
}

// room fails where something that is no file has the name of one.
func room(dir string, files []File, entries []fs.DirEntry) error {
	for _, e := range entries {
		for _, f := range files {
			if e.Name() == f.Name && !isFile(e) {
				return fmt.Errorf("%s is %s, and a file of that name is to be written: move it away, "+
					"or write elsewhere", filepath.Join(dir, f.Name), kind(e.Type()))
			}
		}
	}
	return nil
}

// isFile reports whether an entry may be replaced: a file, or a link to whatever.
func isFile(e fs.DirEntry) bool { return e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0 }

// Mend ends what a writer that was killed began in dir: all of the new files are there then, or all of the old.
func Mend(ctx context.Context, dir string, ours func(name string) bool) error {
	if remote, err := store.Is(dir); err != nil {
		return err
	} else if remote {
		return mendRemote(ctx, dir, ours)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !Temporary(e.Name()) || !e.IsDir() {
			continue
		}
		unlock, locked, err := lock(ctx, dir)
		if err != nil {
			return err
		}
		defer unlock()
		defer hold()()
		return mend(dir, locked, ours)
	}
	return nil
}

// mend is Mend for a folder that is locked, where the system can.
func mend(dir string, locked bool, ours func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !Temporary(e.Name()) || !own(info) ||
			!locked && time.Since(info.ModTime()) < time.Minute {
			continue
		}
		tmp := filepath.Join(dir, e.Name())
		for _, from := range []string{oldName, doneName} {
			if !exists(filepath.Join(tmp, from)) {
				continue
			}
			if from == doneName {
				from = madeName
			}
			if err := moveAll(filepath.Join(tmp, from), dir); err != nil {
				return fmt.Errorf("end what another run began: %w", err)
			}
		}
		discard(tmp, ours)
	}
	return nil
}

// moveAll moves what is in a folder to another, over what has the same name.
func moveAll(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		step()
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// stage writes files to a new folder in parent, each with the mode of what like, if there is such a folder, has of
// its name. The folder is locked until f is closed.
func stage(parent string, files []File, like string, ours func(name string) bool) (tmp string, f *os.File, err error) {
	tmp, f, err = fresh(parent, func(name string) (*os.File, error) {
		if err := os.Mkdir(name, 0o755); err != nil {
			return nil, err
		}
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = fs.ErrExist // another writer took it for left behind: the next name may do
		}
		return f, err
	})
	if err != nil {
		return "", nil, err
	}
	if err = fill(tmp, files, like); err != nil {
		discard(tmp, func(name string) bool { return ours(name) || inFiles(files, name) })
		f.Close()
		return "", nil, err
	}
	return tmp, f, nil
}

func inFiles(files []File, name string) bool {
	for _, f := range files {
		if f.Name == name {
			return true
		}
	}
	return false
}

// fill writes files to a folder.
func fill(dir string, files []File, like string) error {
	for _, f := range files {
		path, old := filepath.Join(dir, f.Name), filepath.Join(like, f.Name)
		mode := fs.FileMode(plainMode)
		if like != "" {
			mode = modeFor(old)
		}
		step()
		to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
		if err == nil {
			err = cmp.Or(f.write(to), to.Close())
		}
		if err != nil {
			return err
		}
		if like == "" {
			continue
		}
		if err := inherit(path, old); err != nil {
			return err
		}
	}
	return nil
}

// exchange puts the files together beside dir, with links to what else is in it, and swaps the two. It
// reports whether it could; else nothing has changed.
func exchange(dir string, files []File, entries []fs.DirEntry, ours func(name string) bool) (done bool, err error) {
	for _, e := range entries {
		if !isFile(e) {
			return false, nil
		}
	}
	info, err := os.Lstat(dir)
	if here, e := os.Stat("."); err != nil || e != nil || os.SameFile(here, info) || !exchangeable(dir) {
		return false, nil
	}
	parent := filepath.Dir(dir)
	sweep(parent, ours)
	tmp, f, err := stage(parent, files, dir, ours)
	if why := (*fillError)(nil); errors.As(err, &why) {
		return false, err // would fail anywhere
	}
	if err != nil {
		return false, nil
	}
	defer f.Close()
	// From here on this may be the old folder.
	defer discard(tmp, func(name string) bool { return ours(name) || inFiles(files, name) })
	for _, e := range entries {
		if !ours(e.Name()) {
			step()
			if os.Link(filepath.Join(dir, e.Name()), filepath.Join(tmp, e.Name())) != nil {
				return false, nil
			}
		}
	}
	if now, err := f.Stat(); err != nil || !sameOwner(info, now) || os.Chmod(tmp, info.Mode()) != nil {
		return false, nil
	}
	step()
	if swap(tmp, dir) != nil {
		return false, nil
	}
	step()
	rescue(tmp, dir, ours)
	return true, nil
}

// rescue moves what somebody put into a folder while it was replaced to the new one.
func rescue(old, dir string, ours func(name string) bool) {
	entries, _ := os.ReadDir(old)
	for _, e := range entries {
		if to := filepath.Join(dir, e.Name()); !ours(e.Name()) && !exists(to) {
			os.Rename(filepath.Join(old, e.Name()), to)
		}
	}
}

// replaceEach puts the files together inside dir, moves the old ones out of the way and the new ones in their place.
// When it fails, the old ones come back.
func replaceEach(dir string, files []File, entries []fs.DirEntry, ours func(name string) bool) (err error) {
	tmp, f, err := stage(dir, nil, "", ours)
	if err != nil {
		return err
	}
	defer f.Close()
	made, old, done := filepath.Join(tmp, madeName), filepath.Join(tmp, oldName), filepath.Join(tmp, doneName)
	all := func(name string) bool { return ours(name) || inFiles(files, name) }
	defer func() {
		if err == nil || moveAll(old, dir) == nil {
			discard(tmp, all)
		}
	}()
	if err := os.Mkdir(made, 0o755); err != nil {
		return err
	}
	if err := fill(made, files, dir); err != nil {
		return err
	}
	step()
	if err := os.Mkdir(old, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if ours(e.Name()) && isFile(e) {
			step()
			if err := os.Rename(filepath.Join(dir, e.Name()), filepath.Join(old, e.Name())); err != nil {
				return err
			}
		}
	}
	step()
	if err := os.Rename(old, done); err != nil {
		return err
	}
	if err := moveAll(made, dir); err != nil {
		for _, f := range files { // those that came without an old one in their place
			if !exists(filepath.Join(made, f.Name)) && !exists(filepath.Join(done, f.Name)) {
				os.Remove(filepath.Join(dir, f.Name))
			}
		}
		os.Rename(done, old)
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// patience is how long another writer, that has locked a folder, may write nothing.
var patience = 10 * time.Second

// lock waits until no other writer is at a folder, or ctx is done. locked is false where the system has no locks on
// folders.
func lock(ctx context.Context, dir string) (unlock func(), locked bool, err error) {
	end, last, look := time.Now().Add(patience), made{}, time.Time{}
	for ; ; time.Sleep(5 * time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		f, err := os.Open(dir)
		if err != nil {
			return nil, false, err
		}
		free, known := flock(f, false)
		if !known {
			f.Close()
			return func() {}, false, nil
		}
		if free {
			mine, err := f.Stat()
			if info, e := os.Stat(dir); err == nil && e == nil && os.SameFile(info, mine) {
				return func() { f.Close() }, true, nil
			}
		}
		f.Close() // by now another folder may be in its place
		now := time.Now()
		if now.Sub(look) > patience/20 {
			look = now
			if is := making(dir); is != last {
				last, end = is, now.Add(patience)
			}
		}
		if now.After(end) {
			return nil, false, fmt.Errorf("another program has locked %s, or writes to it: try again, "+
				"or write elsewhere", dir)
		}
	}
}

// made is how much of what is in the making there is.
type made struct{ files, bytes int64 }

// making is how much writers have made in a folder and beside it, of what is not in its place yet.
func making(dir string) (m made) {
	for _, in := range []string{dir, filepath.Dir(dir)} {
		d, err := os.Open(in)
		if err != nil {
			continue
		}
		names, _ := d.Readdirnames(mostSwept)
		d.Close()
		for _, name := range names {
			if Temporary(name) {
				m.add(filepath.Join(in, name), 2)
			}
		}
	}
	return m
}

// add adds what is in a folder, so many folders deep.
func (m *made) add(dir string, deep int) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil:
		case info.IsDir() && deep > 1:
			m.add(filepath.Join(dir, e.Name()), deep-1)
		default:
			m.files++
			m.bytes += info.Size()
		}
	}
}

// hold keeps signals from ending the program until release is called.
func hold() (release func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return func() { signal.Stop(c) }
}
