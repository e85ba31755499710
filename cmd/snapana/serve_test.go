package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve prints an address that a browser can open, even where none starts, and ends well with
// Ctrl-C. Its page has what report's has, who holds the memory too.
func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	t.Setenv("PATH", t.TempDir()) // without a browser
	r, w := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		dir := filepath.Join("..", "..", "fixtures", "holders", "hook_closure")
		code <- run(ctx, []string{"serve", "--open", "--recorder", filepath.Join(dir, "run.snapana"),
			filepath.Join(dir, "snapshot.pickle.zst")}, nil, w, &stderr)
		w.Close()
	}()
	out := bufio.NewReader(r)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %d %s", err, <-code, &stderr)
	}
	go io.Copy(io.Discard, out)
	resp, err := http.Get(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || !bytes.Contains(page, []byte("closure cell `features`")) {
		t.Errorf("%s, %v, a page of %d bytes", resp.Status, err, len(page))
	}
	stop()
	select {
	case c := <-code:
		if c != exitOK {
			t.Errorf("exit code %d: %s", c, &stderr)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Ctrl-C does not stop it")
	}
	if !strings.Contains(stderr.String(), "could not start a browser") {
		t.Errorf("stderr has %q", &stderr)
	}
}
