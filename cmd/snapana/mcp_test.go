package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	mcpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	mcpReady = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	mcpAsk   = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"report","arguments":{"file":"ghost.pickle"}}}`
)

// TestMCP talks to the command over standard input and output, and ends it by closing its input.
func TestMCP(t *testing.T) {
	t.Setenv("SNAPANA_CACHE", "off") // of the answers that other commands keep
	stdin, to := io.Pipe()
	from, stdout := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), []string{"mcp", "--root", filepath.Join("..", "..", "fixtures")}, stdin, stdout, &stderr)
		stdout.Close()
	}()
	lines := bufio.NewReader(from)
	var said string
	for _, message := range []string{mcpHello, mcpReady, mcpAsk} {
		if _, err := io.WriteString(to, message+"\n"); err != nil {
			t.Fatal(err)
		}
		if message != mcpReady {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%v: %s", err, &stderr)
			}
			said = line
		}
	}
	if !strings.Contains(said, `{\"verdict\":\"Leak: validate() retains 252 MiB more per iteration`) {
		t.Errorf("%s", said)
	}
	to.Close()
	go io.Copy(io.Discard, from)
	if c := <-code; c != exitOK || stderr.Len() > 0 {
		t.Errorf("exit code %d: %s", c, &stderr)
	}
}

// TestMCPOverHTTP starts the command with a token in a file and in a variable, and with one that it makes.
func TestMCPOverHTTP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("token-from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variable, file, want string }{
		{"", "", ""}, {"token-from-a-variable", "", "token-from-a-variable"}, {"token-from-a-variable", file, "token-from-a-file"},
	} {
		t.Setenv(tokenVariable, c.variable)
		ctx, stop := context.WithCancel(t.Context())
		r, w := io.Pipe()
		var stderr bytes.Buffer
		code := make(chan int, 1)
		go func() {
			args := []string{"mcp", "--http", "127.0.0.1:0", "--root", "../../fixtures"}
			if c.file != "" {
				args = append(args, "--token-file", c.file)
			}
			code <- run(ctx, args, nil, w, &stderr)
			w.Close()
		}()
		out := bufio.NewReader(r)
		url, err := out.ReadString('\n')
		auth, err2 := out.ReadString('\n')
		if err != nil || err2 != nil {
			t.Fatalf("%v: %d %s", err, <-code, &stderr)
		}
		go io.Copy(io.Discard, out)
		if c.want != "" && auth != "Authorization: Bearer "+c.want+"\n" || len(auth) < 40 {
			t.Errorf("%q", auth)
		}
		for _, sent := range []string{"", strings.TrimSpace(strings.TrimPrefix(auth, "Authorization: "))} {
			req, err := http.NewRequest(http.MethodPost, strings.TrimSpace(url), strings.NewReader(mcpHello))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			want := http.StatusUnauthorized
			if sent != "" {
				req.Header.Set("Authorization", sent)
				want = http.StatusOK
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%q gets %s", sent, resp.Status)
			}
		}
		stop()
		select {
		case got := <-code:
			if got != exitOK {
				t.Errorf("exit code %d: %s", got, &stderr)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("Ctrl-C does not stop it")
		}
	}
}

// TestMCPFlags holds what is refused.
func TestMCPFlags(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, says string }{
		{"--http 0.0.0.0:0", "other addresses can be reached"}, {"--http [::1]:0", "invalid --http"},
		{"--http 127.0.0.1", "invalid --http"}, {"--http 127.0.0.1:99999", "invalid --http"},
		{"--http example.com:80", "invalid --http"}, {"--token-file x", "needs --http"},
		{"--http 127.0.0.1:0 --token-file " + short, "16 or more"}, {"--root not-there", "no such file"},
		{"--http 127.0.0.1:0 --token-file not-there", "no such file"}, {"file.pickle", "takes no arguments"},
	} {
		var out, errors bytes.Buffer
		args := append([]string{"mcp"}, strings.Fields(c.args)...)
		if code := run(t.Context(), args, strings.NewReader(""), &out, &errors); code != 2 ||
			!strings.Contains(errors.String(), c.says) || out.Len() > 0 {
			t.Errorf("mcp %s: %d %s", c.args, code, &errors)
		}
	}
}
