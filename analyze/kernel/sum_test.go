package kernel_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/kernel"
)

// TestSumBuffer compares with what torch 2.15 allocated to sum matrices on a device of 108 multiprocessors.
func TestSumBuffer(t *testing.T) {
	for _, c := range []struct{ rows, columns, bytes, semaphores int64 }{
		{512, 256, 0, 0}, {1024, 256, 2097152, 8}, {2048, 256, 4194304, 8}, {1024, 768, 6291456, 24},
		{1 << 20, 0, 0, 0}, {0, 256, 0, 0},
		{1024, 5000, 40960000, 160}, {2048, 5000, 81920000, 160}, {1024, 512, 4194304, 16}, {1024, 3000, 24576000, 96},
	} {
		if b, s := kernel.GPUs(false)[0].SumBuffer(c.rows, c.columns); b != c.bytes || s != c.semaphores {
			t.Errorf("%d rows of %d: %d and %d, want %d and %d", c.rows, c.columns, b, s, c.bytes, c.semaphores)
		}
	}
}
