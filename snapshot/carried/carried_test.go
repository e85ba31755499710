package carried_test

import (
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/snapana/snapana/snapshot/carried"
)

func TestText(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "a", strings.Repeat("page ", 10_000)} {
		for _, embedded := range []string{text, string(z.EncodeAll([]byte(text), nil))} {
			if got := carried.Text(embedded); got != text {
				t.Errorf("%d bytes became %d", len(text), len(got))
			}
			if got := carried.Bytes(embedded); string(got) != text {
				t.Errorf("%d bytes became %d", len(text), len(got))
			}
		}
	}
}
