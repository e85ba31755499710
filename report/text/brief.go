package text

import (
	"strings"

	"github.com/snapana/snapana/report/internal/chart"
)

const (
	// briefLines is how many lines a brief answer takes at most, of any width.
	briefLines = 5
	// briefWidth is how many columns they have where nobody says how wide lines are: programs read them.
	briefWidth = 240
)

// brief is an answer in a few lines. Of each list what says most comes first; what there is no room for is left out as a
// whole, the last of each list first, and no fact is cut.
type brief struct {
	word, verdict string // the word may be empty
	why, figures  []string
	next, missing []string
}

// doc has the lines of a brief answer: verdict, reasons, figures, the next step and what is missing.
func (b *brief) doc(o Options) *doc {
	d := newDoc(o)
	if o.Width == 0 {
		d.width = briefWidth
	}
	parts := []struct {
		label string
		facts []string
	}{{"Why", b.why}, {"Figures", b.figures}, {"Next", b.next}, {"Missing", b.missing}}
	verdict := wrap(chart.Plain(strings.TrimSpace(strings.ToUpper(b.word)+"  "+b.verdict)), d.width)
	if len(verdict) > briefLines { // of names from the file
		verdict = append(verdict[:briefLines-1:briefLines-1], chart.Clip(verdict[briefLines-1], d.width-2)+" …")
	}
	lines := make([][]string, len(parts)) // as they are printed
	chosen := make([]string, len(parts))  // facts
	room := briefLines - len(verdict)
	longest := 0
	for _, p := range parts {
		longest = max(longest, len(p.facts))
	}
	for round := range longest { // first the first of each, what is to be done before the rest
		for _, k := range []int{2, 0, 1, 3} {
			if round >= len(parts[k].facts) {
				continue
			}
			facts := strings.TrimSpace(parts[k].facts[round])
			if before := chosen[k]; strings.HasSuffix(before, ".") {
				facts = before + " " + facts
			} else if before != "" {
				facts = before + "; " + facts
			}
			with := wrap(chart.Plain(facts), d.width-d.margin-1)
			take := len(with) - len(lines[k])
			if take <= room && (take == 0 || round == 0 || o.Width > 0) { // for programs a line each
				room -= take
				lines[k], chosen[k] = with, facts
			}
		}
	}
	d.margin++
	for i, l := range verdict {
		if head, rest, ok := strings.Cut(l, " "); i == 0 && ok && b.word != "" {
			d.lines = append(d.lines, d.paint(bold, head)+" "+rest)
			continue
		}
		d.lines = append(d.lines, l)
	}
	for k, p := range parts {
		d.labeled(p.label, texts(plain, lines[k])...)
	}
	return d
}
