package chart

import (
	"github.com/snapana/snapana/analyze/device/ledger"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// LedgerWords name the parts of a device's memory.
var LedgerWords = map[oomlog.Row]string{
	oomlog.RowFree:        "free on the device",
	ledger.RowDriver:      "kept by the driver",
	oomlog.RowOthers:      "other processes",
	oomlog.RowNonPyTorch:  "this process outside PyTorch's allocator: CUDA context, NCCL",
	oomlog.RowForeign:     "other processes and this one's non-PyTorch memory, not told apart",
	oomlog.RowAllocated:   "allocated in tensors",
	oomlog.RowUnallocated: "reserved by PyTorch but unallocated",
	ledger.RowReleasable:  "cached: whole segments, which empty_cache() returns",
	ledger.RowHard:        "cached: pieces between live blocks",
	ledger.RowSoft:        "cached: pieces at the ends of adjacent segments",
	ledger.RowStream:      "cached: of another stream, or a private pool",
	ledger.RowPending:     "freed, but other streams may still use it",
	oomlog.RowReserved:    "reserved by PyTorch",
	oomlog.RowResidual:    "residual",
}
