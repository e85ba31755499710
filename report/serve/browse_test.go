//go:build linux

package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/snapana/snapana/fixtures/analyzetest"
)

// browser serves a page, and returns what a browser is started with.
func browser(t *testing.T) (s *Server, url, arg string) {
	t.Helper()
	s, err := New(analyzetest.Empty(t), DefaultBytes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(t.Context(), l)
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	script := "#!/bin/sh\necho \"$@\" > " + dir + "/new && mv " + dir + "/new " + dir + "/args\n"
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	forget, err := s.Browse(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(forget)
	for range 1000 {
		if args, err := os.ReadFile(filepath.Join(dir, "args")); err == nil {
			return s, s.URL(l), strings.TrimSpace(string(args))
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no browser was started")
	return nil, "", ""
}

// TestBrowse starts a browser with what others may see: it leads this user to the page, once.
func TestBrowse(t *testing.T) {
	s, url, arg := browser(t)
	if strings.Contains(arg, s.token) {
		t.Fatalf("all users can read the token in %s", arg)
	}
	if resp, err := http.Head(arg); err != nil || resp.StatusCode != 404 { // a look ahead uses nothing up
		t.Fatalf("%v, %v", resp, err)
	}
	if resp, err := http.Get(strings.TrimRight(arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") + "AAAAAAAAAA"); err != nil ||
		resp.StatusCode != 404 {
		t.Errorf("a wrong code: %v, %v", resp, err)
	}
	resp, err := http.Get(arg)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || resp.Request.URL.String() != url ||
		!strings.Contains(string(page), "</html>") {
		t.Errorf("%s at %s, %v", resp.Status, resp.Request.URL, err)
	}
	if resp, err := http.Get(arg); err != nil || resp.StatusCode != 404 {
		t.Errorf("a second time: %v, %v", resp, err)
	}
}

// TestLateBrowser comes after the code has run out.
func TestLateBrowser(t *testing.T) {
	s, _, arg := browser(t)
	s.invited.mu.Lock()
	s.invited.until = time.Now()
	s.invited.mu.Unlock()
	if resp, err := http.Get(arg); err != nil || resp.StatusCode != 404 {
		t.Errorf("%v, %v", resp, err)
	}
}

// TestOtherUser asks with the code as another user: it is refused, and the code still lets this one in.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	_, _, arg := browser(t)
	address, path, _ := strings.Cut(strings.TrimPrefix(arg, "http://"), "/")
	status := make(chan string)
	go func() {
		runtime.LockOSThread() // and ends with the goroutine
		unix.Setfsuid(65534)
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp4", address)
		if err != nil {
			status <- err.Error()
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, address)
		answer, _ := io.ReadAll(conn)
		status <- string(answer)
	}()
	if got := <-status; !strings.HasPrefix(got, "HTTP/1.1 404 ") {
		t.Errorf("another user gets %.300q", got)
	}
	if resp, err := http.Get(arg); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
}

// TestLetter is what leads to the page where the system does not tell whose a connection is.
func TestLetter(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path, forget, err := letter("http://127.0.0.1:1/secret/")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(page), `content="0; url=http://127.0.0.1:1/secret/"`) {
		t.Errorf("%q, %v", page, err)
	}
	for _, path := range []string{path, filepath.Dir(path)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	forget()
	if _, err := os.Stat(path); err == nil {
		t.Error("it stays")
	}
}
