package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/snapana/snapana/report/text"
)

// book is the manual for man(1).
type book struct {
	version, date string
	chapters      []chapter
}

// chapter is a page: of a command if it has a help, else on a topic.
type chapter struct {
	name, about, text string
	help              *help
}

// section is that of the page: commands are in 1, topics in 7.
func (c chapter) section() int {
	if c.help != nil {
		return 1
	}
	return 7
}

// roff is a page for man(1) in the making, in the macros of man(7).
type roff struct {
	strings.Builder
	begun bool // the section has text: what follows is a paragraph of its own
}

func (r *roff) section(macro, heading string) {
	r.macro(macro, heading)
	r.begun = false
}

func (r *roff) gap() {
	if r.begun {
		r.macro("PP")
	}
	r.begun = true
}

// macro adds a line with a macro, whose arguments are quoted.
func (r *roff) macro(name string, args ...string) {
	r.WriteString("." + name)
	for _, a := range args {
		r.WriteString(` "` + strings.ReplaceAll(escape(a), `"`, `\(dq`) + `"`)
	}
	r.WriteByte('\n')
}

// line adds a line that has been escaped. One must not look like a macro.
func (r *roff) line(s string) {
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	r.WriteString(s + "\n")
}

// literal adds lines as they are, indented.
func (r *roff) literal(lines []string) {
	r.gap()
	r.macro("RS", "4")
	r.macro("EX")
	for _, l := range lines {
		r.line(strings.ReplaceAll(escape(l), "-", `\-`))
	}
	r.macro("EE")
	r.macro("RE")
}

// escape makes text of what roff would take for its own. Letters beyond ASCII are named, as not each roff reads UTF-8.
func escape(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == '\\':
			b.WriteString(`\e`)
		case c == '~':
			b.WriteString(`\(ti`)
		case c == '^':
			b.WriteString(`\(ha`)
		case c == '`':
			b.WriteString(`\(ga`)
		case c == '\'':
			b.WriteString(`\(aq`)
		case c > 126:
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// overview is snapana(1).
func (b book) overview(h help) manPage {
	var r roff
	b.head(&r, "snapana", 1, "explain what fills the GPU, from PyTorch memory snapshots")
	r.section("SH", "SYNOPSIS")
	r.synopsis(h)
	r.section("SH", "DESCRIPTION")
	for p := range strings.SplitSeq(h.text, "\n\n") {
		r.gap()
		r.paragraph(p)
	}
	for _, part := range []struct {
		heading string
		section int
	}{{"COMMANDS", 1}, {"TOPICS", 7}} {
		r.section("SH", part.heading)
		for _, c := range b.chapters {
			if c.section() == part.section {
				r.macro("TP")
				r.line(c.reference())
				r.paragraph(c.about + ".")
			}
		}
	}
	r.helpSections(h)
	return manPage{"snapana", 1, []byte(r.String())}
}

// reference is the page's name as other pages have it.
func (c chapter) reference() string {
	return fmt.Sprintf(`\fBsnapana\-%s\fR(%d)`, strings.ReplaceAll(c.name, "-", `\-`), c.section())
}

// page is that of a chapter.
func (b book) page(c chapter) manPage {
	var r roff
	name := "snapana-" + c.name
	b.head(&r, name, c.section(), strings.ToLower(c.about[:1])+c.about[1:])
	if c.help != nil {
		r.section("SH", "SYNOPSIS")
		r.synopsis(*c.help)
	}
	r.section("SH", "DESCRIPTION")
	r.markdown(c.text)
	if c.help != nil {
		r.helpSections(*c.help)
	}
	r.section("SH", "SEE ALSO")
	r.line(`\fBsnapana\fR(1)`)
	return manPage{name, c.section(), []byte(r.String())}
}

func (b book) head(r *roff, name string, section int, about string) {
	r.macro("TH", strings.ToUpper(name), fmt.Sprint(section), b.date, "snapana "+b.version, "snapana manual")
	r.section("SH", "NAME")
	r.line(strings.ReplaceAll(name, "-", `\-`) + ` \- ` + spans(about))
}

func (r *roff) synopsis(h help) {
	for i, l := range strings.Split(strings.TrimSpace(h.sections["Usage"]), "\n") {
		if i > 0 {
			r.macro("br")
		}
		command, rest, _ := strings.Cut(strings.TrimSpace(l), " ")
		r.line(`\fB` + escape(command) + `\fR ` + strings.ReplaceAll(escape(rest), "-", `\-`))
	}
}

// helpSections adds what only the help has.
func (r *roff) helpSections(h help) {
	for _, s := range [][2]string{{"Available Commands", "SUBCOMMANDS"}, {"Flags", "OPTIONS"}, {"Global Flags", "GLOBAL OPTIONS"},
		{"Examples", "EXAMPLES"}} {
		text := strings.TrimPrefix(h.sections[s[0]], "\n")
		if text == "" || s[0] == "Available Commands" && strings.Contains(text, "  whatif ") {
			continue // of the whole program: there is a list of pages
		}
		r.section("SH", s[1])
		var lines []string
		for l := range strings.SplitSeq(text, "\n") {
			lines = append(lines, strings.TrimPrefix(l, "  "))
		}
		r.literal(lines)
	}
}

var (
	item = regexp.MustCompile(`^(-|[0-9]+\.) +`)
	span = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\*([^*\\s][^*]*)\\*|\\[([^]]+)\\]\\([^)]+\\)")
)

// markdown adds a page of the manual: what its pages use of Markdown, as text.Page reads it, and no more.
func (r *roff) markdown(page string) {
	lines := strings.Split(strings.TrimSpace(page), "\n")
	for len(lines) > 0 {
		l := lines[0]
		n := 1
		until := func(end func(string) bool) []string {
			for n < len(lines) && !end(lines[n]) {
				n++
			}
			return lines[:n]
		}
		switch {
		case l == "":
		case strings.HasPrefix(l, "# "): // the page's title, which .TH has
		case strings.HasPrefix(l, "## "):
			r.section("SH", strings.ToUpper(strings.Trim(l, "# ")))
		case strings.HasPrefix(l, "#"):
			r.section("SS", strings.Trim(l, "# "))
		case strings.HasPrefix(l, "```"):
			block := until(func(s string) bool { return s == "```" })
			r.literal(block[1:])
			n++
		case strings.HasPrefix(l, "    "):
			block := until(func(s string) bool { return !strings.HasPrefix(s, "    ") })
			r.literal(unindented(block))
		case strings.HasPrefix(l, "|"):
			r.table(until(func(s string) bool { return !strings.HasPrefix(s, "|") }))
		default:
			block := until(func(s string) bool {
				return s == "" || strings.HasPrefix(s, "|") || strings.HasPrefix(s, "```") || item.MatchString(s)
			})
			text := strings.Join(block, " ")
			if mark := item.FindString(text); mark != "" {
				bullet := strings.TrimSpace(mark)
				if bullet == "-" {
					bullet = `\(bu`
				}
				r.WriteString(".IP " + bullet + " 4\n")
				text, r.begun = text[len(mark):], true
			} else {
				r.gap()
			}
			r.paragraph(text)
		}
		lines = lines[min(n, len(lines)):]
	}
}

func unindented(lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, strings.TrimPrefix(l, "    "))
	}
	return out
}

// table adds a table as a terminal shows it, whose columns text.Page fits to the width.
func (r *roff) table(lines []string) {
	var b strings.Builder
	text.Page(&b, strings.Join(lines, "\n"), text.Options{Width: 72}) // a builder takes all
	r.literal(strings.Split(strings.Trim(b.String(), "\n"), "\n"))
}

// sentenceEnd is where a sentence ends within a paragraph: roff wants the next one on a line of its own.
var sentenceEnd = regexp.MustCompile(`([.:;!?]\)?) +`)

// paragraph adds running text.
func (r *roff) paragraph(markdown string) {
	s := strings.Join(strings.Fields(markdown), " ")
	for l := range strings.SplitSeq(sentenceEnd.ReplaceAllString(spans(s), "$1\n"), "\n") {
		r.line(l)
	}
}

// spans makes roff of what stands within lines: code and bold text in bold, emphasis in italics, of links their text.
func spans(s string) string {
	var b strings.Builder
	at := 0
	for _, m := range span.FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(escape(s[at:m[0]]))
		part := func(i int) string { return s[m[i]:m[i+1]] }
		switch at = m[1]; {
		case m[2] >= 0:
			b.WriteString(`\fB` + strings.ReplaceAll(escape(part(2)), "-", `\-`) + `\fR`)
		case m[4] >= 0:
			b.WriteString(`\fB` + escape(part(4)) + `\fR`)
		case m[6] >= 0:
			b.WriteString(`\fI` + escape(part(6)) + `\fR`)
		default:
			b.WriteString(spans(part(8)))
		}
	}
	b.WriteString(escape(s[at:]))
	return b.String()
}
