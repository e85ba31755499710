package view

import (
	"github.com/snapana/snapana/analyze/device/ledger"
	"github.com/snapana/snapana/snapshot/memstats"
)

// LedgerWords name the parts of a device's memory.
var LedgerWords = map[memstats.Row]string{
	memstats.RowFree:        "free on the device",
	ledger.RowDriver:        "kept by the driver",
	memstats.RowOthers:      "other processes",
	memstats.RowNonPyTorch:  "this process outside PyTorch's allocator: CUDA context, NCCL",
	memstats.RowForeign:     "other processes and this one's non-PyTorch memory, not told apart",
	memstats.RowAllocated:   "allocated in tensors",
	memstats.RowUnallocated: "reserved by PyTorch but unallocated",
	ledger.RowReleasable:    "cached: whole segments, which empty_cache() returns",
	ledger.RowHard:          "cached: pieces between live blocks",
	ledger.RowSoft:          "cached: pieces at the ends of adjacent segments",
	ledger.RowStream:        "cached: of another stream, or a private pool",
	ledger.RowPending:       "freed, but other streams may still use it",
	memstats.RowReserved:    "reserved by PyTorch",
	memstats.RowResidual:    "residual",
}
