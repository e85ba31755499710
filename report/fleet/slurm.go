package fleet

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Job is what is to be done with a plan.
type Job struct {
	Plan    *Plan
	Program string   // snapana's path
	File    string   // the plan's
	Dir     string   // of the digests
	Local   bool     // it is in the file system, where Slurm can write
	Name    string   // of the job: one folder's jobs have one name
	Flags   []string // of `digest`, for the tasks
	Layout  []string // flags of `ranks`, for the merge
}

// Page and Log are the names of what the merge writes into the folder of the digests.
const (
	Page = "ranks.html"
	Log  = "ranks.txt"
	Logs = "logs" // a folder: what the tasks of Slurm print
)

// task is the command of a task, but for its number.
func (j *Job) task() []string {
	return slices.Concat([]string{j.Program, "fleet", "task"}, j.Flags, []string{j.File})
}

// merge is the command that compares the digests.
func (j *Job) merge() []string {
	return slices.Concat([]string{j.Program, "ranks", j.Dir, "-o", strings.TrimSuffix(j.Dir, "/") + "/" + Page}, j.Layout)
}

// mergeMemory is that of the merge at least, which keeps some of each digest.
const mergeMemory = 2 << 30

// Submission is a call of sbatch: its arguments, and the script on its standard input.
type Submission struct {
	Args   []string
	Script string
}

// Array runs the tasks. It waits for arrays on the same folder that run already, so that whoever submits twice reads no
// file twice. Of options that are given twice, sbatch takes the last.
func (j *Job) Array(options []string) Submission {
	args := []string{"--parsable", "--job-name=" + j.Name, "--dependency=singleton",
		fmt.Sprintf("--array=0-%d", len(j.Plan.Tasks)-1), "--ntasks=1", "--cpus-per-task=1", memory(j.Plan.Memory()),
		"--requeue", "--open-mode=append"}
	if j.Local {
		args = append(args, "--output="+pattern(j.Dir+"/"+Logs)+"/%A_%a.txt")
	}
	return Submission{append(args, options...), script(j.task(), ` "$SLURM_ARRAY_TASK_ID"`)}
}

// Merge compares what there is. Where it depends on an array, it comes after that has ended, whatever came of its tasks:
// After names it.
func (j *Job) Merge(options []string) Submission {
	args := []string{"--parsable", "--job-name=" + j.Name + "-merge", "--ntasks=1", "--cpus-per-task=1",
		memory(max(mergeMemory, j.Plan.Memory())), "--requeue"}
	if j.Local {
		args = append(args, "--output="+pattern(j.Dir)+"/"+Log)
	}
	return Submission{append(args, options...), script(j.merge(), "")}
}

// After is the argument that puts a job behind another, by what sbatch --parsable printed of that: its number, and the
// cluster where there are several.
func After(printed string) string {
	id, _, _ := strings.Cut(strings.TrimSpace(printed), ";")
	return "--dependency=afterany:" + id
}

func memory(bytes int64) string { return fmt.Sprintf("--mem=%dM", mebibytes(bytes)) }

func mebibytes(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// pattern makes a name of one that Slurm takes as a pattern.
func pattern(name string) string { return strings.ReplaceAll(name, "%", "%%") }

// script runs a command in the place of the shell, so that signals reach it.
func script(command []string, more string) string {
	return "#!/bin/sh\nexec " + quote(command) + more + "\n"
}

// Slurm is the script for sh that submits both.
func (j *Job) Slurm(options []string) string {
	call := func(s Submission, more string) string {
		return "sbatch " + quote(s.Args) + more + " <<'END'\n" + s.Script + "END\n"
	}
	return "set -e\narray=$(" + call(j.Array(options), "") + ")\n" +
		call(j.Merge(options), ` --dependency=afterany:"${array%%;*}"`)
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./:=,@+-]+$`)

// quote makes words of a shell's line, whatever is in them.
func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; !plain.MatchString(w) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
