package text

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/snapana/snapana/report/internal/chart"
)

// Page prints a page of the manual, which is Markdown: what its own pages use of it, and no more.
func Page(w io.Writer, markdown string, o Options) error {
	d := newDoc(o)
	blocks := strings.Split(strings.TrimSpace(markdown), "\n\n")
	for i := 0; i < len(blocks); i++ {
		b := blocks[i]
		for strings.HasPrefix(b, "```") && (b == "```" || !strings.HasSuffix(b, "\n```")) && i+1 < len(blocks) {
			i++
			b += "\n\n" + blocks[i]
		}
		if len(d.lines) > 0 {
			d.gap()
		}
		d.pageBlock(strings.Split(b, "\n"))
	}
	return d.print(w)
}

// pageBlock adds what stands between two empty lines.
func (d *doc) pageBlock(lines []string) {
	switch first := lines[0]; {
	case strings.HasPrefix(first, "```"):
		for _, l := range lines[1 : len(lines)-1] {
			c := plain.cut(l)
			switch {
			case strings.HasPrefix(l, "$ "):
				c = bold.code(l)
			case first != "```console" && first != "```text": // which may be cut: nobody copies what was printed
				c = plain.code(l)
			}
			d.line(c)
		}
	case strings.HasPrefix(first, "    "):
		for _, l := range lines {
			d.line(plain.code(l))
		}
	case strings.HasPrefix(first, "|"):
		d.pageTable(lines)
	case strings.HasPrefix(first, "#"):
		d.line(bold.of(strings.TrimLeft(first, "# ")))
		if len(lines) > 1 {
			d.gap()
			d.pageBlock(lines[1:])
		}
	default:
		d.pageText(lines)
	}
}

// pageText adds paragraphs and lists.
func (d *doc) pageText(lines []string) {
	var text string
	hanging := 0
	end := func() {
		if text != "" {
			d.lines = append(d.lines, d.flow(inline(text), d.width, hanging)...)
		}
	}
	for i, l := range lines {
		item := listItem.FindString(l)
		switch {
		case strings.HasPrefix(l, "|"):
			end()
			d.pageTable(lines[i:])
			return
		case item != "":
			end()
			text, hanging = l, len(item)
		case text == "":
			text, hanging = l, 0
		default:
			text += " " + strings.TrimSpace(l)
		}
	}
	end()
}

var listItem = regexp.MustCompile(`^(- |[0-9]+\. )`)

// markups are what stands within lines: code, bold text, links.
var markups = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\[([^]]+)\\]\\([^)]+\\)")

// inline makes cells of a line of Markdown. Code keeps its quotes, which tell it from the text where there are no colors.
func inline(s string) []cell {
	var out []cell
	at := 0
	for _, m := range markups.FindAllStringSubmatchIndex(s, -1) {
		out = append(out, plain.of(s[at:m[0]]))
		switch at = m[1]; {
		case m[2] >= 0:
			out = append(out, cyan.of(s[m[0]:m[1]]))
		case m[4] >= 0:
			out = append(out, bold.of(s[m[4]:m[5]]))
		default:
			out = append(out, plain.of(s[m[6]:m[7]]))
		}
	}
	return append(out, plain.of(s[at:]))
}

// pageTable adds a table, whose texts wrap within their columns.
func (d *doc) pageTable(lines []string) {
	var rows [][][]cell
	var widths []int
	for i, l := range lines {
		if i == 1 && strings.Trim(l, "|-: ") == "" {
			continue
		}
		l = strings.ReplaceAll(strings.Trim(l, "| "), `\|`, "\x00")
		var row [][]cell
		for k, s := range strings.Split(l, "|") {
			c := inline(strings.ReplaceAll(strings.TrimSpace(s), "\x00", "|"))
			if i == 0 {
				for at := range c {
					c[at].attr = bold
				}
			}
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], cellsWidth(c))
			row = append(row, c)
		}
		rows = append(rows, row)
	}
	const gap = 2
	narrow(widths, d.width-gap*(len(widths)-1))
	for _, row := range rows {
		var texts [][]string
		height := 0
		for k, c := range row {
			texts = append(texts, d.flow(c, widths[k], 0))
			if cellsWidth(c) > 0 {
				height = max(height, len(texts[k]))
			}
		}
		for i := range height {
			line := ""
			for k, t := range texts {
				text := ""
				if i < len(t) {
					text = t[i]
				}
				line += text + strings.Repeat(" ", widths[k]+gap-chart.Width(escapes.ReplaceAllString(text, "")))
			}
			d.lines = append(d.lines, strings.TrimRight(line, " "))
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func cellsWidth(all []cell) (n int) {
	for _, c := range all {
		n += chart.Width(c.text)
	}
	return n
}

// narrow makes columns narrower, the widest one first, until they take no more than room.
func narrow(widths []int, room int) {
	total := 0
	for _, w := range widths {
		total += w
	}
	for ; total > room; total-- {
		at := slices.Index(widths, slices.Max(widths))
		if widths[at] <= 8 {
			return
		}
		widths[at]--
	}
}

// Index prints a list of names, each with what it is about.
func Index(w io.Writer, names []string, about func(i int) string, o Options) error {
	d := newDoc(o)
	width := 0
	for _, n := range names {
		width = max(width, chart.Width(n))
	}
	t := d.table(plain, column{width: -width}, rest(""))
	for i, n := range names {
		t.row(n, about(i))
	}
	return d.print(w)
}

// Fold breaks the lines of a text that are wider than n columns at spaces. What stands in a second column goes on in it.
// Examples of a help stay, and longer words, to be copied.
func Fold(s string, n int) string {
	var out []string
	section := ""
	for l := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		if l != "" && l[0] != ' ' {
			section = l
		}
		if chart.Width(l) <= n || section == "Examples:" {
			out = append(out, l)
			continue
		}
		at := len(l) - len(strings.TrimLeft(l, " "))
		if m := secondColumn.FindStringIndex(l); m != nil && m[1]-1 <= n/2 {
			at = m[1] - 1
		}
		head, used := l[:at], at
		for i, word := range strings.Fields(l[at:]) {
			have := chart.Width(word)
			switch {
			case i == 0:
				head += word
			case used+1+have <= n:
				head, used = head+" "+word, used+1
			default:
				out = append(out, head)
				head, used = strings.Repeat(" ", at)+word, at
			}
			used += have
		}
		out = append(out, head)
	}
	return strings.Join(out, "\n") + "\n"
}

var secondColumn = regexp.MustCompile(`^ *[^ ]+( [^ ]+)* {2,}[^ ]`)

// Join puts the lines of each paragraph onto one.
func Join(s string) string {
	var b strings.Builder
	for i, l := range strings.Split(s, "\n") {
		switch {
		case i == 0:
		case l == "" || l[0] == ' ' || strings.HasSuffix(b.String(), "\n"):
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
		b.WriteString(l)
	}
	return b.String()
}
