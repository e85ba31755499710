package fleet_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/snapana/snapana/report/fleet"
)

const gib = 1 << 30

func files(sizes ...int64) (list []fleet.File) {
	for i, s := range sizes {
		list = append(list, fleet.File{Path: fmt.Sprintf("/dumps/rank%d.pickle", i), Size: s})
	}
	return list
}

func counts(p *fleet.Plan) (n []int) {
	for _, t := range p.Tasks {
		n = append(n, len(t))
	}
	return n
}

// TestCut bundles what takes a minute, and more where there may be fewer tasks.
func TestCut(t *testing.T) {
	small := files(slices.Repeat([]int64{gib}, 20)...)
	packed := files(1, 1, 1)
	for i := range packed {
		packed[i] = fleet.File{Path: packed[i].Path + ".xz", Size: gib / 4}
	}
	for _, c := range []struct {
		what string
		plan *fleet.Plan
		want []int
	}{
		{"a minute each", fleet.Cut(small, 1001), []int{6, 6, 6, 2}},
		{"fewer tasks", fleet.Cut(small, 2), []int{11, 9}},
		{"one task", fleet.Cut(small, 1), []int{20}},
		{"a large one alone", fleet.Cut(files(1, 100*gib, 1, 1), 1001), []int{1, 1, 2}},
		{"packed ones are larger", fleet.Cut(packed, 1001), []int{1, 1, 1}},
		{"sizes that are not known, and no sizes", fleet.Cut(files(-1, 1<<62, 1<<62), 2), []int{2, 1}},
		{"chunks", fleet.Chunks(small, 8), []int{8, 8, 4}},
		{"nothing", fleet.Cut(nil, 3), nil},
	} {
		if got := counts(c.plan); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d files in the tasks, want %d", c.what, got, c.want)
		}
	}
	if got, want := fleet.Cut(small, 1001).Memory(), int64(256<<20+4*gib); got != want {
		t.Errorf("a task may need %d bytes, want %d", got, want)
	}
}

// odd are names that shells, patterns, YAML and Slurm could take for something else.
var odd = []string{"a b", "it's", `"`, "new\nline", "`touch x`", "$(touch x)", "${x}", "-n", "*", "%A", "\\", "\xff\xfe",
	"$(JOB_COMPLETION_INDEX)", "\u2028", "END", "#", "模型"}

// TestPlan reads what was written, of each task and no other, whatever names have in them.
func TestPlan(t *testing.T) {
	var list []fleet.File
	for _, name := range odd {
		list = append(list, fleet.File{Path: "/dumps/" + name})
	}
	p := fleet.Chunks(list, 3)
	data := string(p.Encode())
	var all []string
	for i := range p.Tasks {
		got, err := fleet.ReadTask(strings.NewReader(data), i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
	}
	for i, f := range list {
		if all[i] != f.Path {
			t.Errorf("got %q, want %q", all[i], f.Path)
		}
	}
	if _, err := fleet.ReadTask(strings.NewReader(data), 99); err == nil || !strings.Contains(err.Error(), "only tasks up to 5") {
		t.Errorf("a task that is not there: %v", err)
	}
	for _, bad := range []string{"", "x", "snapana plan 2\n0 \"/a\"\n", "snapana plan 1\n0 /a\n", "snapana plan 1\n0 \"\"\n",
		"snapana plan 1\n0 \"/a\"\n-1 \"/b\"\n", "snapana plan 1\n0 \"" + strings.Repeat("a", 2<<20) + "\"\n"} {
		if _, err := fleet.ReadTask(strings.NewReader(bad), 0); !errors.Is(err, fleet.ErrNoPlan) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add("snapana plan 1\n0 \"/a\"\n1 \"/b\"\n", 1)
	f.Fuzz(func(t *testing.T, data string, task int) {
		if files, err := fleet.ReadTask(strings.NewReader(data), task); (err == nil) != (len(files) > 0) {
			t.Errorf("%q, %v", files, err)
		}
	})
}

func job(dir string, n int) *fleet.Job {
	return &fleet.Job{Plan: fleet.Chunks(files(slices.Repeat([]int64{1}, n)...), 1), Program: "/opt/my tools/snapana",
		Dir: dir, Local: true, File: dir + "/tasks-1.plan",
		Name: "snapana-1", Flags: []string{"--from=it's $x"}, Layout: []string{"--world-size=4"}}
}

// TestSlurm runs the script with a stand-in for sbatch: it calls it as --submit does, and what it submits runs the program
// with the words that are meant, whatever the names of folders have in them.
func TestSlurm(t *testing.T) {
	for _, name := range odd {
		if strings.ContainsAny(name, "\n\u2028") { // which the command refuses
			continue
		}
		dir := t.TempDir()
		j := job("/digests/"+name, 4)
		program := filepath.Join(dir, "snap ana's")
		j.Program = program
		write(t, program, "#!/bin/sh\nprintf '%s\\0' \"$@\" >>'"+dir+"/ran'\n")
		write(t, filepath.Join(dir, "sbatch"), `#!/bin/sh
printf '%s\0' "$@" >>"$LOG/args"
cat >"$LOG/script"
SLURM_ARRAY_TASK_ID=3 sh "$LOG/script"
echo '17;cluster'
`)
		options := []string{"--comment=$(touch x) " + name}
		cmd := exec.Command("sh")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(j.Slurm(options))
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "LOG=" + dir}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "17;cluster\n" {
			t.Fatalf("%q: %v\n%s", name, err, out)
		}
		array, merge := j.Array(options), j.Merge(options)
		want := slices.Concat(array.Args, merge.Args, []string{fleet.After("17;cluster\n")})
		if got := words(t, dir, "args"); !slices.Equal(got, want) {
			t.Errorf("sbatch is called with\n%q, want\n%q", got, want)
		}
		want = []string{"fleet", "task", j.Flags[0], j.File, "3", "ranks", j.Dir, "-o", j.Dir + "/ranks.html", "--world-size=4"}
		if got := words(t, dir, "ran"); !slices.Equal(got, want) {
			t.Errorf("the program is called with\n%q, want\n%q", got, want)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 5 {
			t.Errorf("%q: there are %v", name, entries)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func words(t *testing.T, dir, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}

// TestKubernetes holds that the manifest is what the API takes, in the oldest release with all fields and in the newest.
func TestKubernetes(t *testing.T) {
	var manifests []string
	for _, name := range odd {
		if name == "\xff\xfe" { // which the command refuses
			continue
		}
		j := job("/digests/"+name, 400)
		c := fleet.Cluster{Image: "example.org/snapana:1", Parallel: 100, Secret: "keys",
			Claims: []fleet.Claim{{Name: "dumps", Path: "/data"}, {Name: "digests", Path: "/digests"}}}
		text, err := j.Kubernetes(c)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "fleet.yaml")
		write(t, path, text)
		manifests = append(manifests, path)
		var first struct {
			Spec struct {
				Completions, Parallelism int
				Template                 struct {
					Spec struct{ Containers []struct{ Command []string } }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(text), &first); err != nil {
			t.Fatal(err)
		}
		if s := first.Spec; s.Completions != 400 || s.Parallelism != 100 {
			t.Errorf("got %d tasks, %d at once", s.Completions, s.Parallelism)
		}
		got := first.Spec.Template.Spec.Containers[0].Command
		last := len(got) - 1
		for i := range got[:last] {
			if strings.Contains(strings.ReplaceAll(got[i], "$$", ""), "$(") {
				t.Errorf("a variable would be put into %q", got[i])
			}
			got[i] = strings.ReplaceAll(got[i], "$$", "$")
		}
		want := []string{j.Program, "fleet", "task", j.Flags[0], j.File, "$(JOB_COMPLETION_INDEX)"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	python := os.Getenv("SNAPANA_PARSERS")
	if python == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("SNAPANA_PARSERS is not set")
		}
		t.Skip("SNAPANA_PARSERS names no Python with kubernetes-validate")
	}
	for _, release := range []string{"1.29.0", "1.37.0"} {
		args := append([]string{"-m", "kubernetes_validate", "--strict", "-k", release}, manifests...)
		if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", release, err, out)
		}
	}
}
