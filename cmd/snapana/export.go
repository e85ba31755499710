package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/report/export"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
)

func newExport() *cobra.Command {
	var (
		in                inputFlags
		rec               recorderFlags
		to, out, at, name string
	)
	var known []string
	help := ""
	for _, f := range export.Formats() {
		known = append(known, f.Name)
		help += fmt.Sprintf("  %-9s %s\n", f.Name, f.Shows)
	}
	cmd := &cobra.Command{
		Use:   "export FILE...",
		Short: "Write a snapshot for other tools: SQL, pprof, flame graphs, Perfetto",
		Long: `Write what the snapshot in FILE tells in the format of other tools.

Formats (--to):
` + help + `
Parquet is a folder of tables, which takes the snapshots of all ranks of a run; the others are
one file, of one snapshot. -o - is standard output.`,
		Example: `  snapana export --to parquet -o tables/ dumps/rank*.pickle
  snapana export --to pprof -o memory.pb.gz snapshot.pickle
  snapana export --to folded --at leaked -o - snapshot.pickle | flamegraph.pl > leaks.svg
  snapana export --to perfetto -o memory.pftrace snapshot.pickle`,
		Args: needs(1, many, "a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			k := slices.Index(known, to)
			if to == "" {
				return misuse("missing --to; expected %s", strings.Join(known, ", "))
			} else if k < 0 {
				return unknown("--to", to, known)
			}
			f := &export.Formats()[k]
			files := unfold(cmd.Context(), args, snapshots)
			switch {
			case out == "":
				return misuse("missing -o, what to write to")
			case f.Write == nil && out == "-":
				return misuse("--to %s writes a folder of tables, which standard output cannot take", to)
			case f.Write != nil && len(files) != 1:
				return misuse("--to %s takes one FILE, not %d", to, len(files))
			case cmd.Flags().Changed("at") && !f.Moments:
				return misuse("--at is for --to folded; --to %s has all moments", to)
			case cmd.Flags().Changed("run") && f.Write != nil:
				return misuse("--run is for --to parquet")
			case !slices.Contains(export.Moments(), export.Moment(at)):
				return unknown("--at", at, export.Moments())
			}
			places, err := partitions(cmd.Context(), f, files, out, name)
			if err != nil {
				return err
			}
			for i, file := range files {
				r, err := rec.analyze(cmd, &in, file, analyze.Options{NoReplay: !f.Judged})
				if err != nil {
					return err
				}
				meterOf(cmd.Context()).doing("writing")
				fill := func(w io.Writer) error { return f.Write(cmd.Context(), w, r, export.Moment(at)) }
				switch {
				case f.Write == nil:
					err = export.WriteTables(cmd.Context(), places[i], r, f)
				case out == "-":
					err = fill(cmd.OutOrStdout())
				default:
					err = place.WriteBy(cmd.Context(), out, fill)
				}
				if err != nil {
					return written(explain(cmd.Context(), err))
				}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	in.addReading(fl, "file", "input")
	in.addRules(fl)
	rec.add(fl)
	fl.StringVar(&to, "to", "", "`FORMAT`, see above")
	fl.StringVarP(&out, "output", "o", "", "`FILE` to write, or FOLDER of tables")
	fl.StringVar(&at, "at", string(export.Peak), "`MOMENT` of folded stacks: "+strings.Join(words(export.Moments()), ", "))
	fl.StringVar(&name, "run", "", "`NAME` of the run in the tables (default: that of the file, without its rank)")
	oneOf(cmd, "to", known)
	oneOf(cmd, "at", export.Moments())
	return cmd
}

// partitions are the folders that the tables of each file go to; of a format of one file there are none.
func partitions(ctx context.Context, f *export.Format, files []string, out, run string) ([]string, error) {
	if f.Write != nil {
		return nil, nil
	}
	var list []string
	taken := map[string]string{}
	numbers := ranks.Numbers(files)
	for i, file := range files {
		file = input.Shown(ctx, file)
		name := run
		for _, other := range []string{snapshot.RunName(file), filepath.Base(filepath.Dir(file)), "run"} {
			if name == "" || name == "." || name == "-" || name == string(filepath.Separator) {
				name = other
			}
		}
		dir := input.Join(out, export.Partition(name, numbers[i]))
		if other, ok := taken[dir]; ok {
			return nil, misuse("%s and %s are of one rank of a run by their names; export them one by one, each with --run",
				other, file)
		}
		taken[dir] = file
		list = append(list, dir)
	}
	return list, nil
}
