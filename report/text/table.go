package text

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// column is a column of a table.
type column struct {
	head  string
	width int    // of texts that end at the right, below 0 of ones that begin at the left; 0 is what the others leave
	sep   string // stands before it in the head; rows have spaces there
	cut   func(string, int) string
	wrap  int // lines that a text without room may take, the middle ones left out; 0 is all, or one where texts are cut

	narrow int // the width where there is no room; 0 is what its head and most figures need, and that of words
	spare  int // where there still is none the column goes, the highest first; 0 stays
}

// room is how many columns a column takes, at least.
func (c *column) room() int {
	if c.width == 0 {
		return len(c.sep) + cmp.Or(c.narrow, leastCut)
	}
	return len(c.sep) + max(c.width, -c.width)
}

// spared is a column that may go where there is no room, the one with the highest number first.
func (c column) spared(n int) column {
	c.spare = n
	return c
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
	cols  []column
	kept  []bool // columns that there is room for
	below bool   // what is in the last column, and behind it, goes on a line of its own
	end   int    // of its lines in Markdown
}

// belowIn is by how many columns that line is indented.
const belowIn = 4

// table begins a table with its head, if any column has one.
func (d *doc) table(attr attr, cols ...column) *table {
	t := &table{doc: d, cols: cols, kept: slices.Repeat([]bool{true}, len(cols))}
	if d.markdown {
		t.end = -1
		return t
	}
	t.fit()
	head, last := "", ""
	for i, c := range t.cols {
		switch {
		case t.below && i == len(t.cols)-1:
			last = chart.Plain(c.head)
		case t.kept[i]:
			head += c.sep + c.align(chart.Plain(c.head))
		}
	}
	if head = strings.TrimRight(head, " "); head != "" {
		d.line(attr.of(head))
	}
	if last != "" {
		d.line(strings.Repeat(" ", belowIn), attr.of(last))
	}
	return t
}

// fit makes room: columns become narrow, then those go that can be spared, and if that is not enough, what has no width
// goes below the others.
func (t *table) fit() {
	end := len(t.cols) - 1
	over := func() int {
		n := -t.width
		for i := range t.cols {
			if t.kept[i] && !(t.below && i == end) {
				n += t.cols[i].room()
			}
		}
		return n
	}
	for i := range t.cols {
		const figure = 9 // columns with a space before
		switch c := &t.cols[i]; {
		case over() <= 0:
		case c.width > 0:
			least := cmp.Or(c.narrow, max(len(c.head)+1, figure))
			if strings.HasSuffix(c.sep, " ") {
				least--
			}
			c.width = max(min(c.width, least), c.width-over())
		case c.width < 0 && c.narrow > 0:
			c.width = -max(c.narrow, -c.width-over())
		}
	}
	if t.spare(over); over() > 0 && t.cols[end].width == 0 {
		t.kept, t.below = slices.Repeat([]bool{true}, len(t.cols)), true
		t.spare(over)
	}
	if slices.Contains(t.kept, false) { // what is left adds up to nothing
		for i := range t.cols {
			t.cols[i].sep = pad("", len(t.cols[i].sep))
		}
	}
}

// spare leaves out columns until there is room: those that can be spared, and if it must be, then from the right.
func (t *table) spare(over func() int) {
	for over() > 0 {
		least := -1
		for i, c := range t.cols {
			if t.kept[i] && c.spare > 0 && (least < 0 || c.spare > t.cols[least].spare) {
				least = i
			}
		}
		for i := len(t.cols) - 1; least < 0 && i > 1; i-- {
			if t.kept[i] && t.cols[i].width > 0 && t.below == (t.cols[len(t.cols)-1].width == 0) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		t.kept[least] = false
	}
}

// align cuts a text to the width of a column and fills it with spaces.
func (c *column) align(s string) string {
	if c.cut != nil && c.width < 0 {
		s = c.cut(s, -c.width)
	}
	if c.width > 0 {
		return strings.Repeat(" ", max(c.width-chart.Width(s), 0)) + s
	}
	return pad(s, -c.width)
}

// row adds a row. Cells beyond the columns follow the last one.
func (t *table) row(values ...any) {
	if t.markdown {
		t.mark(cells(values...))
		return
	}
	end := len(t.cols) // of the columns before what goes as far as the line does
	if t.cols[end-1].width == 0 {
		end--
	}
	room := t.width // of the one column without a width
	for i, c := range t.cols {
		if t.kept[i] {
			room -= len(c.sep) + max(c.width, -c.width)
		}
	}
	var line []cell
	var more []string // lines of a column within, after the first
	at, indent := 0, 0
	all := cells(values...)
	last, below := all[min(end, len(all)):], t.below
	for i, c := range all[:min(end, len(all))] {
		col := &t.cols[i]
		if !t.kept[i] {
			continue
		}
		if c.text == "" {
			c.attr = plain
		}
		line = append(line, plain.of(strings.Repeat(" ", len(col.sep))))
		at += len(col.sep)
		width := max(col.width, -col.width)
		switch {
		case col.width < 0 && col.cut == nil && i == len(all)-1 && chart.Width(c.text) > width:
			last, below, end = all[i:], false, len(t.cols) // nothing comes behind it
			continue
		case col.width != 0:
			c.text = col.align(c.text)
		case col.cut != nil:
			width, c.text = room, pad(col.cut(c.text, max(room, leastCut)), room)
		default:
			lines := append(wrap(c.text, room), "")
			width, indent, more = room, at, lines[1:max(len(lines)-1, 1)]
			c.text = pad(lines[0], room)
		}
		line = append(line, c)
		at += width
	}
	below = below || cellsWidth(line) > t.width // by figures that are longer than any should be
	switch {
	case below:
		t.lines = append(t.lines, t.flow(line, t.width, belowIn)...)
		line, at = cells(pad("", belowIn)), belowIn
	case end < len(t.cols):
		sep := len(t.cols[end].sep)
		line, at = append(line, cells(pad("", sep))...), at+sep
	}
	head := t.painted(line)
	free := new(column) // what stands in the column of others
	if end < len(t.cols) {
		free = &t.cols[end]
	}
	for _, l := range t.within(free, last, t.width-at, below) {
		t.lines = append(t.lines, strings.TrimRight(head+l, " "))
		head = pad("", at)
	}
	for _, l := range more {
		t.line(pad("", indent), l)
	}
}

// within makes lines of what stands in the last column and behind it.
func (t *table) within(col *column, last []cell, room int, below bool) []string {
	if len(last) == 0 || last[0].text == "" && len(last) == 1 {
		return map[bool][]string{false: {""}}[below]
	}
	if col.cut != nil {
		last[0].text = col.cut(last[0].text, max(room, leastCut))
	}
	lines := t.flow(last, room, 0)
	if n := len(lines); col.wrap > 0 && n > col.wrap {
		lines = []string{lines[0], "…", lines[n-1]}
	}
	return lines
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
func pad(s string, n int) string { return s + strings.Repeat(" ", max(n-chart.Width(s), 0)) }
