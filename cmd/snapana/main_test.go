package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/fixtures/sidecartest"
	"github.com/snapana/snapana/fixtures/standin"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// The exit codes of failures, as they are promised.
const (
	exitGate    = 1
	exitInput   = 2
	exitEnv     = 3
	exitStopped = 130
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"snapana": main})
}

// TestScripts runs testdata/script. Each script finds the golden snapshots, and files that
// are none, in its folder.
func TestScripts(t *testing.T) {
	dir := filepath.Join("testdata", "script")
	var some []string
	if testing.Short() { // without those that draw many reports
		for _, name := range []string{"rejected", "usage", "help", "version", "completion", "summary", "nvml"} {
			some = append(some, filepath.Join(dir, name+".txtar"))
		}
		dir = ""
	}
	library := ""
	if _, err := exec.LookPath("gcc"); err == nil {
		library = standin.NVML(t)
	}
	once := sync.OnceValues(inputs)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               some,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       golden.Update(),
		Setup: func(env *testscript.Env) error {
			env.Setenv("STANDIN", library)
			inputs, err := once()
			if err != nil {
				return err
			}
			for name, data := range inputs {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), data, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"files":     files,
			"firstline": firstLine,
			"stderr1":   oneStderrLine,
			"readings":  recorded,
		},
		Condition: func(name string) (bool, error) {
			driver, err := device.Open()
			if err == nil {
				driver.Close()
			}
			switch name {
			case "nvml": // this build has it
				return device.Reader == "NVML", nil
			case "driver":
				return err == nil, nil
			case "completions": // bash's own, which it needs for those of programs
				_, err := os.Stat(bashCompletion)
				return err == nil, nil
			}
			return false, fmt.Errorf("no such condition")
		},
	})
}

const bashCompletion = "/usr/share/bash-completion/bash_completion"

// inputs are the golden snapshots and files that are none.
func inputs() (map[string][]byte, error) {
	out := map[string][]byte{
		"empty.pickle": {},
		"lfs.pickle": []byte("version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0f", 32) +
			"\nsize 735036\n"),
		"plain.pickle":  []byte("Traceback (most recent call last):\n  File \"train.py\", line 1\n"),
		"system.pickle": []byte("\x80\x02cos\nsystem\nq\x00X\x0c\x00\x00\x00touch pwned!q\x01\x85q\x02Rq\x03."),
		"escape.pickle": []byte("\x80\x02cos\x1b]0;x\x07\nsys\x1b[2Jtem\n(tR."),
		"list.pickle":   []byte("\x80\x02]q\x00."),
		"number.pickle": []byte("\x80\x02K\x07."),
	}
	for _, name := range []string{"healthy.pickle", "ghost.pickle", "fragmentation.pickle", "pinned.pickle",
		"ghost.stats.jsonl"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", name))
		if err != nil {
			return nil, err
		}
		out[name] = data
	}
	for _, name := range []string{"metadata_json", "annotate", "compile_eager", "streams", "pinned_only"} {
		name += ".pickle.xz"
		data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "lab", "traces", "2.15", name))
		if err != nil {
			return nil, err
		}
		out[name] = data
	}
	for _, name := range []string{"keeps_outputs.snapana", "held_list.snapana", "loader_fork.snapana", "loader_spawn.snapana"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "host", name))
		if err != nil {
			return nil, err
		}
		out[name] = data
	}
	recorder := sidecartest.Stream(sidecartest.Header())
	out["recorder.snapana"] = recorder
	type m = sidecartest.Map
	out["failed.snapana"] = sidecartest.Stream(sidecartest.Header("pid", 9, "boot", "b"),
		m{"type", "snapshot", "time", int64(1e18), "file", "fragmentation.pickle"},
		m{"type", "nvml", "time", int64(1e18 + 1e9), "boot", "b", "devices",
			[]m{{"index", 0, "total", 16 << 30, "reserved", 0, "used", 16<<30 - 364904448, "free", 364904448,
				"processes", []m{{"pid", 9, "used", 15204352000 + 512<<20}, {"pid", 4242, "used", 1 << 30}}}}})
	out["torn.snapana"] = append(recorder[:len(recorder):len(recorder)], recorder[:20]...)
	for from, to := range map[string]string{"snapshot.pickle.zst": "run.pickle.zst", "run.snapana": "run.snapana"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "holders", "loss_list_validation", from))
		if err != nil {
			return nil, err
		}
		out[to] = data
	}
	out["cut.snapana"] = out["run.snapana"][:len(out["run.snapana"])-1000]
	out["bad.snapana"] = append(out["run.snapana"][:len(out["run.snapana"])-1000:len(out["run.snapana"])-1000],
		strings.Repeat("\xc1", 1000)...)
	healthy := out["healthy.pickle"]
	out["cut.pickle"] = healthy[:300_000]
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(healthy); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	out["healthy.pickle.gz"] = b.Bytes()
	return out, nil
}

// files DIR NAME... checks that DIR holds the named files and nothing else, hidden or not.
func files(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: files DIR NAME...")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(args[1:], " ") {
		ts.Fatalf("%s holds %q, want %q", args[0], got, args[1:])
	}
}

// firstLine FILE TEXT checks that the first line of FILE, or of stdout, contains TEXT.
func firstLine(ts *testscript.TestScript, neg bool, args []string) {
	line, _, _ := strings.Cut(ts.ReadFile(args[0]), "\n")
	if strings.Contains(line, args[1]) == neg {
		ts.Fatalf("first line of %s: %q", args[0], line)
	}
}

// readings FILE N... checks how many readings of the driver each run in FILE has. With +N it waits
// until the only run, which another command writes, has N.
func recorded(ts *testscript.TestScript, neg bool, args []string) {
	want := strings.Join(args[1:], " ")
	for range 1000 {
		var got []string
		f, err := sidecar.Open(context.Background(), ts.MkAbs(args[0]), sidecar.Options{})
		if err == nil {
			for i := range f.Runs {
				got = append(got, strconv.Itoa(len(f.Runs[i].NVML)))
			}
		}
		switch more, atLeast := strings.CutPrefix(want, "+"); {
		case atLeast && len(got) == 1:
			least, err := strconv.Atoi(more)
			ts.Check(err)
			if len(f.Runs[0].NVML) >= least {
				return
			}
		case atLeast:
		case strings.Join(got, " ") == want:
			return
		default:
			ts.Fatalf("%s has %q readings, want %q (%v)", args[0], got, want, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s does not get %s readings", args[0], want)
}

// stderr1 TEXT... checks that stderr is one line for people that has each TEXT.
func oneStderrLine(ts *testscript.TestScript, neg bool, args []string) {
	out := ts.ReadFile("stderr")
	if neg || !strings.HasPrefix(out, "snapana: ") || strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\n") {
		ts.Fatalf("stderr is not one line: %q", out)
	}
	if strings.ContainsAny(strings.TrimSuffix(out, "\n"), "\x1b\x07\r\n\t") || strings.Contains(out, "goroutine") {
		ts.Fatalf("stderr holds control characters: %q", out)
	}
	for _, a := range args {
		if !strings.Contains(out, a) {
			ts.Fatalf("stderr %q lacks %q", out, a)
		}
	}
}
