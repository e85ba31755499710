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

// TestUnfolds tells what torch's own convolutions work in from what cuDNN took on an H200.
func TestUnfolds(t *testing.T) {
	for _, c := range []struct {
		bytes, result int64
		want          bool
	}{
		{64 * 9 * 56 * 56 * 4, 8 * 64 * 56 * 56 * 4, true}, // 64 channels, 3 by 3
		{3 * 49 * 112 * 112 * 4, 2 * 64 * 112 * 112 * 4, true},
		{512 * 16 * 27 * 27 * 4, 2 * 27 * 27 * 4, true}, // one channel is left
		{33702400, 4194304, false}, {25313296, 12582912, false}, {2098176, 819200, false}, {3508975, 100352, false},
		{1, 0, true}, {0, 0, true},
	} {
		if got := kernel.Unfolds(c.bytes, c.result); got != c.want {
			t.Errorf("%d for a result of %d: %v", c.bytes, c.result, got)
		}
	}
}
