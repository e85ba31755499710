package text

import (
	"fmt"
	"io"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Accounts prints where the memory of each device is, from its total to PyTorch's blocks, or why
// that cannot be said.
func Accounts(w io.Writer, r *analyze.Result, o Options) error {
	p := newPrinter(w, o)
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Account == nil {
			continue
		}
		p.line("")
		if l := d.Account.Ledger; l != nil {
			p.account(l, chart.DeviceName(d.Timeline.Device))
			continue
		}
		for _, l := range wrap(chart.Plain(chart.DeviceName(d.Timeline.Device)+" has no ledger: "+d.Account.Why), p.width) {
			p.line(l)
		}
	}
	return p.w.Flush()
}

func (p *printer) account(l *device.Ledger, name string) {
	p.deviceLedger(name+", as the driver reports it", &l.Ledger)
	switch {
	case l.Guessed != 0:
		p.line(fmt.Sprintf("          Assumed to be process %d: no other is large enough.", l.Guessed))
	case l.PID != 0:
		p.line(fmt.Sprintf("          This is process %d.", l.PID))
	}
	if l.Untold > 0 {
		p.line(fmt.Sprintf("          The driver does not report how much %s.", units.Plural(l.Untold, "other process uses", "other processes use")))
	}
}

// deviceLedger prints the parts of a device's memory; they add up to its total.
func (p *printer) deviceLedger(name string, l *oom.Ledger) {
	p.line(p.paint(bold, right(units.Bytes(l.Total), 10)+"  total of "+name))
	for _, r := range l.Rows {
		words := chart.LedgerWords[r.Row]
		switch {
		case r.Row != oom.RowResidual && r.Bytes < 0:
			words = "below 0: not all that PyTorch reserved can be on the device"
		case r.Row != oom.RowResidual || r.Bytes == 0 && l.Slack == 0:
		case -l.Slack <= r.Bytes && r.Bytes <= l.Slack:
			words = "residual, within the rounding of the message"
		default:
			words = "unaccounted for"
		}
		p.line(right(units.Bytes(r.Bytes), 10) + right(units.Percent(r.Bytes, l.Total), 6) + " " +
			p.paint(cyan, bar(r.Bytes, l.Total, 10)) + "  " + chart.Clip(words, p.width-30))
	}
}
