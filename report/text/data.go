package text

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// notes says in at most n lines how far the figures can be trusted: problems first, then what is
// missing, and last, for which there is always room, what was verified, in one line for several devices.
func notes(r *analyze.Result, n, width int) []string {
	problems, missing, fine := r.Notes()
	if len(r.Devices) > 1 && len(fine) > 1 {
		sound := 0
		for i := range r.Devices {
			if c := &r.Devices[i].Timeline.Checks; c.Inconsistent() == 0 && c.Residual == 0 {
				sound++
			}
		}
		fine = []analyze.Note{{Text: fmt.Sprintf("%d of %d GPUs: %s.", sound, len(r.Devices), analyze.Verified(0, 0))}}
	}
	var end []string
	for _, q := range fine {
		end = append(end, noteLines(q.Text, width)...)
	}
	n -= len(end)
	var out []string
	all := slices.Concat(problems, missing)
	for i, q := range all {
		lines := noteLines(when(i < len(problems), "problem: ")+q.Text, width)
		if left := n - len(out); left < len(lines) || left == len(lines) && i < len(all)-1 {
			out = append(out, "... and "+units.Plural(len(all)-i, "more note")+", in the full report")
			break
		}
		out = append(out, lines...)
	}
	return append(out, end...)
}

// noteLines breaks a note into three lines at most.
func noteLines(s string, width int) []string {
	lines := wrap(chart.Plain(s), width-10)
	if len(lines) > 3 {
		lines = append(lines[:2:2], chart.Clip(lines[2], width-11)+"…")
	}
	for k := 1; k < len(lines); k++ {
		lines[k] = "  " + lines[k]
	}
	return lines
}

// data adds the notes.
func (d *doc) data(notes []string) {
	if len(notes) > 0 {
		d.gap()
		d.labeled("Data", texts(plain, notes, 0)...)
	}
}
