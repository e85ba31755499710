package load_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/snapana/snapana/fixtures/hostile"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// most is how many bytes the refusal of a hostile file may allocate.
const most = 200 << 20

// TestHostile opens every hostile file, from the disk and through a pipe: each is refused with
// an error of its class, in one line with the file's name and the place, in little memory.
func TestHostile(t *testing.T) {
	for i, c := range hostile.All() {
		t.Run(c.Name, func(t *testing.T) {
			if testing.Short() && (c.Large || i%3 != 0) {
				t.Skip("goes through gigabytes, or is one of many")
			}
			data := c.Bytes()
			path := filepath.Join(t.TempDir(), c.Name)
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			piped := c.Class
			if c.Piped != nil {
				piped = c.Piped
			}
			refuse(t, &c, path, c.Class, func() error {
				_, err := load.Open(t.Context(), path, load.Options{})
				return err
			})
			if c.Large || testing.Short() && len(data) > 1<<20 {
				return // the same again, at length
			}
			refuse(t, &c, c.Name, piped, func() error {
				_, err := load.Read(t.Context(), bytes.NewReader(data), c.Name, load.Options{})
				return err
			})
		})
	}
}

// refuse runs open and checks how it fails.
func refuse(t *testing.T, c *hostile.Case, name string, class error, open func() error) {
	t.Helper()
	hang := time.AfterFunc(5*time.Minute, func() { panic(fmt.Sprintf("%s: %s: still at it", c.Name, c.Why)) })
	defer hang.Stop()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err := open()
	runtime.ReadMemStats(&after)
	took := after.TotalAlloc - before.TotalAlloc
	t.Logf("%s: %.1f MiB in %v: %v", c.Why, float64(took)/(1<<20), time.Since(start).Round(time.Millisecond), err)
	var fe *snapshot.FormatError
	if took > most {
		t.Errorf("%s: %d MiB were allocated", c.Why, took>>20)
	}
	if class == nil {
		if err != nil {
			t.Errorf("%s: %v", c.Why, err)
		}
		return
	}
	switch {
	case err == nil:
		t.Fatalf("%s: accepted", c.Why)
	case !errors.As(err, &fe):
		t.Fatalf("%s: the error %v is a %T, not a FormatError", c.Why, err, err)
	case !errors.Is(err, class):
		t.Errorf("%s: the error %v is of the class %q, want %q", c.Why, err, errors.Unwrap(fe), class)
	}
	msg := err.Error()
	if strings.ContainsAny(msg, "\n\r\x00") || len(msg) > 600 {
		t.Errorf("%s: the message is not one line: %q", c.Why, msg)
	}
	if !strings.HasPrefix(msg, name+": ") || !strings.Contains(msg, c.Says) {
		t.Errorf("%s: the message %q lacks the name %q or %q", c.Why, msg, name, c.Says)
	}
	if !c.Whole && (fe.Offset < 0 || !strings.Contains(msg, fmt.Sprintf("at byte %d: ", fe.Offset))) {
		t.Errorf("%s: the message %q does not say where", c.Why, msg)
	}
}
