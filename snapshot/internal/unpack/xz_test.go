package unpack

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ulikunitz/xz"

	"github.com/snapana/snapana/fixtures/hostile"
	"github.com/snapana/snapana/snapshot"
)

// TestXzGuard passes whole files on unchanged, of several blocks, streams and padding between
// them, and finds a dictionary that is too large wherever it stands.
func TestXzGuard(t *testing.T) {
	text := strings.Repeat("a block of text, ", 9000)
	stream := func(config xz.WriterConfig) string {
		var b bytes.Buffer
		w, err := config.NewWriter(&b)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	blocks := stream(xz.WriterConfig{BlockSize: 10_000, DictCap: 1 << 16})
	plain := stream(xz.WriterConfig{CheckSum: xz.SHA256})
	unchecked := stream(xz.WriterConfig{NoCheckSum: true})
	large := ""
	for _, c := range hostile.All() {
		if c.Name == "xz-dictionary.pickle.xz" {
			large = string(c.Bytes())
		}
	}
	for name, data := range map[string]string{
		"one": plain, "unchecked": unchecked, "blocks": blocks, "streams": plain + blocks + unchecked,
		"padding": plain + "\x00\x00\x00\x00" + blocks + strings.Repeat("\x00", 8),
	} {
		for _, r := range []io.Reader{strings.NewReader(data), iotest.OneByteReader(strings.NewReader(data))} {
			if got, err := io.ReadAll(newXzGuard(r)); err != nil || string(got) != data {
				t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(data), err)
			}
		}
		if _, err := io.ReadAll(newXzGuard(strings.NewReader(data + large))); !errors.Is(err, snapshot.ErrLimit) {
			t.Errorf("%s, and then a large dictionary: %v", name, err)
		}
		unpacked, err := xz.NewReader(newXzGuard(strings.NewReader(data)))
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := io.ReadAll(unpacked)
		if err != nil || !bytes.HasPrefix(got, []byte(text)) || len(got)%len(text) != 0 {
			t.Errorf("%s: unpacks to %d bytes, %v", name, len(got), err)
		}
	}
	// A cut file gives all that there is, and an error or an end.
	for n := range len(plain) {
		got, err := io.ReadAll(newXzGuard(strings.NewReader(plain[:n])))
		if string(got) != plain[:n] || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d bytes: %d bytes, %v", n, len(got), err)
		}
	}
}
