package attach

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// testFolder is one with files of these contents.
func testFolder(t *testing.T, files map[string]string) *folder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{root: root, path: dir, inner: dir, uid: os.Geteuid(), gid: os.Getegid()}
	t.Cleanup(f.close)
	return f
}

// The other process names its files and makes them, but not so that others are read or written.
func TestTakesOwnFilesOnly(t *testing.T) {
	for _, files := range [][]string{{}, {"../x.snapana"}, {"/etc/passwd"}, {"x.snapana/.."}, {"y.snapana"},
		{"x.rank.snapana"}, {"x.snapana", "x.pickle", "x.rank1.pickle"}, {"x.snapana\n"}, {"x.pickle"}} {
		f := testFolder(t, map[string]string{"x.snapana": "1"})
		out := filepath.Join(t.TempDir(), "x")
		if _, _, err := f.take(&reply{Files: files}, Options{Output: out}); err == nil {
			t.Errorf("%q was taken", files)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := testFolder(t, nil)
	if err := os.Symlink(secret, filepath.Join(f.path, "x.snapana")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "x")
	if _, _, err := f.take(&reply{Files: []string{"x.snapana"}}, Options{Output: out}); err == nil {
		t.Error("a link out of the folder was followed")
	}
	f = testFolder(t, map[string]string{"x.rank12.snapana": "1", "x.rank12.pickle": "2"})
	r := &reply{Files: []string{"x.rank12.snapana", "x.rank12.pickle"}}
	recording, snapshot, err := f.take(r, Options{Output: out})
	if err != nil || recording != out+".rank12.snapana" || snapshot != out+".rank12.pickle" {
		t.Errorf("%s %s %v", recording, snapshot, err)
	}
}

// A request is either taken or withdrawn.
func TestWithdraw(t *testing.T) {
	f := testFolder(t, nil)
	if err := f.ask(dump, toMain, Options{Output: "/x"}); err != nil || !f.pending(dump) {
		t.Fatal(err)
	}
	if !f.withdraw(dump) || f.pending(dump) || f.withdraw(dump) {
		t.Error("a request was not withdrawn once")
	}
}

func FuzzReply(f *testing.F) {
	whole, _ := json.Marshal(reply{Files: []string{"x.snapana", "x.pickle"}})
	f.Add(whole)
	f.Add([]byte(`{"error":"torch"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := parseReply(data); err == nil {
			_ = r.err()
		}
	})
}
