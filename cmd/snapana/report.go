package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
)

// minPage is what a page without anything to zoom into takes at most.
const minPage = 2 << 20

// formats are what report can print, of the report that was written to dir.
var formats = []struct {
	name  string
	write func(w io.Writer, r *analyze.Result, dir string) error
}{
	{"text", printReport},
	{"md", func(w io.Writer, r *analyze.Result, _ string) error { return text.Markdown(w, r) }},
	{"json", func(w io.Writer, r *analyze.Result, _ string) error { return json.Write(w, r) }},
}

func newReport() *cobra.Command {
	var (
		in     inputFlags
		rec    recorderFlags
		dir    string
		quiet  bool
		asJSON bool
		format string
		total  size
		drv    driverFlags
	)
	maxPage := size(html.DefaultBytes)
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Analyze a snapshot: print the verdict, write the full report to a folder",
		Long: `Analyze the snapshot in FILE (- for standard input), print the verdict and write the full
report to a folder: an HTML page, plots and report.json. The recorder's NAME.snapana beside
NAME.pickle is used automatically.

The folder is NAME.report in the current folder, unless -o names another. A report that an
earlier run left there is replaced. Nothing is written when FILE cannot be read.`,
		Example: `  snapana report snapshot.pickle
  snapana report -o out/ snapshot.pickle.gz
  snapana report --json --partial cut.pickle > report.json
  snapana report --format md snapshot.pickle | gh issue create --title OOM --body-file -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("output") && dir == "" {
				return fmt.Errorf("-o needs the name of a folder")
			}
			changed := cmd.Flags().Changed("format")
			switch {
			case quiet && asJSON:
				return fmt.Errorf("--quiet and --json cannot be used together")
			case changed && (quiet || asJSON):
				return fmt.Errorf("--format cannot be used with --quiet or --json")
			case !slices.Contains(names, format):
				return unknown("--format", format, names)
			}
			if maxPage < minPage {
				return fmt.Errorf("invalid --max-page %d; expected at least 2MiB, which tables and pictures may take", maxPage)
			}
			if dir == "" {
				dir = "stdin.report"
				if args[0] != "-" {
					dir = snapshot.Stem(args[0]) + ".report"
				}
			}
			if err := report.Check(dir); err != nil {
				return err
			}
			opt := analyze.Options{Capacity: int64(total)}
			if err := drv.read(cmd.Context(), &opt); err != nil {
				return err
			}
			result, err := rec.analyze(cmd, &in, args[0], opt)
			if err != nil {
				return err
			}
			if err := report.WriteDir(dir, result, int(maxPage)); err != nil {
				return written(fmt.Errorf("write the report: %w", err))
			}
			switch {
			case quiet:
				return nil
			case asJSON:
				format = "json"
			}
			return written(formats[slices.Index(names, format)].write(cmd.OutOrStdout(), result, dir))
		},
	}
	fl := cmd.Flags()
	in.add(fl)
	rec.add(fl)
	drv.add(fl)
	fl.StringVarP(&dir, "output", "o", "", "`FOLDER` to write, created if missing (default: NAME.report)")
	fl.BoolVarP(&quiet, "quiet", "q", false, "print nothing; only write the folder")
	fl.Var(&maxPage, "max-page", "maximum `SIZE` of report.html; a smaller page shows fewer single allocations")
	fl.Lookup("max-page").DefValue = "8MiB"
	fl.Var(&total, "capacity", "memory of each GPU, a `SIZE` like 80GiB: snapshots do not record it")
	fl.BoolVar(&asJSON, "json", false, "print report.json instead of the verdict")
	fl.StringVar(&format, "format", "text", "print as `FORMAT`: text, md (Markdown for issues and chats) or json")
	oneOf(cmd, "format", names)
	return cmd
}

// printReport prints the verdict, where the memory of each device is, and where the report is.
func printReport(w io.Writer, r *analyze.Result, dir string) error {
	o := look(w)
	if err := text.Verdict(w, r, o); err != nil {
		return err
	}
	if err := text.Accounts(w, r, o); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nReport in %s\n", dir+string(os.PathSeparator))
	return err
}
