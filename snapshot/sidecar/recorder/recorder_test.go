package recorder

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

const python = "/usr/bin/python3"

// run runs Python beside the recorder, and gives its output.
func run(args ...string) (string, error) {
	cmd := exec.Command(python, args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// list prints the names of all tests.
const list = `
import unittest
def names(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            names(test)
        else:
            print(test.id())
names(unittest.defaultTestLoader.loadTestsFromName("test_recorder"))
`

// The recorder's own tests are Python's, and need its torch: Debian's, for CPUs. Each looks
// through the heap, so that they are dealt out to a process for each processor.
func TestRecorderInPython(t *testing.T) {
	if testing.Short() {
		t.Skip("looks through the heap of a Python with torch a hundred times")
	}
	out, err := run("-c", list)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no torch for %s, which .ci/run installs: %s", python, out)
		}
		t.Skipf("no torch for %s", python)
	}
	tests := strings.Fields(out)
	if len(tests) < 50 {
		t.Fatalf("only %d tests:\n%s", len(tests), out)
	}
	hands := make([][]string, max(2, min(runtime.GOMAXPROCS(0), 8)))
	for i, name := range tests {
		hands[i%len(hands)] = append(hands[i%len(hands)], name)
	}
	for i, hand := range hands {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			out, err := run(append([]string{"-m", "unittest"}, hand...)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if strings.Contains(out, "skipped") || !strings.Contains(out, "\nOK\n") || !strings.Contains(out, fmt.Sprintf("Ran %d test", len(hand))) {
				t.Errorf("some tests did not run:\n%s", out)
			}
		})
	}
}
