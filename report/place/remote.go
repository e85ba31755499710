package place

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/snapana/snapana/snapshot/store"
)

// Files of a folder in a store are put one after the other, the first of the list last: who finds that one finds
// the others. Before any, the mark is put, which only one writer can; it goes when all are there. Of a writer that
// was killed it stays, and tells the next one that what is there is not whole.
const mark = prefix + "0-0"

// tooLong is how long a writer may take, until it counts as killed.
var tooLong = 10 * time.Minute

// cleaning is how long a writer that was told to stop may take to remove what it has put.
const cleaning = 2 * time.Second

// send puts a file into a store, as a whole.
func send(ctx context.Context, name string, file *File) error {
	if file.Fill == nil {
		return store.Put(ctx, name, bytes.NewReader(file.Data), int64(len(file.Data)), false)
	}
	f, err := os.CreateTemp("", prefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := file.write(f); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	return store.Put(ctx, name, f, size, false)
}

// putAll puts files into a folder in a store, in place of those there that are ours. With fresh nothing may be
// there, or the error is fs.ErrExist.
func putAll(ctx context.Context, dir string, files []File, ours func(name string) bool, fresh bool) (err error) {
	own := fmt.Appendf(nil, "%016x", rand.Uint64()) // so that the writer knows its mark by its content
	err = store.Put(ctx, store.Join(dir, mark), bytes.NewReader(own), int64(len(own)), true)
	if errors.Is(err, fs.ErrExist) {
		return busy(dir)
	} else if err != nil {
		return err
	}
	var there []string
	defer func() {
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
		defer stop()
		for _, name := range there {
			if err != nil {
				store.Remove(end, store.Join(dir, name))
			}
		}
		err = cmp.Or(err, store.Remove(end, store.Join(dir, mark)))
	}()
	entries, err := store.List(ctx, dir, false)
	if err != nil {
		return err
	}
	for _, f := range files { // the first first, without which the others are not whole
		for _, e := range entries {
			if e.Name() == f.Name && !fresh {
				err = cmp.Or(err, store.Remove(ctx, store.Join(dir, f.Name)))
			}
		}
	}
	for _, e := range entries {
		if fresh && e.Name() != mark {
			return fs.ErrExist
		} else if ours(e.Name()) && !inFiles(files, e.Name()) && !e.IsDir() {
			err = cmp.Or(err, store.Remove(ctx, store.Join(dir, e.Name())))
		}
	}
	for i := len(files) - 1; i >= 0 && err == nil; i-- {
		there = append(there, files[i].Name)
		err = send(ctx, store.Join(dir, files[i].Name), &files[i])
	}
	return err
}

func busy(dir string) error {
	return fmt.Errorf("another program writes to %s, or was killed there less than %d minutes ago: try again, "+
		"or write elsewhere", dir, int(tooLong.Minutes()))
}

// mendRemote removes what a writer that was killed left in a folder of a store.
func mendRemote(ctx context.Context, dir string, ours func(name string) bool) error {
	entries, err := store.List(ctx, dir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	left := false
	for _, e := range entries {
		if e.Name() == mark {
			left = true
			if time.Since(e.ModTime()) < tooLong {
				return busy(dir)
			}
		}
	}
	for _, e := range entries {
		if left && ours(e.Name()) && !e.IsDir() {
			err = cmp.Or(err, store.Remove(ctx, store.Join(dir, e.Name())))
		}
	}
	if left {
		err = cmp.Or(err, store.Remove(ctx, store.Join(dir, mark)))
	}
	return err
}
