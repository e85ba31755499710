package load

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// TestStop cancels the reading after a first piece, of each container: it ends with the cancellation,
// not with a part of the snapshot, which Partial would keep of a damaged file.
func TestStop(t *testing.T) {
	data, err := os.ReadFile("../../fixtures/healthy.pickle")
	if err != nil {
		t.Fatal(err)
	}
	plain := string(data)
	for name, packed := range map[string]string{
		"pickle": plain, "JSON": `{"segments": [` + strings.Repeat(`{"total_size": 1},`, 1<<17), "gzip": gz(t, plain),
		"zstd": zst(t, plain),
		"xz":   xzd(t, plain), "zip": zipped(t, "x.pickle", plain), "HTML": plotPage(plain),
		"text": strings.Repeat("x", 1<<20),
	} {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := Read(ctx, &stopping{strings.NewReader(packed), cancel}, "x", Options{Partial: true})
		if s != nil || !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "read x: ") {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// stopping cancels once something is read.
type stopping struct {
	r      io.Reader
	cancel func()
}

func (s *stopping) Read(p []byte) (int, error) {
	n, err := s.r.Read(p[:min(len(p), 8<<10)])
	s.cancel()
	return n, err
}
