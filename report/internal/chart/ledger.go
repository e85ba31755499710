package chart

import (
	"github.com/snapana/snapana/analyze/device/ledger"
	"github.com/snapana/snapana/analyze/oom"
)

// LedgerWords name the parts of a device's memory.
var LedgerWords = map[oom.Row]string{
	oom.RowFree:          "free on the device",
	ledger.RowDriver:     "kept by the driver",
	oom.RowOthers:        "other processes",
	oom.RowNonPyTorch:    "this process outside PyTorch's allocator: CUDA context, NCCL",
	oom.RowForeign:       "other processes and this one's non-PyTorch memory, not told apart",
	oom.RowAllocated:     "allocated in tensors",
	oom.RowUnallocated:   "reserved by PyTorch but unallocated",
	ledger.RowReleasable: "cached: whole segments, which empty_cache() returns",
	ledger.RowHard:       "cached: pieces between live blocks",
	ledger.RowSoft:       "cached: pieces at the ends of adjacent segments",
	ledger.RowStream:     "cached: of another stream, or a private pool",
	ledger.RowPending:    "freed, but other streams may still use it",
	oom.RowReserved:      "reserved by PyTorch",
	oom.RowResidual:      "residual",
}
