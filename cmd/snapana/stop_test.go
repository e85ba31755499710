package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"
)

// TestStop stops commands that wait for input which never comes: they end at once and say nothing.
func TestStop(t *testing.T) {
	for _, args := range [][]string{
		{"summary", "-"}, {"report", "-o", filepath.Join(t.TempDir(), "out"), "-"}, {"oom", "-"}, {"stats", "-"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		stdin, forever := io.Pipe()
		defer forever.Close()
		var out bytes.Buffer
		code := make(chan int)
		go func() { code <- run(ctx, args, stdin, &out, &out) }()
		io.WriteString(forever, "\x80\x04}(") // once that is taken it waits for more
		stop()
		select {
		case c := <-code:
			if c != exitStopped || out.Len() > 0 {
				t.Errorf("%v: exit %d: %s", args, c, &out)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%v goes on", args)
		}
	}
}

// TestStopRanks stops a command that reads several files and takes what fails of one for a result.
func TestStopRanks(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	if code := run(ctx, []string{"ranks", filepath.Join("..", "..", "fixtures", "healthy.pickle")}, nil, &out,
		&out); code != exitStopped || out.Len() > 0 {
		t.Errorf("exit %d: %s", code, &out)
	}
}
