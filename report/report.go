// Package report writes the full report on an analysis as a folder: report.html for people,
// report.json for programs, and pictures to pass on. What each of them shows is up to the
// packages below this one.
package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/plot"
)

// ErrNotReport says that a folder contains something other than a report, which WriteDir then
// leaves alone.
var ErrNotReport = errors.New("contains files that are not a snapana report")

// Check says whether WriteDir could use dir, as far as that shows before anything is written:
// it must not be there yet, be empty, or hold an earlier report.
func Check(dir string) error {
	_, err := occupant(dir)
	return err
}

// WriteDir writes the report on r to dir and makes it, with its parents, when it is not there. Its
// page has at most maxPage bytes; see html.Write.
// The files of an earlier report in dir are replaced, other files beside them are kept. Either
// all files are written or nothing changes.
func WriteDir(dir string, r *analyze.Result, maxPage int) error {
	exists, err := occupant(dir)
	if err != nil {
		return err
	}
	files, err := render(r, maxPage)
	if err != nil {
		return err
	}
	if exists {
		return replace(dir, files)
	}
	return create(dir, files)
}

// occupant reports whether dir is there, and fails when it is nothing to write a report to.
func occupant(dir string) (exists bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(dir); err == nil {
			return false, fmt.Errorf("%s is a link to nothing; name another folder with -o", dir)
		}
		return false, nil
	case err != nil:
		if info, e := os.Stat(dir); e == nil && !info.IsDir() {
			return false, fmt.Errorf("%s is a file, the report needs a folder; name another with -o", dir)
		}
		return false, fmt.Errorf("look into the output folder: %w", err)
	}
	foreign := ""
	for _, e := range entries {
		if e.Name() == jsonName && isReport(filepath.Join(dir, jsonName)) {
			return true, nil
		}
		if !staging(e.Name()) {
			foreign = e.Name()
		}
	}
	if foreign != "" {
		return true, fmt.Errorf("%s %w (for example %s); name another folder with -o", dir, ErrNotReport, foreign)
	}
	return true, nil
}

const (
	pageName = "report.html"
	jsonName = "report.json"
)

// file is one file of a report: its name, what writes it, and in the end what it holds.
type file struct {
	name  string
	write func(io.Writer) error
	data  []byte
}

// render makes all files in memory, so that no fault in the making leaves anything on disk.
// They come to a few MiB, plus some 100 KiB for each device.
func render(r *analyze.Result, maxPage int) ([]file, error) {
	files := []file{
		{name: pageName, write: func(w io.Writer) error { return html.Write(w, r, maxPage) }},
		{name: jsonName, write: func(w io.Writer) error { return json.Write(w, r) }},
	}
	for _, p := range plot.All(r) {
		files = append(files, file{name: p.Name + ".png",
			write: func(w io.Writer) error { return p.Write(w, plot.Medium{}) }})
	}
	errs := make([]error, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(files); i = next.Add(1) - 1 {
				var b bytes.Buffer
				errs[i] = files[i].write(&b)
				files[i].data = b.Bytes()
			}
		})
	}
	wg.Wait()
	return files, cmp.Or(errs...)
}

// ours matches the names that files of a report have.
func ours(name string) bool {
	picture, ok := strings.CutSuffix(name, ".png")
	return name == pageName || name == jsonName || ok && plot.IsName(picture)
}

// isReport reports whether the file at path begins as report.json does.
func isReport(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	return bytes.HasPrefix(head[:n], []byte("{\n \"schema\": \"snapana.report/"))
}

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
