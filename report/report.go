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
	"github.com/snapana/snapana/report/place"
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
// all files are written or nothing changes, of which package place tells.
func WriteDir(dir string, r *analyze.Result, maxPage int) error {
	if err := Check(dir); err != nil {
		return err
	}
	files, err := render(r, maxPage)
	if err != nil {
		return err
	}
	for {
		exists, err := occupant(dir)
		switch {
		case err != nil:
			return err
		case exists:
			return place.Replace(dir, files, ours)
		}
		if err = place.Create(dir, files, ours); !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Meanwhile another run made it.
	}
}

// occupant reports whether dir is there, and fails when it is nothing to write a report to.
func occupant(dir string) (exists bool, err error) {
	for range 100 {
		exists, moving, err := look(dir)
		if err == nil || !moving {
			return exists, err
		}
		// Another run moves its files there just now, for which Mend waits.
	}
	exists, _, err = look(dir)
	return exists, err
}

// look is occupant at this moment. moving says that files in dir are being replaced, so that the error may pass.
func look(dir string) (exists, moving bool, err error) {
	if err := place.Mend(dir, ours); err != nil {
		return true, false, err
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info, e := os.Lstat(dir)
		switch {
		case e != nil:
			return false, false, nil
		case info.IsDir(): // which took the place of one that was opened
			return true, true, err
		}
		return false, false, fmt.Errorf("%s is a link to nothing; name another folder with -o", dir)
	case err != nil:
		if info, e := os.Stat(dir); e == nil && !info.IsDir() {
			return false, false, fmt.Errorf("%s is a file, the report needs a folder; name another with -o", dir)
		}
		return false, false, fmt.Errorf("look into the output folder: %w", err)
	}
	foreign, report := "", false
	for _, e := range entries {
		switch name := e.Name(); {
		case e.IsDir() && ours(name):
			return true, false, fmt.Errorf("%s is a folder, and the report has a file of that name; move it away, "+
				"or name another folder with -o", filepath.Join(dir, name))
		case e.IsDir() && place.Temporary(name):
			moving = true
		case name == jsonName && e.Type().IsRegular() && isReport(filepath.Join(dir, name)):
			report = true
		default:
			foreign = name
		}
	}
	if foreign != "" && !report {
		err = fmt.Errorf("%s %w (for example %s); name another folder with -o", dir, ErrNotReport, foreign)
	}
	return true, moving, err
}

const (
	pageName = "report.html"
	jsonName = "report.json"
)

// render makes all files in memory, so that no fault in the making leaves anything on disk.
// They come to a few MiB, plus some 100 KiB for each device.
func render(r *analyze.Result, maxPage int) ([]place.File, error) {
	files := []place.File{{Name: pageName}, {Name: jsonName}}
	write := []func(io.Writer) error{
		func(w io.Writer) error { return html.Write(w, r, maxPage) },
		func(w io.Writer) error { return json.Write(w, r) },
	}
	for _, p := range plot.All(r) {
		files = append(files, place.File{Name: p.Name + ".png"})
		write = append(write, func(w io.Writer) error { return p.Write(w, plot.Medium{}) })
	}
	errs := make([]error, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(files); i = next.Add(1) - 1 {
				var b bytes.Buffer
				errs[i] = write[i](&b)
				files[i].Data = b.Bytes()
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
