// Package text prints results for a terminal: a verdict that fits on one screen, and facts
// about a file, and for issues and chats as Markdown. Lines are 100 columns wide unless asked
// otherwise, from 80 to 120. Texts from the file are stripped of
// control characters, so that a file cannot drive the terminal.
package text

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/report/internal/chart"
)

// Bounds on the width of lines, in columns: tables need the least, and prose is hard to read
// beyond the most.
const (
	minWidth   = 80
	usualWidth = 100
	maxWidth   = 120
)

// Options choose how results are printed.
type Options struct {
	Color bool // use ANSI colors; the caller knows whether it writes to a terminal
	Width int  // columns of a line, 0 for the usual ones
	All   bool // everything, also where that is long
}

// printer collects lines and counts them.
type printer struct {
	w      *bufio.Writer
	color  bool
	width  int
	indent int // columns before labels
	margin int // columns for labels
	lines  int
}

func newPrinter(w io.Writer, o Options) *printer {
	return &printer{
		w: bufio.NewWriter(w), color: o.Color, margin: 8,
		width: min(max(cmp.Or(o.Width, usualWidth), minWidth), maxWidth),
	}
}

// line prints one line, which must hold no line break.
func (p *printer) line(s string) {
	p.w.WriteString(strings.TrimRight(s, " "))
	p.w.WriteByte('\n')
	p.lines++
}

func (p *printer) linef(format string, args ...any) { p.line(fmt.Sprintf(format, args...)) }

// ANSI attributes.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (p *printer) paint(attr, s string) string {
	if !p.color || s == "" {
		return s
	}
	return "\x1b[" + attr + "m" + s + "\x1b[0m"
}

// tones are the colors of statuses.
var tones = [...]string{finding.Bad: red, finding.Warn: yellow, finding.Neutral: cyan, finding.Good: green, finding.None: dim}

// wrap breaks a text into lines of at most n columns at spaces; longer words are cut.
func wrap(s string, n int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(s) {
		if utf8.RuneCountInString(word) > n {
			if line != "" {
				out, line = append(out, line), ""
			}
			r := []rune(word)
			for ; len(r) > n; r = r[n:] {
				out = append(out, string(r[:n]))
			}
			word = string(r)
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= n:
			line += " " + word
		default:
			out, line = append(out, line), word
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

// section prints texts under a label in the margin, each wrapped, at most limit lines.
func (p *printer) section(label string, texts []string, limit int) {
	lines := p.sectionLines(texts)
	if len(lines) > limit {
		lines = append(lines[:limit-1:limit-1], fmt.Sprintf("... and %d more lines, in the full report", len(lines)-limit+1))
	}
	p.labeled(label, lines)
}

// labeled prints lines, the first of them with a label in the margin.
func (p *printer) labeled(label string, lines []string) {
	for _, l := range lines {
		p.line(strings.Repeat(" ", p.indent) + p.paint(bold, pad(label, p.margin)) + l)
		label = ""
	}
}

// headline prints a text behind a word of a tone, in at most so many lines.
func (p *printer) headline(word string, tone finding.Tone, text string, most int) {
	lines := wrap(text, p.width-len(word)-2)
	if len(lines) > most {
		lines = append(lines[:most-1:most-1], chart.Clip(lines[most-1], p.width-len(word)-3)+"…")
	}
	for i, l := range lines {
		head := strings.Repeat(" ", len(word))
		if i == 0 {
			head = p.paint(bold+";"+tones[tone], word)
		}
		p.line(head + "  " + p.paint(bold, l))
	}
}

// sectionLines breaks the texts of a section into lines.
func (p *printer) sectionLines(texts []string) []string {
	var lines []string
	for _, t := range texts {
		for i, l := range wrap(t, p.width-10) {
			if i > 0 && len(texts) > 1 {
				l = "  " + l
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// pad fills s with spaces to n columns.
func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 0))
}

// right is pad on the left side.
func right(s string, n int) string {
	return strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 0)) + s
}

// bar draws part of whole as a bar of n columns.
func bar(part, whole int64, n int) string {
	if whole <= 0 || part <= 0 {
		return strings.Repeat("·", n)
	}
	full := min(int(float64(part)/float64(whole)*float64(n)+0.5), n)
	return strings.Repeat("█", full) + strings.Repeat("·", n-full)
}
