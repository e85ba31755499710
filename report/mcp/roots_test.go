package mcp_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/snapana/snapana/fixtures/s3"
	"github.com/snapana/snapana/report/mcp"
)

// TestStores reads below a folder of a store, and nothing else of it.
func TestStores(t *testing.T) {
	s := s3.New(t)
	for key, file := range map[string]string{"dumps/a/ghost.pickle": "ghost.pickle", "dumps/healthy.pickle": "healthy.pickle",
		"dumps/a b ü.pickle": "healthy.pickle", "other/secret.pickle": "ghost.pickle", "dumps2/secret.pickle": "ghost.pickle"} {
		data, err := os.ReadFile(filepath.Join(fixtures, file))
		if err != nil {
			t.Fatal(err)
		}
		s.Put(t, key, data)
	}
	c := client(t, mcp.Options{Roots: []string{"s3://bucket/dumps/"}, Cache: mcp.DefaultCache})
	for _, q := range []struct {
		tool string
		args map[string]any
		has  string
	}{
		{"report", map[string]any{"file": "s3://bucket/dumps/a/ghost.pickle"}, `"status":"ghost"`},
		{"report", map[string]any{"file": "s3://bucket/dumps/a/../healthy.pickle"}, `"status":"healthy"`},
		{"report", map[string]any{"file": "s3://bucket/dumps/a b ü.pickle"}, `"status":"healthy"`},
		{"report", map[string]any{"file": "."}, "3 files in s3://bucket/dumps"},
		{"report", map[string]any{"file": "s3://bucket/dumps/a"}, "1 file in s3://bucket/dumps/a"},
		{"ranks", map[string]any{"files": []string{"s3://bucket/dumps"}}, "3 snapshots"},
		{"diff", map[string]any{"a": "s3://bucket/dumps/healthy.pickle", "b": "s3://bucket/dumps/a/ghost.pickle"}, `"delta"`},
	} {
		a := call(t, c, q.tool, q.args)
		if a.err || !strings.Contains(text(a), q.has) {
			t.Errorf("%s %v: %s", q.tool, q.args, text(a))
		}
		follow(t, c, a)
	}
	var strays []string
	s.Fault(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		asked := r.URL.Path + "/" + r.URL.Query().Get("prefix")
		if !strings.HasPrefix(asked, "/bucket/dumps/") && !strings.HasPrefix(asked, "/bucket//dumps/") {
			strays = append(strays, r.URL.String())
		}
		return false
	})
	for _, name := range []string{"s3://bucket/other/secret.pickle", "s3://bucket/dumps2/secret.pickle", "s3://bucket",
		"s3://bucket/", "s3://bucket/dumps/../other/secret.pickle", "s3://bucket/dumps/a/../../other/secret.pickle",
		"s3://elsewhere/dumps/healthy.pickle", "s3://../bucket/dumps", "s3:///bucket/dumps", "S3://bucket/dumps/healthy.pickle",
		"s3://bucket@evil/dumps/healthy.pickle", "https://bucket/dumps/healthy.pickle", "healthy.pickle", "/etc/passwd",
		"dumps/healthy.pickle", "s3:/bucket/dumps/healthy.pickle"} {
		for tool, args := range map[string]map[string]any{"report": {"file": name}, "ranks": {"files": []string{name}},
			"oom": {"file": name}, "ghosts": {"file": "s3://bucket/dumps/healthy.pickle", "recorder": name}} {
			a := call(t, c, tool, args)
			if got := code(a); got != "permission" {
				t.Errorf("%s %q: %s", tool, name, text(a))
			}
		}
	}
	if a := call(t, c, "report", map[string]any{"file": "s3://bucket/dumps/none.pickle"}); code(a) != "no_such_file" {
		t.Errorf("%s", text(a))
	}
	if len(strays) > 0 {
		t.Errorf("the store was asked for %q", strays)
	}
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		http.Error(w, "no", http.StatusForbidden)
		return true
	})
	if a := call(t, c, "report", map[string]any{"file": "s3://bucket/dumps/healthy.pickle"}); code(a) != "permission" ||
		strings.Contains(text(a), s3.Secret) {
		t.Errorf("%s", text(a))
	}
}

// follow makes the calls that an answer leads to, all of which are answered.
func follow(t *testing.T, c *sdk.ClientSession, a answer) (out []answer) {
	t.Helper()
	more, _ := a.doc["more"].([]any)
	for _, m := range more {
		m := m.(map[string]any)
		next := call(t, c, m["tool"].(string), m["arguments"].(map[string]any))
		if next.err {
			t.Errorf("%v: %s", m, text(next))
		}
		out = append(out, next)
	}
	return out
}

// TestSeveralRoots holds that a name in an answer is that of the file which it is about, although another folder has a
// file of that name; and that "." is all folders.
func TestSeveralRoots(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	copied(t, "healthy.pickle", filepath.Join(a, "run.pickle"))
	copied(t, "ghost.pickle", filepath.Join(b, "run.pickle"))
	copied(t, "pinned.pickle", filepath.Join(b, "only here 模型.pickle"))
	c := client(t, mcp.Options{Roots: []string{a, b}})
	first := call(t, c, "report", map[string]any{"file": "run.pickle"})
	second := call(t, c, "report", map[string]any{"file": filepath.Join(b, "run.pickle")})
	if first.doc["status"] != "healthy" || second.doc["status"] != "ghost" {
		t.Errorf("%s\n%s", text(first), text(second))
	}
	for _, answer := range follow(t, c, second) {
		if f, _ := answer.doc["file"].(string); f != "" && f != second.doc["file"] {
			t.Errorf("%s leads to %s", text(second), text(answer))
		}
	}
	host := client(t, mcp.Options{Roots: []string{filepath.Join(fixtures, "host")}})
	follow(t, host, call(t, host, "report", map[string]any{"file": "."})) // recordings alone
	var status []string
	for _, answer := range follow(t, c, call(t, c, "report", map[string]any{"file": "."})) {
		s, _ := answer.doc["status"].(string)
		status = append(status, s)
	}
	if !slices.Contains(status, "healthy") || !slices.Contains(status, "ghost") || len(status) != 4 {
		t.Errorf("%q", status)
	}
}
