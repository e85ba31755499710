package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/report"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/serve"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
	"github.com/snapana/snapana/snapshot/input"
)

// minPage is what a page without anything to zoom into takes at most.
const minPage = 2 << 20

// reportFlags are those of `snapana report`, and of snapana with nothing but a file.
type reportFlags struct {
	in          inputFlags
	rec         recorderFlags
	drv         driverFlags
	src         sourceFlags
	format      formatFlag
	dir         string
	quiet, json bool
	brief       bool
	open        bool
	failOn      []string
	total       size
	maxPage     size
}

func (f *reportFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.in.add(fl)
	f.rec.add(fl)
	f.drv.add(fl)
	f.src.add(fl)
	fl.StringVarP(&f.dir, "output", "o", "", "`FOLDER` to write, created if missing (default: NAME.report)")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing; only write the folder")
	fl.BoolVar(&f.open, "open", false, "write the folder, and open its page in a browser")
	f.maxPage = html.DefaultBytes
	fl.Var(&f.maxPage, "max-page", "maximum `SIZE` of report.html; a smaller page shows fewer single allocations")
	fl.Lookup("max-page").DefValue = "8MiB"
	addCapacity(fl, &f.total, ": snapshots do not record it")
	fl.StringSliceVar(&f.failOn, "fail-on", nil, "end with exit code 1 for these `STATUSES`, such as ghost,capacity")
	addBrief(fl)
	fl.BoolVar(&f.json, "json", false, "print report.json instead, and write no folder unless -o names one")
	f.format.add(cmd)
}

// check says what flags cannot be used together. folder says that the command writes one by itself.
func (f *reportFlags) check(cmd *cobra.Command, folder bool) error {
	switch {
	case cmd.Flags().Changed("output") && f.dir == "":
		return misuse("-o needs the name of a folder")
	case f.dir == "-":
		return misuse("-o names a folder, and - is none; --json prints report.json")
	case f.quiet && f.json:
		return misuse("--quiet and --json cannot be used together")
	case f.quiet && !folder && !f.writes(folder):
		return misuse("--quiet prints nothing, and nothing is written without -o FOLDER")
	case f.maxPage < minPage:
		return misuse("invalid --max-page %d; expected at least 2MiB, which tables and pictures may take", f.maxPage)
	}
	for _, word := range f.failOn {
		if all := finding.Statuses(); !slices.Contains(all, finding.Status(word)) {
			return unknown("--fail-on", word, all)
		}
	}
	return f.format.check(cmd, f.quiet || f.json, "--quiet or --json")
}

// forPeople reports whether the verdict is printed for people who read it here.
func (f *reportFlags) forPeople() bool { return !f.quiet && !f.json && !f.brief && f.format == "text" }

// writes reports whether a folder is written by a command that does, or does not, where no flag says more.
func (f *reportFlags) writes(folder bool) bool {
	return f.dir != "" || f.open || folder && (f.quiet || f.forPeople())
}

// run judges the snapshot in a file: it prints first and writes afterwards, so that no fault of a folder costs the
// verdict.
func (f *reportFlags) run(cmd *cobra.Command, file string, folder bool) error {
	if err := f.check(cmd, folder); err != nil {
		return err
	}
	f.brief = isBrief(cmd)
	opt := analyze.Options{Capacity: int64(f.total)}
	if err := f.drv.read(cmd, &f.in, &opt); err != nil {
		return err
	}
	done, err := f.src.open(&opt)
	if err != nil {
		return err
	}
	defer done()
	result, err := f.rec.analyze(cmd, &f.in, file, opt)
	if err != nil {
		return err
	}
	err = written(f.print(cmd, result))
	if f.writes(folder) {
		err = cmp.Or(err, written(f.write(cmd, file, result)))
	}
	return cmp.Or(err, f.failing(result))
}

// failing is an error where the verdict, or a finding that is not for information only, has a status of --fail-on.
func (f *reportFlags) failing(r *analyze.Result) error {
	all := []finding.Status{r.Verdict.Status}
	for i := range r.Verdict.Findings {
		if v := &r.Verdict.Findings[i]; v.Severity != finding.Info {
			all = append(all, v.Status)
		}
	}
	for _, status := range all {
		if slices.Contains(f.failOn, string(status)) {
			return fmt.Errorf("%w: a finding is %s (--fail-on)", errGates, status)
		}
	}
	return nil
}

// print prints the result as the flags say, in one piece: who reads no more than its beginning gets the folder as well.
func (f *reportFlags) print(cmd *cobra.Command, r *analyze.Result) error {
	var b bytes.Buffer
	var err error
	switch {
	case f.quiet:
		return nil
	case f.json, f.format == "json":
		err = json.Write(&b, r)
	case f.format == "md":
		err = text.Markdown(&b, r)
	default:
		err = printReport(&b, r, look(cmd))
	}
	if err == nil {
		_, err = b.WriteTo(cmd.OutOrStdout())
	}
	return err
}

// write writes the folder, says where it is, and opens its page if that is wanted.
func (f *reportFlags) write(cmd *cobra.Command, file string, r *analyze.Result) error {
	meterOf(cmd.Context()).doing("drawing the report")
	dir, note := f.dir, ""
	var err error
	if dir == "" {
		name, taken := "stdin", ""
		if file != "-" {
			name = snapshot.Stem(input.Base(cmd.Context(), file))
		}
		if dir, taken, err = report.WriteOwn(cmd.Context(), name, r, int(f.maxPage)); taken != "" {
			note = fmt.Sprintf(" (kept %s/, which may be another snapshot's)", taken)
		}
	} else {
		var other bool
		if other, err = report.WriteDir(cmd.Context(), dir, r, int(f.maxPage)); other {
			note = " (replaced a report that may be another snapshot's)"
		}
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	line := text.Fold(failure.Line("Report in "+strings.TrimSuffix(dir, "/")+string(os.PathSeparator)+note), look(cmd).Columns())
	switch {
	case f.forPeople():
		_, err = io.WriteString(cmd.OutOrStdout(), "\n"+line)
	case note != "":
		_, err = io.WriteString(cmd.ErrOrStderr(), line)
	}
	if err == nil && f.open {
		page := input.Join(dir, report.Page)
		if err = serve.Show(page); err != nil {
			hint := "open " + page
			err = failure.Advise(hint, fmt.Errorf("could not start a browser (%w); %s", err, hint))
		}
	}
	return err
}

func newReport() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Analyze a snapshot: print the verdict, write the full report to a folder",
		Long: `Analyze the snapshot in FILE (- for standard input), print the verdict and then write the
full report to a folder: an HTML page, plots and report.json. The recorder's NAME.snapana
beside NAME.pickle is used automatically.

The folder is NAME.report in the current folder, unless -o names another. It replaces its own
earlier report; where NAME.report is of another snapshot, NAME-2.report is written, and so on.
With --json or --format md a folder is written only if -o names one. ` + "`snapana FILE`" + ` prints
the verdict alone.`,
		Example: `  snapana report snapshot.pickle
  snapana report --open snapshot.pickle
  snapana report -o out/ snapshot.pickle.gz
  snapana report --json --partial cut.pickle > report.json
  snapana report --format md snapshot.pickle | gh issue comment 7 -F -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], true) },
	}
	f.add(cmd)
	return cmd
}

// printReport prints the verdict, the program's phases, and where the memory of each device is.
func printReport(w io.Writer, r *analyze.Result, o text.Options) error {
	if err := text.Verdict(w, r, o); err != nil || o.Brief {
		return err
	}
	if err := text.Phases(w, r, o); err != nil {
		return err
	}
	return text.Accounts(w, r, o)
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
		src  sourceFlags
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
				return misuse("invalid --port %d; expected 1 to 65535, or 0 for any free port", port)
			}
			l, err := serve.Listen(port)
			if err != nil {
				return written(err)
			}
			defer l.Close()
			var opt analyze.Options
			done, err := src.open(&opt)
			if err != nil {
				return err
			}
			defer done()
			result, err := rec.analyze(cmd, &in, args[0], opt)
			if err != nil {
				return err
			}
			meterOf(cmd.Context()).doing("preparing the page")
			s, err := serve.New(result, serve.DefaultBytes)
			if err != nil {
				return err
			}
			out := s.URL(l) + "\n"
			if command := tunnel(l); command != "" {
				out += "On the machine that you sit at, run this first:\n  " + command + "\n"
			}
			if _, err := io.WriteString(cmd.OutOrStdout(), out+"Press Ctrl-C to stop.\n"); err != nil {
				return written(err)
			}
			if open {
				forget, err := s.Browse(l)
				defer forget()
				if err != nil {
					fmt.Fprintf(cmd.ErrOrStderr(),
						"snapana: could not start a browser (%s); open the address above\n", failure.Line(err.Error()))
				}
			}
			budget.From(cmd.Context()).Finish()
			return written(s.Serve(cmd.Context(), l))
		},
	}
	in.add(cmd.Flags())
	rec.add(cmd.Flags())
	src.add(cmd.Flags())
	cmd.Flags().IntVar(&port, "port", 0, "`PORT` to listen on (default: any free port)")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in a browser")
	return cmd
}
