package units_test

import (
	"math"
	"testing"

	"github.com/snapana/snapana/analyze/units"
)

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		n    int64
		want string
	}{
		{0, "0 B"}, {1023, "1023 B"}, {1024, "1.00 KiB"}, {1536, "1.50 KiB"}, {-2048, "-2.00 KiB"},
		{10<<20 - 1, "10.0 MiB"}, {1<<30 - 1, "1.00 GiB"}, {999 << 20, "999 MiB"}, {1000 << 20, "1000 MiB"},
		{66571993088, "62.0 GiB"}, {math.MaxInt64, "8.00 EiB"}, {math.MinInt64, "-8.00 EiB"},
	} {
		if got := units.Bytes(c.n); got != c.want {
			t.Errorf("Bytes(%d) = %q, want %q", c.n, got, c.want)
		}
	}
}

func TestCountPercentMicros(t *testing.T) {
	for got, want := range map[string]string{
		units.Count(0):           "0",
		units.Count(-1234):       "-1\u202f234",
		units.Count(1300000):     "1\u202f300\u202f000",
		units.Percent(1, 0):      "-",
		units.Percent(1, 3):      "33%",
		units.Percent(1, 200):    "0.5%",
		units.Micros(83):         "83 µs",
		units.Micros(1200):       "1.20 ms",
		units.Micros(1_500_000):  "1.50 s",
		units.Micros(90_000_000): "1m30s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for got, want := range map[string]string{
		units.Plural(0, "block"):             "0 blocks",
		units.Plural(1, "retry"):             "1 retry",
		units.Plural(int64(2), "retry"):      "2 retries",
		units.Plural(2, "other process"):     "2 other processes",
		units.Plural(3, "batch"):             "3 batches",
		units.Plural(1, "child", "children"): "1 child",
		units.Plural(2, "child", "children"): "2 children",
		units.Plural(2000, "event"):          "2\u202f000 events",
		units.Times(0):                       "0 times",
		units.Times(1):                       "once",
		units.Times(int64(1000)):             "1\u202f000 times",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
