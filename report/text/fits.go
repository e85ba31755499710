package text

import (
	"fmt"

	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// fits answers in a table in which circumstances the request that failed would have been served.
// Settings are one line: `snapana whatif` has a row for each. That no piece was large enough, and
// the device had too little, stands in the reasons already, and what the run has nothing of needs no line.
func (p *printer) fits(r *oom.Report) {
	p.line(p.paint(bold, fmt.Sprintf("Would %s have fit?", units.Bytes(r.Requested))))
	settings, serve := 0, ""
	for _, a := range r.Answers {
		if (a.ID == "piece" || a.ID == "segment") && a.Fits != oom.Yes || a.Fits == oom.None {
			continue
		}
		if a.ID != "setting" {
			p.answer(a.Fits, a.What, a.Bytes, chart.AnswerNote(&a))
			continue
		}
		settings++
		if a.Fits == oom.Yes && serve == "" {
			serve = a.What
		}
	}
	switch {
	case settings == 0:
		p.answer(oom.NotKnown, "under other allocator settings", oom.Unknown, "the run cannot be replayed")
	case serve == "":
		p.answer(oom.No, fmt.Sprintf("under any of %d allocator settings", settings), oom.Unknown, "replayed")
	default:
		p.answer(oom.Yes, serve, oom.Unknown, "replayed")
	}
}

var fitWords = map[oom.Fits]string{oom.Yes: "yes", oom.No: "no", oom.NotKnown: "?"}

func (p *printer) answer(fits oom.Fits, what string, bytes int64, note string) {
	size := ""
	if bytes != oom.Unknown {
		size = units.Bytes(bytes)
	}
	color := dim
	switch fits {
	case oom.Yes:
		color = green
	case oom.No:
		color = red
	}
	head := "  " + p.paint(color, pad(fitWords[fits], 5)) + right(size, 9) + "  " + what
	if note != "" {
		head += p.paint(dim, ": "+chart.Clip(chart.Plain(note), max(p.width-20-len([]rune(what)), 8)))
	}
	p.line(head)
}
