package unpack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/snapana/snapana/fixtures/hostile"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/internal/unpack"
)

// TestXz unpacks files of several blocks and streams with padding between them, tells cut ones, and refuses a
// dictionary that is too large wherever it stands.
func TestXz(t *testing.T) {
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
	unpacked := func(data string) (got []byte, err error) {
		err = unpack.Read(context.Background(), strings.NewReader(data), "a.xz", unpack.Options{}, func(in *unpack.Input) error {
			got, err = io.ReadAll(in.R)
			return err
		})
		return got, err
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
	for name, c := range map[string]struct {
		data  string
		times int
	}{
		"one": {plain, 1}, "unchecked": {unchecked, 1}, "blocks": {blocks, 1}, "streams": {plain + blocks + unchecked, 3},
		"padding": {plain + "\x00\x00\x00\x00" + blocks + strings.Repeat("\x00", 8), 2},
	} {
		if got, err := unpacked(c.data); err != nil || string(got) != strings.Repeat(text, c.times) {
			t.Errorf("%s: unpacks to %d bytes, %v", name, len(got), err)
		}
		if _, err := unpacked(c.data + large); !errors.Is(err, snapshot.ErrLimit) {
			t.Errorf("%s, and then a large dictionary: %v", name, err)
		}
	}
	for n := 12; n < len(plain); n++ {
		_, err := unpacked(plain[:n])
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, snapshot.ErrTruncated) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(plain), err)
		}
	}
}
