// Package export writes what a snapshot tells in the formats of other tools: pprof, folded stacks, Perfetto, and Parquet.
// It decides nothing: sizes, categories, steps and findings are those of the report.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/snapshot/input"
)

// Format is one that a file can be exported to.
type Format struct {
	Name  string
	Shows string // what for, in a few words
	// Judged says that it has findings, so that these must be proven by replays.
	Judged bool
	// Moments says that it shows one, a Moment.
	Moments bool
	// Write writes a file. It is nil for a format of several files, which Files gives.
	Write func(ctx context.Context, w io.Writer, r *analyze.Result, at Moment) error
	Files func(ctx context.Context, r *analyze.Result) []place.File
}

// Formats lists all formats.
func Formats() []Format {
	return []Format{
		{Name: "parquet", Shows: "tables for SQL: DuckDB, Polars, Spark, pandas", Judged: true, Files: tables},
		{Name: "pprof", Shows: "a profile for go tool pprof and its viewers", Write: writeProfile},
		{Name: "folded", Shows: "stacks for flame graphs: flamegraph.pl, speedscope", Moments: true, Write: writeFolded},
		{Name: "perfetto", Shows: "a timeline for ui.perfetto.dev", Write: writeTrace},
	}
}

// Moment says which allocations count.
type Moment string

// The moments.
const (
	Peak      Moment = "peak"      // those that were live when most was active
	OOM       Moment = "oom"       // those that were live at the last failure
	End       Moment = "end"       // those that were live at the end of the trace
	Allocated Moment = "allocated" // all that the trace has, whenever they were freed
	Leaked    Moment = "leaked"    // those that loops left behind, as findings of growth count them
)

// Moments lists all.
func Moments() []Moment { return []Moment{Peak, OOM, End, Allocated, Leaked} }

// Partition is the folder below the tables' own that the files of a snapshot go to, named as Hive does: readers make a
// column of each "name=value". An unknown rank is Hive's word for NULL.
func Partition(run string, rank int) string {
	of := "__HIVE_DEFAULT_PARTITION__"
	if rank >= 0 {
		of = strconv.Itoa(rank)
	}
	var name strings.Builder
	for _, b := range []byte(run) { // as Hive escapes what paths may not have, and its readers know
		if b < 0x80 && (b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' || strings.IndexByte("._+-", b) >= 0) {
			name.WriteByte(b)
		} else {
			fmt.Fprintf(&name, "%%%02X", b)
		}
	}
	return filepath.Join("run="+name.String(), "rank="+of)
}

// WriteTables puts the files of a snapshot into a folder, in place of those that are there: all of them or none.
func WriteTables(ctx context.Context, dir string, r *analyze.Result, f *Format) error {
	files := f.Files(ctx, r)
	ours := func(name string) bool {
		return slices.ContainsFunc(files, func(f place.File) bool { return f.Name == name })
	}
	for {
		if _, err := input.Stat(ctx, dir); err == nil {
			return place.Replace(ctx, dir, files, ours)
		}
		if err := place.Create(ctx, dir, files, ours); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}
