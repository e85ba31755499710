package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/snapana/snapana/fixtures/s3"
)

// inPython runs Python with the package and this program, in the folder of the package's tests.
func inPython(t *testing.T, args ...string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no python3")
		}
		t.Skip("no python3")
	}
	program, err := exec.LookPath("snapana") // TestMain has put it on PATH
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, append([]string{"-W", "error"}, args...)...)
	sources, err := filepath.Abs("../release/python")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir = "testdata/python"
	cmd.Env = append(os.Environ(), "PYTHONPATH="+sources, "SNAPANA_BINARY="+program, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestPythonPackage runs the tests of `import snapana`.
func TestPythonPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program many times")
	}
	out := inPython(t, "-m", "unittest", "test_snapana")
	if !regexp.MustCompile(`Ran [2-9]\d tests`).MatchString(out) || strings.Contains(out, "skipped") {
		t.Errorf("some tests did not run:\n%s", out)
	}
}

var (
	pythonBlock = regexp.MustCompile("(?s)```python\n(.*?)```")
	says        = regexp.MustCompile(`(?m)^(.+?)  +# -> (.*)$`)
)

// TestPythonPage runs the examples of manual/python.md, one after the other as in a session: what stands behind `# ->` is
// what the line gives.
func TestPythonPage(t *testing.T) {
	page, err := os.ReadFile("manual/python.md")
	if err != nil {
		t.Fatal(err)
	}
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	code.WriteString(pageSession)
	checks := 0
	for _, block := range pythonBlock.FindAllStringSubmatch(string(page), -1) {
		code.WriteString(says.ReplaceAllStringFunc(block[1], func(line string) string {
			checks++
			m := says.FindStringSubmatch(line)
			return fmt.Sprintf("_says((%s), %q)", m[1], m[2])
		}))
		code.WriteByte('\n')
	}
	if checks < 12 {
		t.Errorf("the page has %d results, fewer than it should", checks)
	}
	script := filepath.Join(t.TempDir(), "session.py")
	if err := os.WriteFile(script, []byte(code.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	inPython(t, script, fixtures)
}

// pageSession is what the page takes for granted: files in the current folder, and a program with a recorder.
const pageSession = `
import contextlib, os, shutil, sys, types
_fixtures = sys.argv[1]
os.chdir(os.path.dirname(sys.argv[0]))
for _new, _old in (("snapshot", "ghost.pickle"), ("before", "healthy.pickle"), ("after", "ghost.pickle")):
    shutil.copy(os.path.join(_fixtures, _old), _new + ".pickle")
for _n in (2, 4):
    shutil.copy(os.path.join(_fixtures, "lab", "fit", "moe_batch%d_seq128.pickle.xz" % _n), "batch%d.pickle.xz" % _n)

def _says(got, want):
    text = repr(got)
    assert text == want or want.endswith("...") and text.startswith(want[:-3]), (text, want)

class _record:
    files = None, None
    def __init__(self, run, **options): self.run = run
    def __enter__(self): pass
    def __exit__(self, *of):
        shutil.copy("snapshot.pickle", self.run + ".pickle")
        self.files = self.run + ".pickle", self.run + ".snapana"
    def dump(self): pass
_recorder = types.ModuleType("snapana_recorder")
_recorder.record, _recorder.step, _recorder.phase = _record, lambda *a: None, lambda name: contextlib.nullcontext()
_recorder.on_oom = lambda *a: None
sys.modules["snapana_recorder"] = _recorder
loader = val_loader = range(3)
train_step = validate = display = lambda *a: None
`

// TestPythonStore reports on an object of a store, by its name and by a path that was made of it.
func TestPythonStore(t *testing.T) {
	stored(t, s3.New(t), "run/rank0.pickle", "ghost.pickle")
	const code = `
import pathlib, snapana
for name in ("s3://bucket/run/rank0.pickle", pathlib.PurePosixPath("s3://bucket/run/rank0.pickle")):
    report = snapana.report(name)
    assert (report.verdict, report.name) == ("ghost", "rank0.pickle"), report
try:
    snapana.report("s3://bucket/none.pickle")
except snapana.Error as err:
    assert "no such object" in err.message and err.exit_code == 2, repr(err)
`
	inPython(t, "-c", code)
}
