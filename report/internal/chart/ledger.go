package chart

import (
	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/oom"
)

// LedgerWords name the parts of a device's memory.
var LedgerWords = map[oom.Row]string{
	oom.RowFree:          "free on the device",
	device.RowDriver:     "kept by the driver",
	oom.RowOthers:        "other processes",
	oom.RowNonPyTorch:    "this process outside PyTorch's allocator: CUDA context, NCCL",
	oom.RowForeign:       "other processes and this one's non-PyTorch memory, not distinguishable",
	oom.RowAllocated:     "allocated in tensors",
	oom.RowUnallocated:   "reserved by PyTorch but unallocated",
	device.RowReleasable: "cached: whole segments, released by empty_cache()",
	device.RowHard:       "cached: pieces between live blocks",
	device.RowSoft:       "cached: pieces at the ends of adjacent segments",
	device.RowStream:     "cached: for another stream or a private pool",
	device.RowPending:    "freed, but other streams may still use it",
	oom.RowReserved:      "reserved by PyTorch",
	oom.RowResidual:      "residual",
}
