package text

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// notes says in at most n lines how far the figures can be trusted: problems first, then
// whether the books balance, then what is missing. Each takes three lines at most.
func notes(r *analyze.Result, n, width int) []string {
	var problems, fine, missing []string
	for _, q := range r.Quality {
		switch s := chart.Plain(q.Text); q.Level {
		case "problem":
			problems = append(problems, "problem: "+s)
		case "ok":
			fine = append(fine, s)
		default:
			missing = append(missing, s)
		}
	}
	if len(r.Devices) > 1 && len(fine) > 1 {
		sound := 0
		for i := range r.Devices {
			if c := &r.Devices[i].Timeline.Checks; c.Inconsistent() == 0 && c.Residual == 0 {
				sound++
			}
		}
		fine = []string{fmt.Sprintf("The books balance on %d of %d GPUs.", sound, len(r.Devices))}
	}
	var out []string
	all := slices.Concat(problems, fine, missing)
	for i, s := range all {
		lines := wrap(s, width-10)
		if len(lines) > 3 {
			lines = append(lines[:2:2], chart.Clip(lines[2], width-11)+"…")
		}
		if left := n - len(out); left < len(lines) || left == len(lines) && i < len(all)-1 {
			return append(out, "... and "+units.Plural(len(all)-i, "more note")+", in the full report")
		}
		for k, l := range lines {
			if k > 0 {
				l = "  " + l
			}
			out = append(out, l)
		}
	}
	return out
}

// data prints the notes.
func (p *printer) data(notes []string) {
	if len(notes) == 0 {
		return
	}
	p.line("")
	var lines []string
	for _, n := range notes {
		lines = append(lines, chart.Clip(n, p.width-8))
	}
	p.labeled("Data", lines)
}
