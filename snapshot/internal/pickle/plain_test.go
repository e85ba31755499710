package pickle

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/snapshot"
	data "github.com/snapana/snapana/snapshot/internal/plain"
)

// TestDecodePlain reads data that is no snapshot.
func TestDecodePlain(t *testing.T) {
	// {"a": [1, (2, 3), None], (0, 1): {"b": True}, 7: 0.5}, as Python writes it in protocol 2.
	in := "\x80\x02}(X\x01\x00\x00\x00a](K\x01K\x02K\x03\x86NeK\x00K\x01\x86}" +
		"X\x01\x00\x00\x00b\x88sK\x07G\x3f\xe0\x00\x00\x00\x00\x00\x00u.tail"
	v, info, err := DecodePlain(strings.NewReader(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if info.Bytes != int64(len(in)-len("tail")) || info.Protocol != 2 {
		t.Errorf("%+v", info)
	}
	a, pool, seven := item(&v, "a"), item(&v, "0_1"), item(&v, "7")
	if a == nil || pool == nil || seven == nil {
		t.Fatalf("%+v", v)
	}
	b := item(pool, "b")
	if len(a.Items) != 3 || a.Items[0].Int != 1 || a.Items[1].Items[1].Int != 3 || a.Items[2].Kind != data.Nil ||
		b == nil || b.Int != 1 || seven.Float != 0.5 {
		t.Errorf("%+v", v)
	}
}

// item is the value of a Map's key, nil for none.
func item(v *data.Value, key string) *data.Value {
	if i := slices.Index(v.Keys, key); i >= 0 {
		return &v.Items[i]
	}
	return nil
}

// TestDecodePlainLimits refuses what would not fit into memory, and what is no plain data.
func TestDecodePlainLimits(t *testing.T) {
	sharing := "\x80\x02]q\x000" // 40 lists, each of which holds the one before it twice
	for i := range 40 {
		sharing += "](h" + string(rune(i)) + "h" + string(rune(i)) + "eq" + string(rune(i+1)) + "0"
	}
	for name, c := range map[string]struct {
		in    string
		class error
	}{
		"sharing":  {sharing + "h\x28.", snapshot.ErrLimit},
		"nesting":  {"\x80\x02" + strings.Repeat("(", 200) + strings.Repeat("t", 200) + ".", snapshot.ErrLimit},
		"cut":      {"\x80\x02}(X\x01\x00", snapshot.ErrTruncated},
		"code":     {"\x80\x02cos\nsystem\n(tR.", snapshot.ErrRefused},
		"snapshot": {"\x80\x02}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00device_traces]u.", snapshot.ErrSnapshot},
	} {
		if _, _, err := DecodePlain(strings.NewReader(c.in), Options{}); !errors.Is(err, c.class) {
			t.Errorf("%s: %v, want %v", name, err, c.class)
		}
	}
}
