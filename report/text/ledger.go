package text

import (
	"fmt"
	"io"

	"snapana/analyze/device/ledger"
	"snapana/analyze/units"
	"snapana/analyze/verdict"
	"snapana/report/internal/view"
	"snapana/snapshot/memstats"
)

var rowWords = map[memstats.Row]string{
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

// Ledger prints where a device's memory is, from the driver's total to PyTorch's blocks, and what
// is odd about it.
func Ledger(w io.Writer, l *ledger.Ledger, findings []verdict.Finding, o Options) error {
	p := newPrinter(w, o)
	p.deviceLedger(view.DeviceName(l.Device)+", by the driver", &l.Ledger)
	switch {
	case l.Guessed != 0:
		p.line(fmt.Sprintf("          Process %d is taken for this one: no other is large enough.", l.Guessed))
	case l.PID != 0:
		p.line(fmt.Sprintf("          This is process %d.", l.PID))
	}
	if l.Untold > 0 {
		p.line(fmt.Sprintf("          The driver does not tell the bytes of %s.", plural(l.Untold, "other process", "other processes")))
	}
	for i := range findings {
		p.line("")
		p.finding(&findings[i])
	}
	return p.w.Flush()
}

// deviceLedger prints the parts of a device's memory; they add up to its total.
func (p *printer) deviceLedger(name string, l *memstats.Ledger) {
	p.line(p.paint(bold, right(units.Bytes(l.Total), 10)+"  total of "+name))
	for _, r := range l.Rows {
		words := rowWords[r.Row]
		switch {
		case r.Row != memstats.RowResidual && r.Bytes < 0:
			words = "below 0: not all that PyTorch holds can be on the device"
		case r.Row != memstats.RowResidual || r.Bytes == 0 && l.Slack == 0:
		case -l.Slack <= r.Bytes && r.Bytes <= l.Slack:
			words = "residual, within the rounding of the message"
		default:
			words = "not accounted for"
		}
		p.line(right(units.Bytes(r.Bytes), 10) + right(units.Percent(r.Bytes, l.Total), 6) + " " +
			p.paint(cyan, bar(r.Bytes, l.Total, 10)) + "  " + view.Clip(words, p.width-30))
	}
}
