package recorder

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

const python = "/usr/bin/python3"

// script runs the tests whose numbers leave a remainder when divided. It ends with 3 without torch.
const script = `
import gc, sys, unittest
try:
    import torch
except ImportError as err:
    print(err)
    sys.exit(3)
rest, hands, freeze = map(int, sys.argv[1:])
if freeze:
    gc.freeze()
    import snapana_recorder
    snapana_recorder._FROZEN = 1 << 60

def tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests(test)
        else:
            yield test
all = unittest.defaultTestLoader.loadTestsFromName("test_recorder")
done = unittest.TextTestRunner().run(unittest.TestSuite(list(tests(all))[rest::hands]))
sys.exit(not done.wasSuccessful())
`

var ran = regexp.MustCompile(`(?m)^Ran (\d+) tests? in `)

// The recorder's own tests are Python's, and need its torch: Debian's, for CPUs. In a full run each
// looks through all of its heap, so that they are dealt out to some processes for each processor.
func TestRecorderInPython(t *testing.T) {
	if testing.Short() {
		t.Skip("looks through the heap of a Python with torch a hundred times")
	}
	hands, freeze := 1, 1
	if os.Getenv("SNAPANA_FULL") != "" {
		hands, freeze = 4*runtime.GOMAXPROCS(0), 0 // some take much longer than others
	}
	counts := make([]int, hands)
	t.Run("hand", func(t *testing.T) { // ends when all have
		for i := range hands {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				cmd := exec.Command(python, "-c", script, fmt.Sprint(i), fmt.Sprint(hands), fmt.Sprint(freeze))
				cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
				b, err := cmd.CombinedOutput()
				out := string(b)
				var exit *exec.ExitError
				if errors.Is(err, os.ErrNotExist) || errors.As(err, &exit) && exit.ExitCode() == 3 {
					if os.Getenv("CI") == "true" {
						t.Fatalf("no torch for %s, which .ci/run installs: %s", python, out)
					}
					t.Skipf("no torch for %s", python)
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				m := ran.FindStringSubmatch(out)
				if m == nil || strings.Contains(out, "skipped") || !strings.Contains(out, "\nOK\n") {
					t.Fatalf("some tests did not run:\n%s", out)
				}
				counts[i], _ = strconv.Atoi(m[1])
			})
		}
	})
	sum := 0
	for _, n := range counts {
		if n == 0 {
			return // failed or skipped
		}
		sum += n
	}
	if sum < 50 {
		t.Errorf("only %d tests", sum)
	}
}
