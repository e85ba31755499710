package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const stagingPrefix = ".snapana-"

// staging reports whether a name is that of a folder where a report is put together.
func staging(name string) bool { return strings.HasPrefix(name, stagingPrefix) }

// stage writes the files to a new folder in parent. Modes are 0644 and 0755 less the umask.
func stage(parent string, files []file) (tmp string, err error) {
	for i := 0; ; i++ {
		tmp = filepath.Join(parent, fmt.Sprintf("%s%d-%d", stagingPrefix, os.Getpid(), i))
		if err = os.Mkdir(tmp, 0o755); !errors.Is(err, fs.ErrExist) || i == 1000 {
			break
		}
	}
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(tmp, f.name), f.data, 0o644); err != nil {
			os.RemoveAll(tmp)
			return "", err
		}
	}
	return tmp, nil
}

// create puts the files together beside dir, which is not there yet, and renames the result.
func create(dir string, files []file) (err error) {
	dir = filepath.Clean(dir)
	made, err := makeParents(filepath.Dir(dir))
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
	tmp, err := stage(filepath.Dir(dir), files)
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		os.RemoveAll(tmp)
		return err
	}
	return nil
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

// replace puts the files together inside dir and then moves them to where those of the
// earlier report were. Renaming the whole folder would be simpler, but fails for the current
// folder and for mount points.
func replace(dir string, files []file) (err error) {
	tmp, err := stage(dir, files)
	if err != nil {
		return err
	}
	var undo []func()
	defer func() {
		if err != nil {
			for i := len(undo) - 1; i >= 0; i-- {
				undo[i]()
			}
		}
		os.RemoveAll(tmp)
	}()
	move := func(from, to string) error {
		if err := os.Rename(from, to); err != nil {
			return err
		}
		undo = append(undo, func() { os.Rename(to, from) })
		return nil
	}
	old := filepath.Join(tmp, "old")
	if err := os.Mkdir(old, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ours(e.Name()) {
			if err := move(filepath.Join(dir, e.Name()), filepath.Join(old, e.Name())); err != nil {
				return err
			}
		}
	}
	for _, f := range files {
		if err := move(filepath.Join(tmp, f.name), filepath.Join(dir, f.name)); err != nil {
			return err
		}
	}
	return nil
}
