package analyze_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestModule builds and runs the example as a program in a module of its own: nothing that it needs is
// internal.
func TestModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program of its own")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	_, needs, _ := strings.Cut(string(mod), "\nrequire")
	program, want, _ := strings.Cut(string(example), "	// Output:\n")
	program = strings.NewReplacer("package analyze_test", "package main", "func Example()", "func main()",
		"../fixtures", filepath.ToSlash(filepath.Join(root, "fixtures"))).Replace(program) + "}\n"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": program,
		"go.mod": "module example.com/try\n\ngo 1.26.0\n\nrequire github.com/snapana/snapana v0.0.0\n\n" +
			"replace github.com/snapana/snapana => " + root + "\n\nrequire" + needs,
		"go.sum": string(sum),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command("go", "run", "-mod=mod", ".")
	run.Dir = dir
	run.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want = strings.TrimSuffix(strings.TrimSuffix(want, "}\n"), "\n")
	if got := strings.TrimSpace(string(out)); got != strings.TrimSpace(strings.ReplaceAll(want, "	// ", "")) {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}
