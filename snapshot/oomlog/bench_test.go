package oomlog

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// logs are texts without messages, of the kinds that are long in practice.
var logs = map[string]string{
	"progress": "2024-05-01 12:00:00,123 INFO [rank3] epoch 1 step 1234 loss 2.3456 lr 1e-4 grad_norm 0.98 tokens/s " +
		"12345.6\n",
	"memory": "2024-05-01 12:00:00 - mmdet - INFO - Epoch [1][50/1000] lr: 1e-3, eta: 3:00:00, time: 0.62 memory: " +
		"12345, loss: 0.5 GPU memory used\n",
	"hostile": "out of memory total capacity ALLOC_FAILED OutOfMemoryError: cudaErrorMemoryAllocation ",
}

func BenchmarkScan(b *testing.B) {
	for name, line := range logs {
		b.Run(name, func(b *testing.B) {
			data := []byte(strings.Repeat(line, (8<<20)/len(line)))
			r := bytes.NewReader(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r.Seek(0, io.SeekStart)
				if err := Scan(r, func(m Message) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
