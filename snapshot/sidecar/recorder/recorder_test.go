package recorder

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The recorder's own tests are Python's, and need its torch: Debian's, for CPUs.
func TestRecorderInPython(t *testing.T) {
	if testing.Short() {
		t.Skip("looks through the heap of a Python with torch a hundred times")
	}
	const python = "/usr/bin/python3"
	if out, err := exec.Command(python, "-c", "import torch").CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no torch for %s, which .ci/run installs: %s", python, out)
		}
		t.Skipf("no torch for %s", python)
	}
	cmd := exec.Command(python, "-m", "unittest", "test_recorder")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "skipped") || !strings.Contains(string(out), "\nOK\n") {
		t.Errorf("some tests did not run:\n%s", out)
	}
}
