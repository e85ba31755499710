package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/serve"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
)

// minPage is what a page without anything to zoom into takes at most.
const minPage = 2 << 20

func newReport() *cobra.Command {
	var (
		in     inputFlags
		rec    recorderFlags
		dir    string
		quiet  bool
		asJSON bool
		format formatFlag
		total  size
		drv    driverFlags
	)
	maxPage := size(html.DefaultBytes)
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
			if quiet && asJSON {
				return fmt.Errorf("--quiet and --json cannot be used together")
			}
			if err := format.check(cmd, quiet || asJSON, "--quiet or --json"); err != nil {
				return err
			}
			if maxPage < minPage {
				return fmt.Errorf("invalid --max-page %d; expected at least 2MiB, which tables and pictures may take",
					maxPage)
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
			if err := drv.read(cmd, &in, &opt); err != nil {
				return err
			}
			result, err := rec.analyze(cmd, &in, args[0], opt)
			if err != nil {
				return err
			}
			if err := report.WriteDir(dir, result, int(maxPage)); err != nil {
				return written(fmt.Errorf("write the report: %w", err))
			}
			w := cmd.OutOrStdout()
			switch {
			case quiet:
				return nil
			case asJSON, format == "json":
				return written(json.Write(w, result))
			case format == "md":
				return written(text.Markdown(w, result))
			}
			return written(printReport(w, result, dir))
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
	addCapacity(fl, &total, ": snapshots do not record it")
	fl.BoolVar(&asJSON, "json", false, "print report.json instead of the verdict")
	format.add(cmd)
	return cmd
}

// printReport prints the verdict, the program's phases, where the memory of each device is, and where the report is.
func printReport(w io.Writer, r *analyze.Result, dir string) error {
	o := look(w)
	if err := text.Verdict(w, r, o); err != nil {
		return err
	}
	if err := text.Phases(w, r, o); err != nil {
		return err
	}
	if err := text.Accounts(w, r, o); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nReport in %s\n", oneLine(dir+string(os.PathSeparator)))
	return err
}

func newSummary() *cobra.Command {
	var (
		in  inputFlags
		out outputFlags
	)
	cmd := &cobra.Command{
		Use:   "summary FILE",
		Short: "Print the main figures of a snapshot, and what it lacks",
		Long: `Print one screen about the snapshot in FILE (- for standard input): the kind of file, the
torch release that wrote it, the main figures of each device, and what the file lacks. No
files are written.`,
		Example: `  snapana summary snapshot.pickle
  snapana summary --json snapshot.pickle
  zstd -dc snapshot.pickle.zst | snapana summary -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := in.analyze(cmd, args[0], analyze.Options{NoReplay: !out.json})
			if err != nil {
				return err
			}
			return show(cmd, out, result, json.Write, text.Summary)
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags(), "print the analysis as JSON, as report.json has it", "")
	return cmd
}

func newGhosts() *cobra.Command {
	var (
		in    inputFlags
		rec   recorderFlags
		least = size(1 << 20)
		out   outputFlags
	)
	cmd := &cobra.Command{
		Use:   "ghosts FILE",
		Short: "Find the Python objects that keep leaked memory alive",
		Long: `Find leaked memory in the snapshot in FILE (- for standard input) and the Python objects
that keep it alive: the variable, attribute, closure cell or reference cycle, how much it
keeps, what releasing it frees, and a fix. The recorder's file names these objects; without
it, only what grows is shown, and where it was allocated. FILE may be the recorder's file
alone (.snapana): then two of its dumps are compared, tensors in host memory included.`,
		Example: `  snapana ghosts run.pickle
  snapana ghosts snapshot.pickle --recorder run.snapana
  snapana ghosts run.pickle --before yesterday.snapana
  snapana ghosts --json run.pickle
  snapana ghosts run.snapana`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := rec.ghosts(cmd, &in, args[0])
			if err != nil {
				return err
			}
			return show(cmd, out, result, json.WriteGhosts, func(w io.Writer, r *analyze.Result, o text.Options) error {
				o.Min = int64(least)
				return text.Ghosts(w, r, o)
			})
		},
	}
	fl := cmd.Flags()
	in.add(fl)
	rec.add(fl)
	fl.Var(&least, "min", "sum up holders of less than `SIZE`; leaks are always shown")
	fl.Lookup("min").DefValue = "1MiB"
	out.add(fl, "print JSON, with all holders", "")
	return cmd
}

func newServe() *cobra.Command {
	var (
		in   inputFlags
		rec  recorderFlags
		port int
		open bool
	)
	cmd := &cobra.Command{
		Use:   "serve FILE",
		Short: "Serve the page of the report, without a limit on its size",
		Long: `Analyze the snapshot in FILE (- for standard input), print an address on 127.0.0.1 and serve
the report's page there until Ctrl-C. Unlike report.html, the page can zoom into every
allocation of a large trace. Nothing is written.

Anyone with this link can read the report; keep it private.`,
		Example: `  snapana serve snapshot.pickle
  snapana serve --open snapshot.pickle
  ssh -L 8321:127.0.0.1:8321 node snapana serve --port 8321 snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if port < 0 || port > 65535 {
				return fmt.Errorf("invalid --port %d; expected 1 to 65535, or 0 for any free port", port)
			}
			l, err := serve.Listen(port)
			if err != nil {
				return written(err)
			}
			defer l.Close()
			result, err := rec.analyze(cmd, &in, args[0], analyze.Options{})
			if err != nil {
				return err
			}
			s, err := serve.New(result, serve.DefaultBytes)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\nPress Ctrl-C to stop.\n", s.URL(l)); err != nil {
				return written(err)
			}
			if open {
				forget, err := s.Browse(l)
				defer forget()
				if err != nil {
					fmt.Fprintf(cmd.ErrOrStderr(),
						"snapana: could not start a browser (%s); open the address above\n", oneLine(err.Error()))
				}
			}
			budget.From(cmd.Context()).Finish()
			return written(s.Serve(cmd.Context(), l))
		},
	}
	in.add(cmd.Flags())
	rec.add(cmd.Flags())
	cmd.Flags().IntVar(&port, "port", 0, "`PORT` to listen on (default: any free port)")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in a browser")
	return cmd
}
