package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snapana/snapana/fixtures/s3"
)

// stored puts a snapshot into a store.
func stored(t *testing.T, s *s3.Server, key, file string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", file))
	if err != nil {
		t.Skip(err)
	}
	s.Put(t, key, data)
}

// ask runs a command, which must not tell a secret.
func ask(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &out, &err)
	for _, s := range []string{s3.Secret, "AKIAEXAMPLE"} {
		if strings.Contains(out.String()+err.String(), s) {
			t.Errorf("%v tells a secret: %s%s", args, &out, &err)
		}
	}
	return code, out.String(), err.String()
}

// TestStores reads of a store what is read of a folder, with the same words.
func TestStores(t *testing.T) {
	s := s3.New(t)
	fixtures := filepath.Join("..", "..", "fixtures")
	for _, key := range []string{"run/rank0.pickle", "run/b c/rank1.pickle"} {
		stored(t, s, key, "healthy.pickle")
	}
	for _, c := range [][]string{{"summary"}, {"report", "--json"},
		{"summary", "--from", "2000", "--to", "5000"}, {"peak"}} {
		_, want, _ := ask(t, append(c, filepath.Join(fixtures, "healthy.pickle"))...)
		want = strings.ReplaceAll(want, "healthy.pickle", "rank0.pickle")
		if code, got, stderr := ask(t, append(c, "s3://bucket/run/rank0.pickle")...); code != 0 || got != want {
			t.Errorf("%v: exit %d: %s%s", c, code, stderr, got)
		}
	}
	if code, out, stderr := ask(t, "ranks", "s3://bucket/run/"); code != 0 || !strings.Contains(out, "2 ranks") {
		t.Errorf("ranks: exit %d: %s%s", code, out, stderr)
	}
	for args, says := range map[string]string{
		"s3://bucket/run":           "is a directory with 2 snapshots: 's3://bucket/run/b c/rank1.pickle'",
		"s3://bucket/rnu/":          "s3://bucket/rnu/: no such object",
		"s3://nosuch/x.pickle":      "no such bucket",
		"gs://bucket/x.pickle":      "HMAC",
		"s3://bucket/absent.pickle": "no such object",
	} {
		if code, _, stderr := ask(t, "report", args); code != exitInput || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		s3.Refuse(w, 403, "AccessDenied")
		return true
	})
	if code, _, stderr := ask(t, "report", "s3://bucket/run/rank0.pickle"); code != exitEnv ||
		!strings.Contains(stderr, "access denied") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestStoreStop stops a command that waits for a store.
func TestStoreStop(t *testing.T) {
	s := s3.New(t)
	ctx, stop := context.WithCancel(t.Context())
	s.Fault(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		stop()
		<-r.Context().Done()
		return true
	})
	var out bytes.Buffer
	if code := run(ctx, []string{"summary", "s3://bucket/x"}, nil, &out, &out); code != exitStopped || out.Len() > 0 {
		t.Errorf("exit %d: %s", code, &out)
	}
}

// TestNoNetwork has no store asked where none is named.
func TestNoNetwork(t *testing.T) {
	s := s3.New(t)
	var asked atomic.Bool
	s.Fault(func(http.ResponseWriter, *http.Request, http.Handler) bool {
		asked.Store(true)
		return false
	})
	t.Setenv("HTTP_PROXY", s.URL)
	t.Setenv("HTTPS_PROXY", s.URL)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s.URL)
	ask(t, "report", "-o", filepath.Join(t.TempDir(), "out"), filepath.Join("..", "..", "fixtures", "healthy.pickle"))
	if asked.Load() {
		t.Error("a report of a file asks a store")
	}
}

// TestStoreWrites writes to a store what can be written to a folder.
func TestStoreWrites(t *testing.T) {
	s := s3.New(t)
	stored(t, s, "run/rank0.pickle", "ghost.pickle")
	t.Chdir(t.TempDir()) // in which nothing may be written
	const in = "s3://bucket/run/rank0.pickle"
	for _, args := range [][]string{
		{"report", "-o", "s3://bucket/reports/run1/", in}, {"report", "-q", "-o", "s3://bucket/reports/run1", in},
		{"plot", "-o", "s3://bucket/plots/a b.svg", in}, {"digest", "-o", "s3://bucket/digests/", "s3://bucket/run/"},
		{"export", "--to", "pprof", "-o", "s3://bucket/exports/x.pprof", in},
		{"export", "--to", "parquet", "-o", "s3://bucket/tables", in},
		{"ranks", "-o", "s3://bucket/page/", "s3://bucket/run/"}, {"ranks", "s3://bucket/digests/"},
		{"check", "--update-baseline", "s3://bucket/base.json", in}, {"check", "--baseline", "s3://bucket/base.json", in},
	} {
		if code, out, stderr := ask(t, args...); code != 0 {
			t.Errorf("%v: exit %d: %s%s", args, code, out, stderr)
		}
	}
	_, out, _ := ask(t, "digest", "-o", "s3://bucket/digests", "s3://bucket/run/")
	if !strings.Contains(out, "there already") {
		t.Error(out)
	}
	all := strings.Join(s.Keys(t), "\n") + "\n"
	for _, key := range []string{"reports/run1/report.html", "reports/run1/report.json", "plots/a b.svg", ".digest",
		"exports/x.pprof", "events.parquet", "page/ranks.html", "page/rank0.report/report.html", "base.json"} {
		if !strings.Contains(all, key+"\n") {
			t.Errorf("no %s in\n%s", key, all)
		}
	}
	if strings.Contains(all, ".snapana-") {
		t.Error(all)
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("%v was written here", left)
	}
	s.Put(t, "mine/notes.txt", []byte("mine"))
	if code, _, stderr := ask(t, "report", "-o", "s3://bucket/mine", in); code != exitEnv ||
		!strings.Contains(stderr, "contains files that are not a snapana report") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := ask(t, "plot", "-o", "gs://bucket/x.png", in); code != exitEnv ||
		!strings.Contains(stderr, "HMAC") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestStoreUnasked has nothing shown of what a store says without being asked, which may be what it was told.
func TestStoreUnasked(t *testing.T) {
	s := s3.New(t)
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return false
		}
		io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\nsaid")
		time.Sleep(10 * time.Millisecond)
		conn.Close()
		return true
	})
	out, err := exec.CommandContext(t.Context(), "snapana", "summary", "s3://bucket/x").CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "snapana: ") || strings.Contains(string(out), "said") {
		t.Errorf("%v: %s", err, out)
	}
}
