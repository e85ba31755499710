// Package report writes the full report on an analysis as a folder: report.html for people,
// report.json for programs, and pictures to pass on. What each of them shows is up to the
// packages below this one.
package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/snapana/snapana/analyze"
)

// ErrNotReport says that a folder holds something else than a report, which WriteDir then
// leaves alone.
var ErrNotReport = errors.New("holds files that are not a snapana report")

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
