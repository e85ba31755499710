package text

import (
	"html"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/internal/chart"
)

// Bounds on the texts in Markdown, in runes: sentences and names.
const (
	maxSentence = 400
	maxCode     = 120
)

// Markdown prints what Verdict prints for an issue or a chat, in at most 38 lines that are not empty, and Phases. Names
// from the file stand in code spans, where nothing is a link, a mention or HTML; in sentences what could be
// is escaped.
func Markdown(w io.Writer, r *analyze.Result) error {
	d := newDoc(Options{})
	d.markdown, d.heads, d.width = true, 2, 1<<20
	outcomeOf(r, d)
	d.allPhases(r)
	return d.print(w)
}

// block adds lines with an empty one before them, if they say anything.
func (d *doc) block(lines ...string) {
	if lines[0] == "" {
		return
	}
	if len(d.lines) > 0 {
		d.lines = append(d.lines, "")
	}
	d.lines = append(d.lines, lines...)
}

// bullets adds a list, or one text behind its label.
func (d *doc) bullets(label string, items [][]cell) {
	switch len(items) {
	case 0:
		return
	case 1:
		d.block("**" + label + ":** " + markup(items[0]))
		return
	}
	out := []string{"**" + label + "**", ""}
	for i, item := range items {
		bullet := "- "
		if text, ok := strings.CutPrefix(item[0].text, step(i)); ok {
			bullet, item[0].text = step(i), text
		}
		out = append(out, bullet+markup(item))
	}
	d.block(out...)
}

// code adds lines of a program, in Markdown as a block that no text in it can end.
func (d *doc) code(label string, a attr, lines []string) {
	if len(lines) == 0 {
		return
	}
	if !d.markdown {
		room := d.width - d.indent - d.margin
		if lines := d.python(a, lines, room); !overlong(lines, room) {
			d.labeled(label, lines...)
			return
		}
		d.labeled(label, nil) // and the code below it, from the left
		for _, l := range d.python(a, lines, d.width) {
			d.line(l[0])
		}
		return
	}
	out := []string{"**" + label + "**", ""}
	for _, l := range lines {
		out = append(out, "    "+chart.Plain(l))
	}
	d.block(out...)
}

// overlong reports whether a line does not fit.
func overlong(lines [][]cell, room int) bool {
	return slices.ContainsFunc(lines, func(l []cell) bool { return chart.Width(l[0].text) > room })
}

// python are lines of code, which are never cut: a comment that there is no room for goes below.
func (d *doc) python(a attr, lines []string, room int) [][]cell {
	var out [][]cell
	for _, l := range lines {
		code, comment, found := strings.Cut(l, "  # ")
		if !found || chart.Width(l) <= room {
			out = append(out, cells(a.code(l)))
			continue
		}
		out = append(out, cells(a.code(code)))
		for _, text := range wrap(comment, room-6) {
			out = append(out, cells(a.code("    # "+text)))
		}
	}
	return out
}

// mark adds a row. Where other lines have followed the last one, the table begins anew.
func (t *table) mark(row []cell) {
	head, align, line := "|", "|", "|"
	for i, c := range t.cols {
		head += " " + c.head + " |"
		align += map[bool]string{true: "---:|", false: "---|"}[c.width > 0]
		end := i + 1
		if end == len(t.cols) {
			end = len(row)
		}
		line += " " + markup(row[i:end]) + " |"
	}
	if t.end != len(t.lines) {
		t.block(head, align)
	}
	t.lines = append(t.lines, line)
	t.end = len(t.lines)
}

// markup joins cells.
func markup(all []cell) string {
	out := ""
	for _, c := range all {
		text := prose(c.text)
		switch {
		case text == "" && !c.name:
			continue
		case c.name:
			text = code(c.text)
		case c.attr == bold, c.attr == red:
			text = "**" + text + "**"
		}
		if out != "" && strings.HasPrefix(c.text, " ") {
			out += " "
		}
		out += text
	}
	return out
}

// code writes a name as a code span that cannot end early, also within a table, whose cells
// end at any bar that is not escaped.
func code(name string) string {
	name = chart.ClipLeft(oneSpaced(name), maxCode)
	if name == "" {
		return "(no name)"
	}
	fence := "`"
	for strings.Contains(name, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
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
		case strings.ContainsRune("&<>", r):
			b.WriteString(html.EscapeString(string(r)))
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
