package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"snapana/analyze"
	"snapana/report"
	"snapana/report/json"
	"snapana/report/text"
)

func newReport() *cobra.Command {
	var (
		in     inputFlags
		rec    recorderFlags
		dir    string
		quiet  bool
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Analyse a snapshot: print the verdict, write the full report to a folder",
		Long: `report analyses the snapshot in FILE (- for standard input), prints the verdict and
writes the full report, with an HTML page, plots and report.json, to a folder.

FILE is what torch.cuda.memory._dump_snapshot wrote, or the same as JSON, or a page
made by torch.cuda._memory_viz trace_plot; it may be inside gzip, zstd, xz, bzip2 or
zip. What the recorder wrote beside it says who holds the memory, see snapana ghosts.

The folder is NAME.report in the current folder, unless -o names another; what an
earlier run left there is replaced. Nothing is written when FILE cannot be read.`,
		Example: `  snapana report snapshot.pickle
  snapana report -o out/ snapshot.pickle.gz
  snapana report --json --partial cut.pickle > report.json`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("output") && dir == "" {
				return fmt.Errorf("-o needs the name of a folder")
			}
			if quiet && asJSON {
				return fmt.Errorf("--quiet and --json exclude each other")
			}
			if dir == "" {
				dir = folderName(args[0])
			}
			if err := report.Check(dir); err != nil {
				return err
			}
			result, err := rec.analyse(cmd, &in, args[0], true)
			if err != nil {
				return err
			}
			if err := report.WriteDir(dir, result); err != nil {
				return written(fmt.Errorf("write the report: %w", err))
			}
			w := cmd.OutOrStdout()
			switch {
			case quiet:
				return nil
			case asJSON:
				return written(json.Write(w, result))
			}
			if err := printVerdict(w, result); err != nil {
				return written(err)
			}
			_, err = fmt.Fprintf(w, "\nReport in %s\n", dir+string(os.PathSeparator))
			return written(err)
		},
	}
	in.add(cmd)
	rec.add(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&dir, "output", "o", "", "`FOLDER` to write, made if it is not there (default: NAME.report)")
	fl.BoolVarP(&quiet, "quiet", "q", false, "print nothing; only write the folder")
	fl.BoolVar(&asJSON, "json", false, "print report.json instead of the verdict")
	return cmd
}

func printVerdict(w io.Writer, r *analyze.Result) error {
	return text.Verdict(w, r, text.Options{Color: useColour(w)})
}

// folderName is the default folder for the report on a file.
func folderName(path string) string {
	if path == "-" {
		return "stdin.report"
	}
	name := filepath.Base(path)
	for {
		ext := filepath.Ext(name)
		switch strings.ToLower(ext) {
		case ".pickle", ".pkl", ".json", ".html", ".gz", ".zst", ".xz", ".bz2", ".zip":
			if ext != name {
				name = strings.TrimSuffix(name, ext)
				continue
			}
		}
		return name + ".report"
	}
}
