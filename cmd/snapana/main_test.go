package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what commands print into the scripts and README.md instead of comparing")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"snapana": main})
}

// TestScripts runs testdata/script. Each script finds the golden snapshots, and files that
// are none, in its folder.
func TestScripts(t *testing.T) {
	dir := filepath.Join("testdata", "script")
	var some []string
	if testing.Short() { // without those that draw many reports
		for _, name := range []string{"rejected", "usage", "help", "version", "completion", "summary"} {
			some = append(some, filepath.Join(dir, name+".txtar"))
		}
		dir = ""
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               some,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			inputs, err := inputs()
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
		},
	})
}

// inputs are the golden snapshots and files that are none.
func inputs() (map[string][]byte, error) {
	out := map[string][]byte{
		"empty.pickle":  {},
		"lfs.pickle":    []byte("version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0f", 32) + "\nsize 735036\n"),
		"plain.pickle":  []byte("Traceback (most recent call last):\n  File \"train.py\", line 1\n"),
		"system.pickle": []byte("\x80\x02cos\nsystem\nq\x00X\x0c\x00\x00\x00touch pwned!q\x01\x85q\x02Rq\x03."),
		"escape.pickle": []byte("\x80\x02cos\x1b]0;x\x07\nsys\x1b[2Jtem\n(tR."),
		"list.pickle":   []byte("\x80\x02]q\x00."),
		"number.pickle": []byte("\x80\x02K\x07."),
	}
	for _, name := range []string{"healthy.pickle", "ghost.pickle", "fragmentation.pickle", "ghost.stats.jsonl"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", name))
		if err != nil {
			return nil, err
		}
		out[name] = data
	}
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
