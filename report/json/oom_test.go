package json

import (
	"bytes"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
)

const oomLog = `[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total ` +
	`capacity of 1024.00 MiB of which 8.00 MiB is free. Including non-PyTorch memory, this process has 900.00 ` +
	`MiB memory in use. Process 7 has 17179869184.00 GiB memory in use. 1000.00 MiB allowed; Of the allocated ` +
	`memory 700.00 MiB is allocated by PyTorch, with 1.00 MiB allocated in private pools (e.g., CUDA Graphs), ` +
	`and 100.00 MiB is reserved by PyTorch but unallocated.
RuntimeError: NPU out of memory. Tried to allocate 22.00 MiB (NPU 0; 60.97 GiB total capacity; ` +
	`10.24 GiB already allocated; 10.24 GiB current active; 19.52 MiB free; 10.65 GiB reserved in total by PyTorch)
MPS backend out of memory (MPS allocated: 18.02 GB, other allocations: 107.10 MB, ` +
	`max allowed: 18.13 GB). Tried to allocate 4.50 MB on private pool.
`

func oomReport(t *testing.T, events ...oom.Event) *oom.Log {
	t.Helper()
	log, err := oom.ReadLog("train.log", strings.NewReader(oomLog))
	if err != nil {
		t.Fatal(err)
	}
	log.Join("snapshot.pickle", events)
	log.Explain(analyzetest.Failed(t).Devices[0].OOM)
	return log
}

func writeOOM(t *testing.T, r *oom.Log) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteOOM(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var oomEvent = oom.Event{Device: 1, Index: 9, Time: 17, Segment: 20 << 20, Free: 8 << 20, Reserved: 800 << 20,
	Allocated: 701 << 20, Site: "model.py:7 forward"}

func TestOOMGolden(t *testing.T) {
	golden.Check(t, "oom.json", writeOOM(t, oomReport(t, oomEvent)))
}

func TestOOMSchema(t *testing.T) {
	checkSchema(t, oomSchema, writeOOM(t, oomReport(t, oomEvent)), writeOOM(t, oomReport(t)))
}
