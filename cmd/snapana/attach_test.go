//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestAttach attaches to a program with a made-up torch, and does what attach says next.
func TestAttach(t *testing.T) {
	python, err := exec.LookPath("python3.14")
	if err != nil || exec.Command(python, "-c", "").Run() != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no Python 3.14, which .ci/run installs")
		}
		t.Skip("there is no Python 3.14; .ci/pythons unpacks it into a folder for your PATH")
	}
	program := exec.Command(python, "../../snapshot/attach/testdata/program.py")
	program.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	stdin, err1 := program.StdinPipe()
	stdout, err2 := program.StdoutPipe()
	if err1 != nil || err2 != nil || program.Start() != nil {
		t.Fatal("the program cannot be started")
	}
	defer func() {
		stdin.Close()
		program.Process.Kill()
		program.Wait()
	}()
	if lines := bufio.NewScanner(stdout); !lines.Scan() || lines.Text() != "ready" {
		t.Fatal("the program did not get ready")
	}
	t.Chdir(t.TempDir())
	pid := program.Process.Pid
	do := func(ctx context.Context, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(ctx, args, nil, &out, &errs); code != exitOK || errs.Len() > 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, &errs)
		}
		return out.String()
	}
	number := fmt.Sprint(pid)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // as Ctrl-C does
	defer cancel()
	got := do(ctx, "attach", number, "--record", "1h", "-o", "slow.pickle")
	want := "Process " + number + ", Python 3.14."
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, `s.
  slow.pickle   the snapshot, with the history of this time
  slow.snapana  the Python objects that hold tensors
Next    snapana report slow.pickle
`) {
		t.Errorf("attach --record prints\n%s", got)
	}
	if got := do(t.Context(), "ghosts", "slow.pickle"); !strings.Contains(got, "list attribute `outputs` of Trainer") {
		t.Errorf("ghosts prints\n%s", got)
	}
	if got := do(t.Context(), "attach", number); !strings.Contains(got, "attach-"+number+".pickle   the snapshot, without") {
		t.Errorf("attach prints\n%s", got)
	}
}
