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
	t.Setenv("SSH_CONNECTION", "192.0.2.7 50022 192.0.2.1 22")
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
	_, err = out.ReadString('\n')
	command, err2 := out.ReadString('\n')
	if port := strings.Split(line, ":")[2][:5]; err != nil || err2 != nil || !strings.Contains(command, "@192.0.2.1\n") ||
		!strings.Contains(command, "ssh -N -L "+strings.TrimRight(port, "/")+":127.0.0.1:") {
		t.Errorf("%q for %s, %v", command, line, err)
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

func TestSSHCommand(t *testing.T) {
	for connection, want := range map[string]string{
		"192.0.2.7 50022 192.0.2.1 22":               "ssh -N -L 8321:127.0.0.1:8321 ann@192.0.2.1",
		"192.0.2.7 50022 192.0.2.1 2222":             "ssh -N -L 8321:127.0.0.1:8321 -p 2222 ann@192.0.2.1",
		"2001:db8::7 50022 2001:db8::1 22":           "ssh -N -L 8321:127.0.0.1:8321 ann@2001:db8::1",
		"::ffff:192.0.2.7 50022 ::ffff:192.0.2.1 22": "ssh -N -L 8321:127.0.0.1:8321 ann@192.0.2.1",
		"fe80::7%eth0 50022 fe80::1%eth0 22":         "ssh -N -L 8321:127.0.0.1:8321 ann@node7",
		"::1 50022 ::1 22":                           "ssh -N -L 8321:127.0.0.1:8321 ann@node7",
		"":                                           "",
		"192.0.2.7 50022 192.0.2.1":                  "",
		"192.0.2.7 50022 $(touch pwned) 22":          "",
		"192.0.2.7 50022 192.0.2.1 99999":            "",
	} {
		if got := sshCommand(connection, "ann", "node7", 8321); got != want {
			t.Errorf("%q: %s, want %s", connection, got, want)
		}
	}
	if got := sshCommand("192.0.2.7 1 127.0.0.1 22", `DOMAIN\ann b`, "node7", 80); got != `ssh -N -L 80:127.0.0.1:80 'DOMAIN\ann b@node7'` {
		t.Errorf("a name with spaces: %s", got)
	}
}
