package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Bounds on a summary in Markdown: its lines, and the texts in it.
const (
	maxMarkdown = 40
	maxSentence = 400 // runes
	maxCode     = 120 // runes of a name
)

// rooms go from generous to narrow: notes are cut first, then stacks, then reasons and steps.
var rooms = []room{{5, 5, 5}, {5, 3, 5}, {5, 2, 4}, {4, 2, 3}, {3, 2, 3}}

// Markdown prints the outcome of an analysis for an issue or a chat: what Verdict prints, in at
// most 40 lines. Names from the file stand in code spans, where nothing is a link, a mention
// or HTML; in sentences what could be is escaped.
func Markdown(out io.Writer, r *analyze.Result) error {
	var text string
	for _, n := range rooms {
		v := newOutcome(r, Options{})
		v.title()
		v.advice(n.sentences, n.sentences)
		v.below(n)
		if text = strings.Join(v.marks, "\n\n") + "\n"; strings.Count(text, "\n") <= maxMarkdown {
			break
		}
	}
	_, err := io.WriteString(out, text)
	return err
}

// mark adds what only Markdown shows, unless it is "".
func (d *doc) mark(s string) {
	if s != "" {
		d.marks = append(d.marks, s)
	}
}

// bullets adds a list of at most so many texts for Markdown. The last ones are never left out.
func (d *doc) bullets(head, bullet string, texts, last []string, most int) {
	if most = max(most-len(last), 1); len(texts) > most {
		texts = append(texts[:most-1:most-1], units.Count(len(texts)-most+1)+" more in the full report")
	}
	if texts = slices.Concat(texts, last); len(texts) == 0 {
		return
	}
	out := "**" + head + "**\n"
	for i, s := range texts {
		out += "\n" + strings.ReplaceAll(bullet, "%d", fmt.Sprint(i+1)) + prose(s)
	}
	d.mark(out)
}

// markTable adds a table for Markdown, whose cells stand as they are.
func (d *doc) markTable(cols []column, rows [][]any) {
	head, align := "|", "|"
	for _, c := range cols {
		head += " " + c.head + " |"
		align += map[bool]string{true: "---:|", false: "---|"}[c.width > 0]
	}
	out := head + "\n" + align
	for _, r := range rows {
		out += "\n|"
		for _, c := range r {
			out += fmt.Sprintf(" %v |", c)
		}
	}
	d.mark(out)
}

// code writes a name as a code span that cannot end early, also within a table, whose cells
// end at any bar that is not escaped.
func code(name string) string {
	name = chart.ClipLeft(oneSpaced(name), maxCode)
	if name == "" {
		return "(no name)"
	}
	run, longest := 0, 0
	for _, r := range name {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		name = " " + name + " "
	}
	return fence + strings.ReplaceAll(name, "|", `\|`) + fence
}

// prose writes a sentence so that no part of it is markup, a link or a mention.
func prose(s string) string {
	s = chart.Clip(oneSpaced(s), maxSentence)
	var b strings.Builder
	letter := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z')
	}
	const gap = "\u200b" // a space without width
	for i, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
			continue
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '>':
			b.WriteString("&gt;")
			continue
		case strings.ContainsRune("\\`*[]|~$", r), r == '#' && !letter(i-1), r == '!' && strings.HasPrefix(s[i:], "!["),
			r == '_' && !(letter(i-1) && letter(i+1)), i == 0 && (r == '-' || r == '+' || r == '='):
			b.WriteByte('\\')
		case (r == '.' || r == ')') && i > 0 && strings.Trim(s[:i], "0123456789") == "" &&
			(i+1 == len(s) || s[i+1] == ' '): // a numbered list
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		switch {
		case r == '@', r == '#', r == ':' && strings.HasPrefix(s[i:], "://"),
			r == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"):
			b.WriteString(gap)
		}
	}
	return b.String()
}

// oneSpaced puts a text onto one line.
func oneSpaced(s string) string { return strings.Join(strings.Fields(chart.Plain(s)), " ") }
