//go:build unix

package input

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPipe reads a named pipe that somebody writes to a little later.
func TestPipe(t *testing.T) {
	path := pipe(t)
	go func() {
		time.Sleep(50 * time.Millisecond)
		os.WriteFile(path, []byte("data"), 0)
	}()
	f, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := io.ReadAll(f); err != nil || string(data) != "data" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestNoWriter opens a named pipe that nobody writes to.
func TestNoWriter(t *testing.T) {
	if _, err := Open(t.Context(), pipe(t)); !errors.Is(err, ErrNoWriter) {
		t.Errorf("%v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Open(ctx, pipe(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
