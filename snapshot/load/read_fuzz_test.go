package load_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/hostile"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// pocket is a writer that fails when too much comes.
type pocket struct{ data []byte }

func (s *pocket) Write(p []byte) (int, error) {
	if len(s.data)+len(p) > 4<<10 {
		return 0, io.ErrShortWrite
	}
	s.data = append(s.data, p...)
	return len(p), nil
}

func tinySnapshots(f *testing.F) (all [][]byte) {
	for i, shape := range build.Shapes() {
		o := shape.Options
		o.Events, o.Live, o.Stacks = 12, 4, 3
		var b bytes.Buffer
		if err := build.Random(uint64(i), o).Write(&b, pickler.Options{Protocol: i % 6}); err != nil {
			f.Fatal(err)
		}
		all = append(all, b.Bytes())
	}
	return all
}

func pageOf(data []byte) []byte {
	return []byte(`<!DOCTYPE html><script>const local_files = [{"name": "snapshot.pickle", "base64": "` +
		base64.StdEncoding.EncodeToString(data) + `"}]`)
}

// FuzzRead reads anything: pickles, JSON, pages, archives.
func FuzzRead(f *testing.F) {
	for i, data := range tinySnapshots(f) {
		var b bytes.Buffer
		var w io.WriteCloser
		var err error
		switch i % 4 {
		case 0:
			w = gzip.NewWriter(&b)
		case 1:
			w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		case 2:
			w, err = xz.NewWriter(&b)
		default:
			f.Add(pageOf(data))
			f.Add(data)
			continue
		}
		if err == nil {
			_, err = w.Write(data)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	for _, c := range hostile.All() {
		var b pocket
		if c.Write(&b) == nil {
			f.Add(b.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { readAll(t, data) })
}

// FuzzHTML reads pages only: what is before the first snapshot and around it varies.
func FuzzHTML(f *testing.F) {
	f.Add([]byte(""))
	for i, data := range tinySnapshots(f) {
		page := pageOf(data)
		if i%3 == 0 {
			page = append(page, pageOf(data)...)
		}
		f.Add(page)
	}
	f.Add([]byte(`{"base64" : "` + strings.Repeat(" ", 70000) + `"}`))
	f.Add([]byte(strings.Repeat(`"base64"`, 9000)))
	f.Add([]byte(`"suffix_table" "base64": "gARdLg=="`))
	f.Fuzz(func(t *testing.T, data []byte) { readAll(t, append([]byte("<html>"), data...)) })
}

// readAll reads data as the user might: it must not panic, and agree with itself whatever the
// sizes of the reads.
func readAll(t *testing.T, data []byte) {
	opt := load.Options{MaxBytes: 1 << 20}
	whole := result(t, opt, bytes.NewReader(data))
	if got := result(t, opt, iotest.HalfReader(bytes.NewReader(data))); got != whole {
		t.Errorf("small reads: %s, want %s", got, whole)
	}
	opt.Partial = true
	result(t, opt, bytes.NewReader(data))
	opt.Index = 1
	result(t, opt, bytes.NewReader(data))
}

func result(t *testing.T, opt load.Options, r io.Reader) string {
	t.Helper()
	s, err := load.Read(t.Context(), r, "dir/name", opt)
	if err != nil {
		var fe *snapshot.FormatError
		if !errors.As(err, &fe) {
			t.Fatalf("the error %v (%T) is not a FormatError", err, err)
		}
		msg := err.Error()
		if s != nil || !strings.HasPrefix(msg, "dir/name: ") || strings.ContainsAny(msg, "\n\r") {
			t.Errorf("the error %q, snapshot %v", msg, s != nil)
		}
		return msg
	}
	if s == nil || s.Partial != nil && !opt.Partial || len(s.Container) == 0 || s.Name != "name" {
		t.Fatalf("a bad snapshot: %+v", s)
	}
	events := 0
	for _, tr := range s.Traces {
		events += tr.Len()
	}
	if s.Traces != nil && len(s.Traces) < s.NumDevices() {
		t.Errorf("%d traces for %d devices", len(s.Traces), s.NumDevices())
	}
	return strings.Join(s.Container, " > ") + " " + strings.Join(s.Missing, "; ") + " " + s.Writer.Text + " " +
		strings.Repeat(".", events%50+len(s.Blocks)%50)
}
