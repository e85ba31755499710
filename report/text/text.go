// Package text prints results for a terminal: a verdict that fits on one screen, and facts
// about a file, and for issues and chats as Markdown. Lines are 100 columns wide unless asked
// otherwise, from 60 to 120, and never wider, but for lines of code to copy. What a line has no room for goes on the next one, or gives
// way where it says least: of a path that is its start. Texts from the file are stripped of
// control characters, so that a file cannot drive the terminal.
//
// A report is made once, part by part: doc has the kinds of parts, such as headings, findings and tables,
// and what each looks like.
package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Bounds on the width of lines, in columns: tables need the least, and prose is hard to read
// beyond the most.
const (
	MinWidth   = 60
	usualWidth = 100
	maxWidth   = 120
	wide       = 88 // columns from which on tables have all that helps and is not needed
)

// Options choose how results are printed.
type Options struct {
	Color bool  // use ANSI colors; the caller knows whether it writes to a terminal
	Width int   // columns of a line, 0 for the usual ones; brought within bounds
	ASCII bool  // draw without other characters
	All   bool  // everything, also where that is long
	Brief bool  // at most 5 lines: verdict, why, figures, next step, what is missing
	Top   int   // of a state the rows, or in a tree the calls below each call; 0 is all
	Min   int64 // in bytes: holders that have less are summed up; ghosts are always printed
}

// Columns is how wide lines are at most.
func (o Options) Columns() int { return min(max(cmp.Or(o.Width, usualWidth), MinWidth), maxWidth) }

// attr is an ANSI attribute, "" for none.
type attr string

const (
	plain  attr = ""
	bold   attr = "1"
	dim    attr = "2"
	red    attr = "31"
	green  attr = "32"
	yellow attr = "33"
	cyan   attr = "36"
)

// tones are the colors of statuses.
var tones = [...]attr{
	finding.Bad: red, finding.Warn: yellow, finding.Neutral: cyan, finding.Good: green, finding.None: dim,
}

// doc is what a report says, from top to bottom.
type doc struct {
	color  bool
	ascii  bool
	width  int // columns of a line
	margin int // columns for labels
	indent int // columns before labels
	above  int // lines that are printed before the document, or reserved
	lines  []string
	// markdown says that lines are Markdown, as long as they come out, with an empty one between parts. A part
	// has so many heads more than on a terminal; nothing is indented, and of the colors some become bold.
	markdown bool
	heads    int
}

func newDoc(o Options) *doc {
	return &doc{color: o.Color, ascii: o.ASCII, width: o.Columns(), margin: 8}
}

// height is the number of lines so far, of Markdown that of lines that are not empty.
func (d *doc) height() int {
	n := d.above
	for _, l := range d.lines {
		if l != "" || !d.markdown {
			n++
		}
	}
	return n
}

func (d *doc) print(w io.Writer) error {
	var b strings.Builder
	for _, l := range d.lines {
		b.WriteString(l + "\n")
	}
	out := b.String()
	if d.ascii {
		out = asciiOf.Replace(out)
	}
	_, err := io.WriteString(w, out)
	return err
}

// asciiOf draws what is drawn here in ASCII, in as many columns.
var asciiOf = strings.NewReplacer("…", "~", "\u202f", " ", "·", ".", "─", "-", "│", "|", "▲", "^", "✕", "x",
	"░", ":", "▒", "-", "▓", "=", "▚", "%", "╱", "/", "▁", "_", "▂", ".", "▃", ":", "▄", "-", "▅", "=", "▆", "+", "▇", "*", "█", "#")

func (d *doc) paint(a attr, text string) string {
	if !d.color || text == "" || a == plain {
		return text
	}
	return "\x1b[" + string(a) + "m" + text + "\x1b[0m"
}

// cell is a text of one color. Where a line has no room for all its cells, cut shortens this one to
// so many columns; nil never does.
type cell struct {
	text string
	attr attr
	cut  func(string, int) string
	name bool // from the file, a code span in Markdown
	code bool // to copy: a line with it is as long as it comes out
}

func (a attr) of(s string) cell   { return cell{text: s, attr: a} }
func (a attr) code(s string) cell { return cell{text: s, attr: a, code: true} }
func (a attr) name(s string) cell { return cell{text: s, attr: a, name: true} }

// cut is a text whose end gives way where a line is too long, cutLeft one whose start does.
func (a attr) cut(s string) cell     { return cell{text: s, attr: a, cut: chart.Clip} }
func (a attr) cutLeft(s string) cell { return cell{text: s, attr: a, cut: chart.ClipLeft} }

// cells makes cells of texts, and of whatever prints as one.
func cells(values ...any) []cell {
	out := make([]cell, len(values))
	for i, v := range values {
		c, ok := v.(cell)
		if !ok {
			c.text = fmt.Sprint(v)
		}
		c.text = chart.Plain(c.text)
		out[i] = c
	}
	return out
}

// leastCut is how many columns of a text are kept where a line has no room for it.
const leastCut = 16

// join makes a line of cells, cut where they may be. Where there still is no room they take more lines, the later ones
// indented by so many columns.
func (d *doc) join(all []cell, hanging int) []string {
	over, code := -d.width, false
	for _, c := range all {
		over += chart.Width(c.text)
		code = code || c.code
	}
	if over > 0 && !code {
		for i := range all {
			if c := &all[i]; c.cut != nil && over > 0 {
				have := chart.Width(c.text)
				c.text = c.cut(c.text, max(have-over, leastCut))
				over -= have - chart.Width(c.text)
			}
		}
		if over > 0 {
			return d.flow(all, d.width, hanging)
		}
	}
	return []string{strings.TrimRight(d.painted(all), " ")}
}

// painted is a line of cells.
func (d *doc) painted(all []cell) string {
	line := ""
	for _, c := range all {
		line += d.paint(c.attr, c.text)
	}
	return line
}

// flow breaks cells into lines of at most n columns at spaces, the later ones indented by so many.
func (d *doc) flow(all []cell, n, hanging int) []string {
	var out []string
	var line []cell
	used := 0 // columns of the line
	put := func(text string, a attr) {
		used += chart.Width(text)
		if k := len(line); k > 0 && line[k-1].attr == a {
			line[k-1].text += text
			return
		}
		line = append(line, a.of(text))
	}
	end := func() {
		out = append(out, strings.TrimRight(d.painted(line), " "))
		line, used = nil, 0
		put(strings.Repeat(" ", hanging), plain)
	}
	for _, w := range words(all) {
		if used > hanging && used+w.gap+w.width > n {
			end()
			w.gap = 0
		}
		put(strings.Repeat(" ", w.gap), w.parts[0].attr)
		for _, c := range w.parts {
			for chart.Width(c.text) > n-used && n > used {
				var head string
				head, c.text = breakWord(c.text, n-used)
				put(head, c.attr)
				end()
			}
			put(c.text, c.attr)
		}
	}
	return append(out, strings.TrimRight(d.painted(line), " "))
}

// word is what stands between spaces, of one cell or several, and so many spaces before it.
type word struct {
	parts      []cell
	gap, width int
}

func words(all []cell) []word {
	var out []word
	gap, open := 0, false // spaces, and whether the last word may go on
	for _, c := range all {
		for i, text := range strings.Split(c.text, " ") {
			if i > 0 {
				gap, open = gap+1, false
			}
			if text == "" {
				continue
			}
			if !open {
				out, gap = append(out, word{gap: gap}), 0
			}
			w := &out[len(out)-1]
			w.parts, w.width, open = append(w.parts, c.attr.of(text)), w.width+chart.Width(text), true
		}
	}
	return out
}

// line adds a line of cells and plain texts.
func (d *doc) line(values ...any) {
	if d.markdown {
		d.block(markup(cells(values...)))
		return
	}
	all := cells(values...)
	hanging := 0
	for _, c := range all {
		rest := strings.TrimLeft(c.text, " ")
		if hanging += chart.Width(c.text) - chart.Width(rest); rest != "" {
			break
		}
	}
	d.lines = append(d.lines, d.join(all, min(hanging+2, d.width/3))...)
}

func (d *doc) linef(format string, args ...any) { d.line(fmt.Sprintf(format, args...)) }

// gap adds an empty line, but not a second one.
func (d *doc) gap() {
	if n := len(d.lines); n == 0 || d.lines[n-1] != "" {
		d.line()
	}
}

// paragraph adds a text that may take several lines, the later ones indented by so many columns.
func (d *doc) paragraph(c cell, before, hanging int) {
	for i, l := range wrap(chart.Plain(c.text), d.width-before-hanging) {
		d.line(strings.Repeat(" ", before+min(i, 1)*hanging), c.attr.of(l))
	}
}

// heading adds a text behind a word of a tone, in at most so many lines unless that is 0.
func (d *doc) heading(word string, tone finding.Tone, text string, most int) {
	word = strings.ToUpper(word)
	if d.markdown {
		d.block("### " + prose(word+": "+text))
		return
	}
	room := d.width - len(word) - 2
	lines := wrap(chart.Plain(text), room)
	if most > 0 && len(lines) > most {
		lines = append(lines[:most-1:most-1], chart.Clip(lines[most-1], room-1)+"…")
	}
	head := (bold + ";" + tones[tone]).of(word)
	for _, l := range lines {
		d.line(head, "  ", bold.of(l))
		head = plain.of(strings.Repeat(" ", len(word)))
	}
}

// labeled adds lines, the first of them with a label in the margin.
func (d *doc) labeled(label string, lines ...[]cell) {
	if d.markdown {
		d.bullets(label, lines)
		return
	}
	for _, l := range lines {
		head := cells(strings.Repeat(" ", d.indent), bold.of(pad(label, d.margin)))
		d.lines = append(d.lines, d.join(append(head, l...), d.indent+d.margin+2)...)
		label = ""
	}
}

// texts are lines of one color, cut where they are too long.
func texts(a attr, lines []string) [][]cell {
	var out [][]cell
	for _, l := range lines {
		out = append(out, cells(a.cut(l)))
	}
	return out
}

// list adds texts under a label in the margin, each wrapped, in at most so many lines unless that is 0.
func (d *doc) list(label string, list []string, most int) {
	lines := d.wrapped(list)
	if most > 0 && len(lines) > most {
		lines = append(lines[:most-1:most-1], more(len(lines)-most+1, "line")+", in the full report")
	}
	d.labeled(label, texts(plain, lines)...)
}

// apart is list with an empty line before it, if there are texts.
func (d *doc) apart(label string, list []string, most int) {
	if len(list) > 0 {
		d.gap()
		d.list(label, list, most)
	}
}

// wrapped breaks the texts of a list into lines.
func (d *doc) wrapped(list []string) []string {
	var lines []string
	room := d.width - max(d.margin, 10)
	for _, t := range list {
		for i, l := range wrap(chart.Plain(t), room) {
			if i > 0 && len(list) > 1 {
				l = "  " + l
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// finding adds why something was found and what to do, in at most so many lines each.
func (d *doc) finding(why, next []string, mostWhy, mostNext int) {
	d.list("Why", why, mostWhy)
	d.list("Next", numbered(next), mostNext)
}

func numbered(steps []string) []string {
	if len(steps) < 2 {
		return steps
	}
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = step(i) + s
	}
	return out
}

// step stands before step i of several.
func step(i int) string { return fmt.Sprintf("%d. ", i+1) }

// more says how many of a list are left out.
func more[N int | int64](n N, noun string) string { return "... and " + units.Plural(n, "more "+noun) }

// when is a part of a sentence that is said only where something is so, else "".
func when(so bool, format string, args ...any) string {
	if !so {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// wrap breaks a text into lines of at most n columns at spaces, but not within figures; longer words are broken, too.
func wrap(s string, n int) []string {
	const within = '\u202f' // a space, between the thousands of a figure
	var out []string
	used := n // columns of the last line
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return unicode.IsSpace(r) && r != within }) {
		word = strings.ReplaceAll(word, string(within), " ")
		have := chart.Width(word)
		if used+1+have <= n {
			out[len(out)-1] += " " + word
			used += 1 + have
			continue
		}
		for have > n {
			var head string
			head, word = breakWord(word, n)
			out, have = append(out, head), chart.Width(word)
		}
		out, used = append(out, word), have
	}
	return out
}

// breakWord takes from a word what goes into n columns, and of that, where it can, what ends in a comma or a slash, or
// comes before a bracket.
func breakWord(word string, n int) (head, rest string) {
	if head, rest = chart.Cut(word, n); head == "" { // not even a single character
		return word, ""
	}
	if at := strings.LastIndexAny(head, ",;/") + 1; at > len(head)/2 {
		return word[:at], word[at:]
	}
	if at := strings.LastIndexAny(head, "[("); at > len(head)/2 {
		return word[:at], word[at:]
	}
	return head, rest
}
