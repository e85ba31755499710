package text

import (
	"fmt"
	"io"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Accounts prints where the memory of each device is, from its total to PyTorch's blocks, or why
// that cannot be said.
func Accounts(w io.Writer, r *analyze.Result, o Options) error {
	d := newDoc(o)
	for i := range r.Devices {
		a, name := r.Devices[i].Account, chart.DeviceName(r.Devices[i].Timeline.Device)
		if a == nil {
			continue
		}
		d.gap()
		l := a.Ledger
		if l == nil {
			d.paragraph(plain.of(name+" has no ledger: "+a.Why), 0, 0)
			continue
		}
		d.deviceLedger(name+", as the driver reports it", &l.Ledger)
		switch {
		case l.Guessed != 0:
			d.linef("          Assumed to be process %d: no other is large enough.", l.Guessed)
		case l.PID != 0:
			d.linef("          This is process %d.", l.PID)
		}
		if l.Untold > 0 {
			d.linef("          The driver does not report how much %s.",
				units.Plural(l.Untold, "other process uses", "other processes use"))
		}
	}
	return d.print(w)
}

// deviceLedger adds the parts of a device's memory; they add up to its total.
func (d *doc) deviceLedger(name string, l *oom.Ledger) {
	d.line(bold.of(fmt.Sprintf("%10s  total of %s", units.Size(l.Total), name)))
	t := d.table(bold, append(shareColumns, num("", 1))...)
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
		t.share(r.Bytes, l.Total, words)
	}
}

// fits answers in a table in which circumstances the request that failed would have been served.
// Settings are one line: `snapana whatif` has a row for each. That no piece was large enough, and
// the device had too little, stands in the reasons already, and what the run has nothing of needs no line.
func (d *doc) fits(r *oom.Report) {
	d.line(bold.of(fmt.Sprintf("Would %s have fit?", units.Bytes(r.Requested))))
	t := d.table(bold, column{sep: "  ", width: -5}, num("", 9), rest(""))
	answers := map[oom.Fits]cell{oom.Yes: green.of("yes"), oom.No: red.of("no"), oom.NotKnown: dim.of("?")}
	answer := func(fits oom.Fits, what string, bytes int64, note string) {
		c, size := answers[fits], ""
		if bytes != oom.Unknown {
			size = units.Bytes(bytes)
		}
		t.row(c, size, what, dim.cut(when(note != "", ": %s", note)))
	}
	settings, serve := 0, ""
	for _, a := range r.Answers {
		if (a.ID == "piece" || a.ID == "segment") && a.Fits != oom.Yes || a.Fits == oom.None {
			continue
		}
		if a.ID != "setting" {
			answer(a.Fits, a.What, a.Bytes, chart.AnswerNote(&a))
			continue
		}
		settings++
		if a.Fits == oom.Yes && serve == "" {
			serve = a.What
		}
	}
	switch {
	case settings == 0:
		answer(oom.NotKnown, "under other allocator settings", oom.Unknown, "the run cannot be replayed")
	case serve == "":
		answer(oom.No, fmt.Sprintf("under any of %d allocator settings", settings), oom.Unknown, "replayed")
	default:
		answer(oom.Yes, serve, oom.Unknown, "replayed")
	}
}
