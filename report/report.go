// Package report writes the full report on an analysis as a folder: report.html for people,
// report.json for programs, and pictures to pass on. What each of them shows is up to the
// packages below this one.
package report

import (
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
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/plot"
	"github.com/snapana/snapana/snapshot/input"
)

// ErrNotReport says that a folder contains something other than a report, which WriteDir then
// leaves alone.
var ErrNotReport = errors.New("contains files that are not a snapana report")

// WriteDir writes the report on r to dir and makes it, with its parents, when it is not there. Its
// page has at most maxPage bytes; see html.Write.
// The files of an earlier report in dir are replaced, other files beside them are kept. Either
// all files are written or nothing changes, of which package place tells. other says that the earlier report was on
// another snapshot.
func WriteDir(ctx context.Context, dir string, r *analyze.Result, maxPage int) (other bool, err error) {
	found, err := occupant(ctx, dir)
	if err != nil {
		return false, err
	}
	files, err := render(r, maxPage)
	if err != nil {
		return false, err
	}
	for {
		if found.exists {
			return found.other(r), place.Replace(ctx, dir, files, ours)
		}
		if err = place.Create(ctx, dir, files, ours); !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		// Meanwhile another run made it.
		if found, err = occupant(ctx, dir); err != nil {
			return false, err
		}
	}
}

// most is how many folders of one name are looked at.
const most = 10_000

// WriteOwn is WriteDir for the folder NAME.report, or NAME-2.report and so on where that is taken: by a report on
// another snapshot, or by something else. It returns the folder, and the one that was taken, "" for none.
func WriteOwn(ctx context.Context, name string, r *analyze.Result, maxPage int) (dir, taken string, err error) {
	files, err := render(r, maxPage)
	if err != nil {
		return "", "", err
	}
	for n := 1; n < most; {
		dir = name + Ending
		if n > 1 {
			dir = fmt.Sprintf("%s-%d%s", name, n, Ending)
		}
		found, err := occupant(ctx, dir)
		switch {
		case errors.As(err, new(*takenError)), err == nil && found.other(r):
			if taken == "" {
				taken = dir
			}
			n++
		case err != nil:
			return dir, taken, err
		case found.exists:
			return dir, taken, place.Replace(ctx, dir, files, ours)
		default:
			if err := place.Create(ctx, dir, files, ours); !errors.Is(err, fs.ErrExist) {
				return dir, taken, err
			}
			// Meanwhile another run made it.
		}
	}
	return dir, taken, fmt.Errorf("%s and %d more are taken; name another folder with -o", taken, most-2)
}

// Ending is that of the names of folders that WriteOwn writes.
const Ending = ".report"

// takenError says that a place has something that is no report.
type takenError struct{ error }

func (e *takenError) Unwrap() error { return e.error }

// occupied is what there is in the place of a report.
type occupied struct {
	exists bool
	of     string // checksum of the snapshot whose report is there, "" for no report
	report bool
	moving bool // files are being replaced, so that an error may pass
}

// other reports whether it is a report on another snapshot than r is of.
func (o occupied) other(r *analyze.Result) bool {
	return o.report && o.of != json.Checksum(r.Snapshot)
}

// occupant says what dir is, and fails when it is nothing to write a report to.
func occupant(ctx context.Context, dir string) (occupied, error) {
	for range 100 {
		found, err := look(ctx, dir)
		if err == nil || !found.moving {
			return found, err
		}
		// Another run moves its files there just now, for which Mend waits.
	}
	return look(ctx, dir)
}

// look is occupant at this moment.
func look(ctx context.Context, dir string) (found occupied, err error) {
	if err := place.Mend(ctx, dir, ours); err != nil {
		return found, err
	}
	entries, err := input.ReadDir(ctx, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info, e := os.Lstat(dir)
		switch {
		case e != nil:
			return found, nil
		case info.IsDir(): // which took the place of one that was opened
			return occupied{moving: true}, err
		}
		return found, &takenError{fmt.Errorf("%s is a link to nothing; name another folder with -o", dir)}
	case err != nil:
		if info, e := os.Stat(dir); e == nil && !info.IsDir() {
			return found, &takenError{fmt.Errorf("%s is a file, the report needs a folder; name another with -o", dir)}
		}
		return found, fmt.Errorf("look into the output folder: %w", err)
	}
	found.exists = true
	foreign := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case e.IsDir() && ours(name):
			return found, &takenError{fmt.Errorf("%s is a folder, and the report has a file of that name; move it away, "+
				"or name another folder with -o", filepath.Join(dir, name))}
		case e.IsDir() && place.Temporary(name):
			found.moving = true
		case name == jsonName && e.Type().IsRegular():
			if found.of, found.report = subject(ctx, input.Join(dir, name)); !found.report {
				foreign = name
			}
		default:
			foreign = name
		}
	}
	if foreign != "" && !found.report {
		err = &takenError{fmt.Errorf("%s %w (for example %s); name another folder with -o", dir, ErrNotReport, foreign)}
	}
	return found, err
}

// Page is the name of the page in the folder.
const Page = "report.html"

const jsonName = "report.json"

// render makes all files in memory, so that no fault in the making leaves anything on disk.
// They come to a few MiB, plus some 100 KiB for each device.
func render(r *analyze.Result, maxPage int) ([]place.File, error) {
	files := []place.File{{Name: Page}, {Name: jsonName}}
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
	return name == Page || name == jsonName || ok && plot.IsName(picture)
}

// heading is what report.json begins with. Those of earlier releases have no checksum.
var heading = regexp.MustCompile(`^\{\n "schema": "snapana\.report/1",\n "source": \{\n  "name": ".*",\n` +
	`  "bytes": \d+,\n(?:  "checksum": "(.*)",\n)?`)

// subject reports whether the file at path begins as report.json does, and of which snapshot, by its checksum.
func subject(ctx context.Context, path string) (checksum string, report bool) {
	f, err := input.Open(ctx, path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	head := make([]byte, 16<<10) // a name is of at most 255 bytes, each escaped in six
	n, _ := io.ReadFull(f, head)
	if m := heading.FindSubmatch(head[:n]); m != nil {
		return string(m[1]), true
	}
	return "", false
}
