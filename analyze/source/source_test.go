package source_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/source"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Files are found by the longest end of their name, below the folder only.
func TestFind(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "project")
	put(t, dir, "train.py", "top\r\nsecond\n")
	put(t, dir, "nets/model.py", "model\n")
	put(t, dir, "model.py", "other\n")
	put(t, dir, "large.py", strings.Repeat("x = 1\n", 200_000))
	put(t, dir, "binary.py", "a\x00b")
	put(t, dir, "notes.txt", "text")
	put(t, dir, "folder.py/inner.py", "inner\n")
	put(t, top, "secret.py", "secret\n")
	if runtime.GOOS != "windows" {
		for link, to := range map[string]string{"out.py": "../secret.py", "abs.py": filepath.Join(top, "secret.py"),
			"up": "..", "in.py": "nets/model.py", "null.py": "/dev/null"} {
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tree, err := source.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for name, want := range map[string]string{
		"/home/a/project/nets/model.py": "nets/model.py",
		"/other/model.py":               "model.py",
		"model.py":                      "model.py",
		`C:\work\project\nets\model.py`: "nets/model.py",
		"/app/train.py":                 "train.py",
		"./train.py":                    "",
		"../secret.py":                  "",
		"/x/../secret.py":               "",
		filepath.Join(top, "secret.py"): "",
		"/a/large.py":                   "",
		"/a/binary.py":                  "",
		"/a/notes.txt":                  "",
		"/a/folder.py":                  "",
		"/a/missing.py":                 "",
		"":                              "",
		"/a/train.py\x00":               "",
		"a/" + strings.Repeat("b/", 99) + "train.py": "",
		"/a/out.py":       "",
		"/a/abs.py":       "",
		"/a/up/secret.py": "",
		"/a/null.py":      "",
	} {
		got := ""
		if f := tree.Find(name); f != nil {
			got = f.Name
		}
		if got != want {
			t.Errorf("%q: found %q, want %q", name, got, want)
		}
	}
	if f := tree.Find("train.py"); len(f.Lines) != 2 || f.Lines[0] != "top" || f.Path != filepath.ToSlash(dir)+"/train.py" {
		t.Errorf("%+v", f)
	}
	if f := tree.Find("/a/in.py"); runtime.GOOS != "windows" && (f == nil || f.Lines[0] != "model") {
		t.Errorf("a link within the folder: %+v", f)
	}
	if _, err := source.Open(filepath.Join(top, "nothing"), ""); err == nil {
		t.Error("a folder that is not there is opened")
	}
}

// A frame fits a file where its function is, and no longer where it was renamed or moved below.
func TestFits(t *testing.T) {
	f := source.File{Lines: strings.Split(`import torch
class Net:
    def forward(self, x):
        return x + 1
    @torch.no_grad()
    def step(self):
        return [i for i in range(3)]
async  def late(): pass
async def other(): pass`, "\n")}
	for _, c := range []struct {
		function string
		line     int
		want     bool
	}{{"forward", 4, true}, {"Net.forward", 3, true}, {"forward", 2, false}, {"for", 4, false}, {"step", 5, false}, {"step", 7, true},
		{"<module>", 1, true}, {"<listcomp>", 7, true}, {"Net", 2, true}, {"forward", 0, false}, {"forward", 99, false},
		{"other", 9, true}, {"gone", 9, false}} {
		if got := f.Fits(c.function, c.line); got != c.want {
			t.Errorf("%s at line %d: %v", c.function, c.line, got)
		}
	}
}

// Addresses of editors are of known schemes only, and names cannot break out of them.
func TestEditor(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a b&line=9#{line}.py", "x\n")
	for text, want := range map[string]string{
		"vscode":  "vscode://file" + filepath.ToSlash(dir) + "/a%20b%26line%3D9%23%7Bline%7D.py:{line}",
		"pycharm": "pycharm://open?file=" + filepath.ToSlash(dir) + "/a%20b%26line%3D9%23%7Bline%7D.py&line={line}",
		"none":    "",
		"vscode://vscode-remote/ssh-remote+node7{path}:{line}": "vscode://vscode-remote/ssh-remote+node7" +
			filepath.ToSlash(dir) + "/a%20b%26line%3D9%23%7Bline%7D.py:{line}",
	} {
		e, err := source.ReadEditor(text)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := source.Open(dir, e)
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		if got := tree.Link(tree.Find("a b&line=9#{line}.py")); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "emacs", "javascript:alert(1)", "javascript://{path}", "file://{path}", "https://x/{path}",
		"vscode://file", "vscode://file{path} x", "VSCODE://file{path}", "://{path}", "vscode://file{path}\"onclick"} {
		if e, err := source.ReadEditor(text); err == nil {
			t.Errorf("%q is taken as %q", text, e)
		}
	}
}
