package text

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// column is a column of a table.
type column struct {
	head  string
	width int    // of texts that end at the right, below 0 of ones that begin at the left; 0 is what the others leave
	sep   string // stands before it in the head; rows have spaces there
	cut   func(string, int) string
	wrap  int // lines that a text without room may take, the middle ones left out; 0 is one line
}

// num is a column of figures, left one of words, and rest the last one, which gets what the others leave.
func num(head string, width int) column  { return column{head: head, width: width} }
func left(head string, width int) column { return column{head: head, width: -width, cut: chart.Clip} }
func rest(head string) column            { return column{head: head, sep: "  "} }

// clipped is a rest whose texts are cut.
func clipped(head string) column { return column{head: head, sep: "  ", cut: chart.Clip} }

// table has aligned columns. Between its rows there may be other lines.
type table struct {
	*doc
	cols []column
	end  int // of its lines in Markdown
}

// table begins a table with its head, if any column has one.
func (d *doc) table(attr attr, cols ...column) *table {
	if d.markdown {
		return &table{d, cols, -1}
	}
	head := ""
	for _, c := range cols {
		head += c.sep + c.align(chart.Plain(c.head))
	}
	if head = strings.TrimRight(head, " "); head != "" {
		d.line(attr.of(head))
	}
	return &table{d, cols, 0}
}

// align cuts a text to the width of a column and fills it with spaces.
func (c *column) align(s string) string {
	if c.cut != nil && c.width < 0 {
		s = c.cut(s, -c.width)
	}
	return fmt.Sprintf("%*s", c.width, s)
}

// row adds a row. Cells beyond the columns follow the last one.
func (t *table) row(values ...any) {
	if t.markdown {
		t.mark(cells(values...))
		return
	}
	room := t.width
	for _, c := range t.cols {
		room -= len(c.sep) + max(c.width, -c.width)
	}
	var line []cell
	var below []string // what wraps
	before, at := 0, 0 // columns before what wraps, and before each cell
	for i, c := range cells(values...) {
		if i >= len(t.cols) {
			line = append(line, c)
			continue
		}
		col := &t.cols[i]
		if c.text == "" {
			c.attr = plain
		}
		switch {
		case col.width != 0:
			c.text = col.align(c.text)
		case col.wrap > 0:
			below = append(wrap(c.text, room), "")
			if n := len(below) - 1; n > col.wrap {
				below = []string{below[0], "…", below[n-1], ""}
			}
			before = at + len(col.sep)
			c.text, below = below[0], below[1:max(len(below)-1, 1)]
		case col.cut != nil && utf8.RuneCountInString(c.text) > room:
			c.text = col.cut(c.text, max(room, 12))
		}
		if col.width == 0 && i+1 < len(t.cols) {
			c.text = pad(c.text, room)
		}
		at += len(col.sep) + max(col.width, -col.width)
		line = append(line, plain.of(strings.Repeat(" ", len(col.sep))), c)
	}
	t.lines = append(t.lines, t.join(line))
	for _, l := range below {
		t.line(strings.Repeat(" ", before), l)
	}
}

// shares begins a table of parts of a whole: bytes, their share, a bar where there is room, what they are, and more.
func (d *doc) shares(what column, more ...column) *table {
	cols := []column{num("", 10), num("", 6)}
	if d.width >= wide {
		cols = append(cols, column{sep: " ", width: -10})
	}
	return d.table(bold, append(append(cols, what), more...)...)
}

// share adds a part of a whole.
func (t *table) share(part, whole int64, what ...any) {
	row := []any{units.Size(part), units.Percent(part, whole)}
	if t.cols[2].width == -10 {
		row = append(row, bar(part, whole, 10))
	}
	t.row(append(row, what...)...)
}

// bar draws part of whole as a bar of n columns.
func bar(part, whole int64, n int) cell {
	full := 0
	if whole > 0 && part > 0 {
		full = min(int(float64(part)/float64(whole)*float64(n)+0.5), n)
	}
	return cyan.of(strings.Repeat("█", full) + strings.Repeat("·", n-full))
}

// pad fills s with spaces to n columns.
func pad(s string, n int) string { return fmt.Sprintf("%-*s", n, s) }
