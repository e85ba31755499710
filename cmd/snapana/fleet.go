package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/fleet"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/sorting"
)

func newFleet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Have Slurm or Kubernetes make the digests of thousands of ranks, and compare them",
		Long: `Cut the reading of many snapshots into tasks of about a minute, which write digests into one folder, and
compare the digests once all tasks have ended, whatever came of them. Called again, it has only those files
read of which there is no digest.

The plan is a file in the folder of the digests, which tasks must see under the same path, as the snapshots.`,
		Example: `  snapana fleet slurm dumps/ -o digests/ --submit
  snapana fleet kubernetes '/data/dumps/rank*.pickle' -o /data/digests --image snapana --claim dumps=/data`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFleetSlurm(), newFleetKubernetes(), newFleetTask())
	return cmd
}

// fleetFlags are those of both.
type fleetFlags struct {
	read   readFlags
	layout layoutFlags
	// The flags of both, which go to the tasks and to the merge.
	reading, laying *pflag.FlagSet

	dir   string
	chunk int
}

func (f *fleetFlags) add(cmd *cobra.Command) {
	f.reading, f.laying = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	f.read.add(f.reading)
	f.layout.add(f.laying)
	fl := cmd.Flags()
	fl.AddFlagSet(f.reading)
	fl.AddFlagSet(f.laying)
	fl.StringVarP(&f.dir, "output", "o", "", "have the digests written to `FOLDER`, which all machines see")
	fl.IntVar(&f.chunk, "chunk", 0, "`NUMBER` of files that a task reads (default: as many as take about a minute)")
}

func newFleetSlurm() *cobra.Command {
	var (
		f      fleetFlags
		submit bool
		most   int
	)
	cmd := &cobra.Command{
		Use:   "slurm FILE... -o FOLDER [-- SBATCH OPTION...]",
		Short: "Print or submit an array job of digests, and the job that compares them",
		Long: `Print a script for sh that submits two jobs: an array whose tasks write the digests, and one that compares
them once the array has ended. A FILE is a snapshot, a folder of them, or a pattern in quotes. What
stands behind -- goes to sbatch.`,
		Example: `  snapana fleet slurm dumps/ -o digests/ -- --partition=cpu --time=30
  snapana fleet slurm 'dumps/rank*.pickle' -o digests/ --submit`,
		Args: needs(1, many, "the FILES of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var options []string
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args, options = args[:at], args[at:]
			}
			if most < 0 {
				return misuse("invalid --max-array %d; expected the number of tasks that an array may have", most)
			}
			if most == 0 {
				most = maxArray(cmd.Context())
			}
			job, err := f.job(cmd, args, most)
			if err != nil || job == nil {
				return err
			}
			if strings.ContainsRune(job.Dir, '\\') {
				return misuse("-o has a backslash, which Slurm does not take in the names of logs")
			}
			if err := place.MkdirAll(input.Join(job.Dir, fleet.Logs)); err != nil {
				return written(err)
			}
			job.Local = filepath.IsAbs(job.Dir)
			if !submit {
				_, err := io.WriteString(cmd.OutOrStdout(), job.Slurm(options))
				return written(err)
			}
			array, err := sbatch(cmd, job.Array(options))
			if err != nil {
				return err
			}
			merge := job.Merge(options)
			merge.Args = append(merge.Args, fleet.After(array))
			after, err := sbatch(cmd, merge)
			if err != nil {
				return fmt.Errorf("job %s makes the digests, and nothing compares them: %w", array, err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Job %s makes the digests in %s, job %s compares them: %s\n", array,
				units.Plural(len(job.Plan.Tasks), "task"), after, failure.Line(input.Join(job.Dir, fleet.Page)))
			return written(err)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&submit, "submit", false, "submit the jobs now, with sbatch")
	cmd.Flags().IntVar(&most, "max-array", 0,
		"`NUMBER` of tasks that an array may have (default: what Slurm says, or 1001)")
	return cmd
}

// sbatch submits a job. It gives the job's number.
func sbatch(cmd *cobra.Command, s fleet.Submission) (string, error) {
	c := exec.CommandContext(cmd.Context(), "sbatch", s.Args...)
	c.Stdin, c.Stderr = strings.NewReader(s.Script), cmd.ErrOrStderr()
	out, err := c.Output()
	if err != nil {
		return "", written(fmt.Errorf("sbatch: %w", err))
	}
	return strings.TrimSpace(string(out)), nil
}

var maxArraySize = regexp.MustCompile(`(?m)^MaxArraySize\s*=\s*(\d+)`)

// maxArray is how many tasks an array may have. Their numbers, from 0 on, are below Slurm's MaxArraySize, of which 1001
// is the default (slurm.conf(5)).
func maxArray(ctx context.Context) int {
	out, _ := exec.CommandContext(ctx, "scontrol", "show", "config").Output()
	if m := maxArraySize.FindSubmatch(out); m != nil {
		if n, err := strconv.Atoi(string(m[1])); err == nil && n > 0 {
			return n
		}
	}
	return 1001
}

func newFleetKubernetes() *cobra.Command {
	var (
		f       fleetFlags
		cluster fleet.Cluster
		claims  []string
	)
	cmd := &cobra.Command{
		Use:   "kubernetes FILE... -o FOLDER --image IMAGE",
		Short: "Print the manifest of an Indexed Job of digests, and of the Job that compares them",
		Long: `Print a manifest of two Jobs: an Indexed Job whose pods write the digests, and one that compares them, which is
to be let go when the first has ended; the first lines of the manifest say how. A FILE is a snapshot, a folder of
them, or a pattern in quotes. Call it where the volume is mounted as in the pods.`,
		Example: `  snapana fleet kubernetes /data/dumps -o /data/digests --image example.org/snapana --claim dumps=/data >fleet.yaml`,
		Args:    needs(1, many, "the FILES of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cluster.Image == "" {
				return misuse("name the image that has snapana with --image")
			}
			if cluster.Parallel < 1 {
				return misuse("invalid --parallel %d; expected the number of tasks that run at once", cluster.Parallel)
			}
			for _, c := range claims {
				name, path, ok := strings.Cut(c, "=")
				if !ok || name == "" || !strings.HasPrefix(path, "/") {
					return misuse("invalid --claim %q; expected NAME=PATH, as dumps=/data", c)
				}
				cluster.Claims = append(cluster.Claims, fleet.Claim{Name: name, Path: path})
			}
			job, err := f.job(cmd, args, fleet.CompletionsMost)
			if err != nil || job == nil {
				return err
			}
			job.Program, job.Name = "snapana", "snapana-"+stem(job.File)
			out, err := job.Kubernetes(cluster)
			if err == nil {
				_, err = io.WriteString(cmd.OutOrStdout(), out)
			}
			return written(err)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&cluster.Image, "image", "", "`IMAGE` of the containers, which has snapana")
	fl.StringArrayVar(&claims, "claim", nil, "mount a persistent volume claim, `NAME=PATH`; may be repeated")
	fl.StringVar(&cluster.Secret, "secret", "", "`NAME` of a secret with variables for the containers, as of an object store")
	fl.IntVar(&cluster.Parallel, "parallel", 100, "`NUMBER` of tasks that run at once, at most")
	return cmd
}

// stem is a file's name without its folder and ending.
func stem(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// job plans what is to be done, and writes the plan. It is nil where all is done, which it says.
func (f *fleetFlags) job(cmd *cobra.Command, args []string, most int) (*fleet.Job, error) {
	if f.dir == "" {
		return nil, misuse("name the folder for the digests with -o FOLDER")
	}
	if f.chunk < 0 {
		return nil, misuse("invalid --chunk %d; expected how many files a task reads", f.chunk)
	}
	dir, err := input.Abs(f.dir)
	if err != nil {
		return nil, err
	}
	if f.read.in.rules != "" {
		if f.read.in.rules, err = input.Abs(f.read.in.rules); err != nil {
			return nil, err
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, word := range append(given(f.reading), dir, program) {
		if !utf8.ValidString(word) || strings.ContainsFunc(word, unicode.IsControl) {
			return nil, misuse("%q has what cannot be in a script", word)
		}
	}
	if err := f.read.ready(cmd.Context()); err != nil {
		return nil, err
	}
	if _, err := f.layout.question(); err != nil {
		return nil, err
	}
	args, err = expand(cmd.Context(), args)
	if err != nil {
		return nil, err
	}
	bare := ""
	paths := unfold(cmd.Context(), args, func(ctx context.Context, folder string) []string {
		found := snapshots(ctx, folder)
		if len(found) == 0 {
			bare = folder
		}
		return found
	})
	if bare != "" {
		return nil, misuse("%s: is a directory, and no snapshot was found in it", bare)
	}
	files, ranks, err := f.missing(cmd.Context(), dir, paths)
	if err != nil {
		return nil, err
	}
	layout := given(f.laying)
	if layout == nil && ranks > 0 {
		layout = []string{fmt.Sprintf("--world-size=%d", ranks)}
	}
	if len(files) == 0 {
		next := "snapana ranks " + text.Arg(f.dir)
		for _, flag := range layout {
			name, value, _ := strings.Cut(flag, "=")
			next += " " + name + "=" + text.Arg(value)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "# All digests are there. Next: %s\n", next)
		return nil, written(err)
	}
	plan := fleet.Cut(files, most)
	if f.chunk > 0 {
		if plan = fleet.Chunks(files, f.chunk); len(plan.Tasks) > most {
			return nil, misuse("--chunk %d makes %s tasks, and one job may have %s; take --chunk %d or more", f.chunk,
				units.Count(len(plan.Tasks)), units.Count(most), (len(files)+most-1)/most)
		}
	}
	if err := place.MkdirAll(dir); err != nil {
		return nil, written(err)
	}
	data := plan.Encode()
	name := sha256.Sum256([]byte(dir))
	job := &fleet.Job{Plan: plan, Program: program, Dir: dir, File: input.Join(dir, fleet.Name(data)),
		Name: "snapana-" + hex.EncodeToString(name[:4]), Flags: given(f.reading), Layout: layout}
	return job, written(place.Write(cmd.Context(), job.File, data))
}

// given are the flags that were.
func given(flags *pflag.FlagSet) (args []string) {
	flags.VisitAll(func(fl *pflag.Flag) {
		if fl.Changed {
			args = append(args, "--"+fl.Name+"="+fl.Value.String())
		}
	})
	return args
}

// expand puts the files in the place of patterns: more of them than a command can be called with.
func expand(ctx context.Context, args []string) (files []string, err error) {
	for _, a := range args {
		if _, err := input.Stat(ctx, a); errors.Is(err, fs.ErrNotExist) {
			found, bad := filepath.Glob(a)
			if bad != nil || len(found) == 0 {
				return nil, &fs.PathError{Op: "open", Path: a, Err: cmp.Or(bad, error(fs.ErrNotExist))}
			}
			files = append(files, found...)
			continue
		}
		files = append(files, a)
	}
	return files, nil
}

// missing gives the files that have no digest, and how many ranks there are, if names tell one file of each from 0 on,
// or else 0. The files are looked at many at once: on network file systems each waits.
func (f *fleetFlags) missing(ctx context.Context, dir string, paths []string) (files []fleet.File, ranks int, err error) {
	there := digest.List(ctx, dir)
	sources := make([]digest.Source, len(paths))
	done := make([]bool, len(paths))
	options := f.read.options()
	var group sync.WaitGroup
	slots := make(chan struct{}, 4*runtime.GOMAXPROCS(0))
	for i, path := range paths {
		if path == "-" {
			return nil, 0, misuse("a digest is of a file that has a name, not of standard input")
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			var err error
			sources[i], err = digest.Stat(ctx, path, options)
			done[i] = err == nil && there.Done(ctx, &sources[i])
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	seen, numbers := map[string]bool{}, map[int]bool{}
	for i := range sources {
		src := &sources[i]
		if seen[src.Path] {
			continue
		}
		seen[src.Path] = true
		if n := snapshot.NamedRank(src.Path); n >= 0 {
			numbers[n] = true
		}
		if !done[i] {
			files = append(files, fleet.File{Path: src.Path, Size: src.Size})
		}
	}
	if n := len(numbers); n == len(seen) && n > 0 && slices.Max(slices.Collect(maps.Keys(numbers))) == n-1 {
		ranks = n
	}
	return files, ranks, nil
}

func newFleetTask() *cobra.Command {
	var f digestFlags
	cmd := &cobra.Command{
		Use:   "task PLAN NUMBER",
		Short: "Make the digests of one task of a plan, as the jobs do",
		Long: `Make the digests of the files of one task of a plan, beside the plan. While a file is read, a digest says so,
which stays if the program is killed; files that have one are read after those that have none.`,
		Example: `  snapana fleet task digests/tasks-1f2e3d4c.plan 0`,
		Args:    needs(2, 2, "a PLAN and the NUMBER of a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 0 {
				return misuse("invalid task %q; expected a number from 0 on", args[1])
			}
			plan, err := input.Open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer plan.Close()
			files, err := fleet.ReadTask(plan, n)
			if err != nil {
				return fmt.Errorf("%s %w", filepath.Base(args[0]), err)
			}
			f.dir, f.mark = input.Dir(args[0]), true
			there := digest.List(cmd.Context(), f.dir)
			tried := func(path string) int {
				if src, _ := digest.Stat(cmd.Context(), path, ""); there.Tried(&src) {
					return 1
				}
				return 0
			}
			sorting.Stable(files, func(a, b string) int { return cmp.Compare(tried(a), tried(b)) })
			return f.each(cmd, files)
		},
	}
	f.readFlags.add(cmd.Flags())
	return cmd
}
