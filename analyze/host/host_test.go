package host_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// programs are those of fixtures/host, and what is to be said of them: the findings that matter,
// and others that need not be.
var programs = []struct {
	name, start string
	status      finding.Status
	want        string
}{
	{"healthy", "", finding.Flat, ""},
	{"keeps_outputs", "", finding.Growing, "host-tensors high"},
	{"keeps_objects", "", finding.Growing, "host-objects medium"},
	{"fills_cache", "", finding.Flat, ""},
	{"loader", "fork", finding.Growing, "worker-copies medium"},
	{"loader", "spawn", finding.Flat, ""},
}

func file(name, start string) string {
	if start != "" {
		name += "_" + start
	}
	return name + ".snapana"
}

func judge(t *testing.T, path string) *verdict.Host {
	t.Helper()
	f, err := sidecar.Open(t.Context(), path, sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := host.Read(f)
	if len(all) != 1 {
		t.Fatalf("%d processes", len(all))
	}
	return verdict.JudgeHost(all[0])
}

// serious lists the findings that are more than information.
func serious(j *verdict.Host) string {
	var out []string
	for _, f := range j.Findings {
		if f.Severity != finding.Info {
			out = append(out, f.ID+" "+string(f.Confidence))
		}
	}
	return strings.Join(out, ", ")
}

func check(t *testing.T, j *verdict.Host, status finding.Status, want string) {
	t.Helper()
	if got := serious(j); j.Status != status || got != want {
		t.Errorf("%s: %q, want %s: %q", j.Status, got, status, want)
		for _, f := range j.Findings {
			t.Log(f.Title, f.Why)
		}
		for _, x := range j.Trends {
			t.Logf("%+v", x)
		}
	}
}

func TestRecorded(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name+p.start, func(t *testing.T) {
			check(t, judge(t, filepath.Join("..", "..", "fixtures", "host", file(p.name, p.start))), p.status, p.want)
		})
	}
}

// together runs programs, NAME or NAME_START, from one import of torch, whose objects it leaves out of
// what the recorder goes through in each step.
const together = `
import gc, os, sys
try:
    import torch
except ImportError as err:
    print(err)
    sys.exit(3)
import programs
import snapana_recorder as r
gc.freeze()
failed = False
for out in sys.argv[1:]:
    pid = os.fork()
    if pid == 0:
        if out.endswith(("_fork", "_spawn")):
            torch.multiprocessing.set_start_method(out.split("_")[-1])
        r.start(out)
        getattr(programs, os.path.basename(out).removesuffix("_fork").removesuffix("_spawn"))()
        r.stop()
        sys.exit()
    failed |= os.waitpid(pid, 0)[1] != 0
sys.exit(failed)
`

// TestPrograms runs the programs with the recorder, in the Python that .ci/run gives a torch. In a full
// run each is a process of its own.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("runs PyTorch programs for many seconds")
	}
	folder, err := filepath.Abs(filepath.Join("..", "..", "fixtures", "host"))
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := filepath.Abs(filepath.Join("..", "..", "snapshot", "sidecar", "recorder"))
	if err != nil {
		t.Fatal(err)
	}
	python := func(args ...string) (string, error) {
		cmd := exec.Command("/usr/bin/python3", args...)
		cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1",
			"PYTHONPATH="+folder+":"+recorder)
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	full := os.Getenv("SNAPANA_FULL") != ""
	dir := t.TempDir()
	args := []string{"-c", together}
	for _, p := range programs {
		if !full {
			args = append(args, filepath.Join(dir, strings.TrimSuffix(file(p.name, p.start), ".snapana")))
		}
	}
	said, err := python(args...)
	var exit *exec.ExitError
	switch noTorch := errors.Is(err, os.ErrNotExist) || errors.As(err, &exit) && exit.ExitCode() == 3; {
	case noTorch && os.Getenv("CI") == "true":
		t.Fatalf("no torch for Debian's Python, which .ci/run installs: %s", said)
	case noTorch:
		t.Skip("no torch for Debian's Python")
	case err != nil:
		t.Fatalf("%v\n%s", err, said)
	}
	for _, p := range programs {
		t.Run(p.name+p.start, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(dir, file(p.name, p.start))
			if full {
				args := []string{filepath.Join(folder, "programs.py"), p.name, strings.TrimSuffix(out, ".snapana")}
				if p.start != "" {
					args = append(args, p.start)
				}
				if said, err := python(args...); err != nil {
					t.Fatalf("%v\n%s", err, said)
				}
			}
			check(t, judge(t, out), p.status, p.want)
		})
	}
}

const mib = 1 << 20

// made is a run of 40 steps, whose samples change fills in.
func made(change func(i int64, s *sidecar.Sample)) *sidecar.File {
	run := sidecar.Run{Env: map[string]any{"python.start_method": "fork", "os.cgroup_memory_max": int64(2000 * mib)}}
	for i := range int64(40) {
		s := sidecar.Sample{Step: new(i), Host: &sidecar.Host{RSS: new(int64(900 * mib)), Swap: new(int64(0)),
			Available: new(int64(8000 * mib)), RAM: new(int64(16000 * mib)),
			SwapFree: new(int64(4000 * mib)), SwapTotal: new(int64(4000 * mib)), Cgroup: new(int64(1000 * mib))},
			Tensors: &sidecar.TensorCounts{CPUCount: new(int64(10)), CPUBytes: new(int64(50 * mib)),
				Objects: new(int64(100_000))}}
		change(i, &s)
		run.Samples = append(run.Samples, s)
	}
	return &sidecar.File{Name: "run.snapana", Runs: []sidecar.Run{run}}
}

func TestMade(t *testing.T) {
	child := func(pid, rss, pss int64) sidecar.Child {
		return sidecar.Child{PID: &pid, RSS: new(rss * mib), PSS: new(pss * mib)}
	}
	short := func(i int64, s *sidecar.Sample) {
		s.Host.Available, s.Host.SwapFree = new((700-i)*mib), new((4000-50*i)*mib)
	}
	for _, c := range []struct {
		name   string
		status finding.Status
		want   string
		words  string // of the first finding's evidence
		change func(i int64, s *sidecar.Sample)
	}{
		{"level", finding.Flat, "", "", func(int64, *sidecar.Sample) {}},
		{"teeth", finding.Flat, "", "", func(i int64, s *sidecar.Sample) { *s.Host.RSS += i % 7 * 20 * mib }},
		{"native", finding.Growing, "host-native low", "CPU tensors do not explain it",
			func(i int64, s *sidecar.Sample) { *s.Host.RSS += i * 10 * mib }},
		{"native with a few objects", finding.Growing, "host-objects medium", "",
			func(i int64, s *sidecar.Sample) { *s.Host.RSS += i * 10 * mib; *s.Tensors.Objects += i }},
		{"nothing counted", finding.Growing, "host-growth low",
			"the 1000 MiB left below the limit of its cgroup last for about 100 more steps",
			func(i int64, s *sidecar.Sample) { *s.Host.RSS += i * 10 * mib; s.Tensors = nil }},
		{"a buffer that is extended", finding.Growing, "host-tensors medium", "the same tensors get larger",
			func(i int64, s *sidecar.Sample) { *s.Host.RSS += i * 10 * mib; *s.Tensors.CPUBytes += i * 10 * mib }},
		{"tensors in memory of files", finding.Flat, "", "",
			func(i int64, s *sidecar.Sample) { *s.Tensors.CPUBytes += i * 10 * mib }},
		{"pinned", finding.Growing, "host-pinned medium", "",
			func(i int64, s *sidecar.Sample) { s.Host.Pinned = new(i * 32 * mib) }},
		{"swapped out", finding.Swapping, "host-swapping medium", "Less than 5% of the RAM",
			func(i int64, s *sidecar.Sample) {
				short(i, s)
				*s.Host.RSS -= i * 10 * mib
				*s.Host.Swap += i * 10 * mib
			}},
		{"swapped out by its own growth", finding.Growing, "host-native low", "The machine is already short of memory",
			func(i int64, s *sidecar.Sample) {
				short(i, s)
				*s.Host.Swap += i * 10 * mib
			}},
		{"swap that is full and still", finding.Flat, "", "", func(i int64, s *sidecar.Sample) {
			s.Host.Available,
				s.Host.SwapFree = new(int64(mib)), new(int64(0))
		}},
		{"workers that leak", finding.Growing, "worker-growth medium", "", func(i int64, s *sidecar.Sample) {
			s.Children = []sidecar.Child{child(1, 300+5*i, 100+5*i), child(2, 300, 100)}
		}},
		{"workers that end one after the other", finding.Flat, "", "", func(i int64, s *sidecar.Sample) {
			for n := i / 8; n < 6; n++ { // what is left shares with fewer
				s.Children = append(s.Children, child(n, 300, 100+400/(6-i/8)))
			}
		}},
		{"workers without PSS", finding.Flat, "", "", func(i int64, s *sidecar.Sample) {
			s.Children = []sidecar.Child{{PID: new(int64(1)), RSS: new(300 + 5*i*mib)}}
		}},
		{"little", finding.Flat, "", "", func(i int64, s *sidecar.Sample) { *s.Host.RSS += i * 70 << 10 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := verdict.JudgeHost(host.Read(made(c.change))[0])
			check(t, j, c.status, c.want)
			if c.words != "" && !strings.Contains(strings.Join(j.Findings[0].Why, "\n"), c.words) {
				t.Errorf("%q", j.Findings[0].Why)
			}
			for _, f := range j.Findings {
				if f.Status != finding.Host || !f.Heuristic || len(f.Why) == 0 || len(f.Next) == 0 ||
					slices.Contains(f.Why, "") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	f := made(func(int64, *sidecar.Sample) {})
	f.Runs[0].Samples = f.Runs[0].Samples[:1]
	if j := verdict.JudgeHost(host.Read(f)[0]); j.Status != finding.Unknown || len(j.Notes) == 0 {
		t.Errorf("%+v", j)
	}
	f.Runs[0].Samples[0].Host = nil
	if all := host.Read(f); all != nil {
		t.Errorf("%+v", all)
	}
}
