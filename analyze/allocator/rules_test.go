package allocator

import "testing"

// SPEC.md 5.3 has some of the vectors.
func TestRoundSize(t *testing.T) {
	all := func(div int64) *Conf {
		c := Default()
		for i := range c.Roundup {
			c.Roundup[i] = div
		}
		return &c
	}
	for _, c := range []struct{ n, div, want int64 }{
		{0, 0, 512}, {1, 0, 512}, {512, 0, 512}, {513, 0, 1024}, {mib + 1, 0, mib + 512},
		{1200, 4, 1536}, {2049, 4, 2560}, {3000, 4, 3072}, {4097, 8, 4608}, {5000, 8, 5120},
		{mib + 1, 4, 1310720}, {700 * mib, 8, 704 * mib}, {1100 * mib, 4, 1280 * mib},
		{1300 * mib, 4, 1536 * mib}, {4096, 4, 4096}, {5000, 1, 5120},
	} {
		if got := all(c.div).Round(c.n); got != c.want {
			t.Errorf("Round(%d, %d divisions) = %d, want %d", c.n, c.div, got, c.want)
		}
	}
	// Slots are by size: 256 MiB has no divisions here, 1 GiB has four.
	four := Conf{Roundup: Roundup{10: 4}}
	if got := four.Round(300 * mib); got != 300*mib {
		t.Errorf("300 MiB without divisions: %d", got)
	}
	if got := four.Round(1100 * mib); got != 1280*mib {
		t.Errorf("1100 MiB with four divisions: %d", got)
	}
	if got := all(8).Round(MaxRequest); got != MaxRequest {
		t.Errorf("largest request: %d", got)
	}
}

func TestSplits(t *testing.T) {
	plain, limited, expandable := Default(), Default(), Default()
	limited.MaxSplit, expandable.Expandable = 64<<20, true
	for _, c := range []struct {
		name string
		got  bool
		want bool
	}{
		{"small, quantum left", plain.Splits(1024, 512, true), true},
		{"expandable, quantum left", expandable.Splits(2<<20, 512, false), true},
		{"small, nothing left", plain.Splits(1024, 0, true), false},
		{"large, 1 MiB left", plain.Splits(2<<20, 1<<20, false), false},
		{"large, more left", plain.Splits(2<<20, 1<<20+512, false), true},
		{"large, at max_split_size", limited.Splits(64<<20, 32<<20, false), false},
		{"large, below max_split_size", limited.Splits(63<<20, 32<<20, false), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v", c.name, c.got)
		}
	}
}

func TestSegmentSize(t *testing.T) {
	const mib = 1 << 20
	c := Default()
	for request, want := range map[int64]int64{
		512: 2 * mib, mib: 2 * mib, mib + 512: 20 * mib, 10*mib - 512: 20 * mib, 10 * mib: 10 * mib,
		10*mib + 512: 12 * mib,
		512 * mib:    512 * mib,
	} {
		if got := c.SegmentSize(request); got != want {
			t.Errorf("%d: %d, want %d", request, got, want)
		}
	}
}
