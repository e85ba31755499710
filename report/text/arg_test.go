package text_test

import (
	"os/exec"
	"testing"

	"github.com/snapana/snapana/report/text"
)

// TestArg has a shell take names apart.
func TestArg(t *testing.T) {
	for name, want := range map[string]string{
		"runs/rank0.pickle": "runs/rank0.pickle", "modèle-2:1.pickle": "modèle-2:1.pickle", "-o": "./-o", "": "''",
		"my run.pickle": "'my run.pickle'", "$(touch pwned).pickle": "'$(touch pwned).pickle'",
		"a'; touch pwned;'.pickle": `'a'\''; touch pwned;'\''.pickle'`, "~": "'~'", "#1": "'#1'", "a*b": "'a*b'",
	} {
		got := text.Arg(name)
		if got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
		if name == "-o" {
			name = "./-o"
		}
		cmd := exec.Command("sh", "-c", "printf %s "+got)
		cmd.Dir = t.TempDir()
		if out, err := cmd.Output(); err != nil || string(out) != name {
			t.Errorf("a shell makes %q of %s, %v", out, got, err)
		}
	}
}
