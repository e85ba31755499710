package oomlog

import (
	"bytes"
	"regexp"
	"strings"
)

// maxText bounds what is read of one message, in cleaned bytes.
const maxText = 4096

// cleaned is text without what terminals, web pages and loggers put around and into it.
type cleaned struct {
	text []byte  // with '\n' where a line ended and ' ' for any other white space
	from []int32 // where each byte was
	last int32   // where reading stopped
}

func (c *cleaned) reset() { c.text, c.from, c.last = c.text[:0], c.from[:0], 0 }

func (c *cleaned) put(b byte, at int) {
	if b == ' ' || b == '\n' {
		if n := len(c.text); n > 0 && (c.text[n-1] == ' ' || c.text[n-1] == '\n') {
			if b == '\n' {
				c.text[n-1] = '\n'
			}
			return
		}
	}
	c.text, c.from = append(c.text, b), append(c.from, int32(at))
}

// read cleans raw, a part of a log. After each line break it takes away what loggers repeat
// at the start of lines; prefix is what the first line began with.
func (c *cleaned) read(raw, prefix []byte) {
	c.reset()
	i := 0
	for i < len(raw) && len(c.text) < maxText {
		b, n := symbol(raw[i:])
		if b != 0 {
			c.put(b, i)
		}
		i += n
		if b == '\n' {
			i += linePrefix(raw[i:], prefix)
		}
	}
	c.last = int32(i)
}

// symbol reads one character of raw, which must not be empty: what it stands for, 0 for
// nothing, and its length. White space and frames become ' ', line breaks '\n'.
func symbol(raw []byte) (byte, int) {
	switch b := raw[0]; b {
	case '\n', '\r':
		return '\n', 1
	case ' ', '\t', '\v', '\f':
		return ' ', 1
	case 0x1b:
		return 0, 1 + control(raw[1:])
	case '\\':
		return escape(raw)
	case '&':
		return entity(raw)
	case '<':
		return tag(raw)
	case '|':
		if end := bytes.TrimLeft(raw[1:min(len(raw), 4)], " "); len(end) > 0 && (end[0] == '\n' || end[0] == '\r') {
			return ' ', 1 // the right side of a frame
		}
	case 0xc2:
		if len(raw) > 1 && raw[1] == 0xa0 { // no-break space
			return ' ', 2
		}
	case 0xe2:
		if len(raw) > 2 && (raw[1] == 0x94 || raw[1] == 0x95) { // box drawing
			return ' ', 3
		}
		if len(raw) > 2 && raw[1] == 0x80 && raw[2] == 0xa6 { // ellipsis
			return '.', 3
		}
	default:
		if b < ' ' || b == 0x7f {
			return 0, 1
		}
	}
	return raw[0], 1
}

// control measures a terminal sequence after its ESC.
func control(raw []byte) int {
	if len(raw) == 0 {
		return 0
	}
	end := min(len(raw), 256)
	switch raw[0] {
	case '[':
		i := bytes.IndexFunc(raw[1:end], func(r rune) bool { return r < 0x20 || r >= 0x40 && r <= 0x7e })
		if i >= 0 && raw[1+i] >= 0x20 {
			i++ // the letter that ends it
		}
		return max(1, i+1)
	case ']':
		for i, b := range raw[1:end] {
			if b == 0x07 {
				return i + 2
			}
			if b == 0x1b && i+2 < end && raw[i+2] == '\\' {
				return i + 3
			}
		}
		return 1
	case '(', ')':
		return min(2, len(raw))
	}
	return 0
}

// escape reads what a string literal or JSON writes for a character.
func escape(raw []byte) (byte, int) {
	if len(raw) < 2 {
		return '\\', 1
	}
	switch raw[1] {
	case 'n', 'r':
		return '\n', 2
	case 't':
		return ' ', 2
	case '\\':
		return 0, 1
	case '"', '\'', '/':
		return raw[1], 2
	}
	for _, esc := range []string{`\u001b`, `\x1b`, `\033`, `\e`} {
		if len(raw) >= len(esc) && bytes.EqualFold(raw[:len(esc)], []byte(esc)) {
			return 0, len(esc) + control(raw[len(esc):])
		}
	}
	if b, ok := escapes[string(bytes.ToLower(raw[1:min(len(raw), 6)]))]; ok {
		return b, 6
	}
	return '\\', 1
}

// escapes are what follows the backslash.
var escapes = map[string]byte{"u003c": '<', "u003e": '>', "u0026": '&', "u0027": '\'', "u00a0": ' '}

var entities = map[string]byte{
	"gt": '>', "lt": '<', "amp": '&', "quot": '"', "apos": '\'', "nbsp": ' ',
	"#39": '\'', "#x27": '\'', "#34": '"', "#62": '>', "#60": '<', "#160": ' ', "#10": '\n', "#xa": '\n', "#32": ' ',
}

func entity(raw []byte) (byte, int) {
	if end := bytes.IndexByte(raw[:min(len(raw), 8)], ';'); end > 0 {
		if b, ok := entities[string(bytes.ToLower(raw[1:end]))]; ok {
			return b, end + 1
		}
	}
	return '&', 1
}

// tag takes an HTML tag for nothing, or for a line break.
func tag(raw []byte) (byte, int) {
	name := bytes.TrimPrefix(raw[1:], []byte("/"))
	if len(name) == 0 || !isLetter(name[0]) {
		return '<', 1
	}
	end := bytes.IndexAny(raw[1:min(len(raw), 256)], "<>")
	if end < 0 || raw[1+end] == '<' {
		return '<', 1
	}
	for _, block := range []string{"br", "p", "div", "li", "tr"} {
		if n := len(block); len(name) > n && bytes.EqualFold(name[:n], []byte(block)) &&
			(name[n] == '>' || name[n] == ' ' || name[n] == '/') {
			return '\n', end + 2
		}
	}
	return 0, end + 2
}

var (
	ranks     = regexp.MustCompile(`(?i)(?:\b|_)(?:rank|default)[ =:_]{0,2}(\d{1,7})\b`)
	srunLabel = regexp.MustCompile(`^\s*(\d{1,6}): `)
)

// context reads what is in front of a message that begins at raw[start]: the class of the
// exception, and the line's prefix before that. It leaves the cleaned text of the line in
// f.before.
func (f *finder) context(raw []byte, start int) (class string, prefix []byte) {
	front := raw[max(0, start-behind):start]
	f.before.read(front, nil)
	line := front[bytes.LastIndexByte(front, '\n')+1:]
	if at, end := exception(f.before.text); at < end {
		class = string(f.before.text[at:end])
		if from := int(f.before.from[at]); from >= len(front)-len(line) {
			line = front[len(front)-len(line) : from]
		}
	}
	f.before.text = f.before.text[bytes.LastIndexByte(f.before.text, '\n')+1:]
	return class, line
}

// exception finds the class that text ends with: "torch.OutOfMemoryError: " or "RuntimeError('".
func exception(text []byte) (start, end int) {
	text = bytes.TrimRight(text, " \n'\"")
	end = len(text) - 1
	if end < 0 || text[end] != ':' && text[end] != '(' {
		return 0, 0
	}
	if text = text[:end]; !bytes.HasSuffix(text, []byte("Error")) && !bytes.HasSuffix(text, []byte("Exception")) {
		return 0, 0
	}
	for start = end; start > 0 && end-start < 100 && (isWord(text[start-1]) || text[start-1] == '.'); {
		start--
	}
	return start, end
}

// linePrefix measures what is before the text in a continued line: something of the shape
// of the first line's prefix, or what loggers are known to write.
func linePrefix(raw, prefix []byte) int {
	n := alike(raw, prefix)
	for range 12 {
		k := decoration(raw[n:])
		if k == 0 {
			break
		}
		n += k
	}
	return n
}

// alike measures how far two lines begin alike, digits aside, up to the end of a word.
func alike(line, above []byte) int {
	n := 0
	for n < len(line) && n < len(above) && (line[n] == above[n] || isDigit(line[n]) && isDigit(above[n])) {
		n++
	}
	for n > 0 && line[n-1] != ' ' && line[n-1] != '\t' && line[n-1] != ']' && line[n-1] != '|' {
		n--
	}
	if n < 3 {
		return 0
	}
	return n
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func isWord(b byte) bool { return b == '_' || isDigit(b) || isLetter(b) }

// repeated is what the last line of raw begins with like the line before it, digits aside.
func repeated(raw []byte) []byte {
	at := bytes.LastIndexByte(raw, '\n')
	if at < 0 {
		return nil
	}
	line, above := raw[at+1:], raw[:at]
	above = above[bytes.LastIndexByte(above, '\n')+1:]
	return line[:alike(line, above)]
}

// decorations are what loggers put in front of text; no message has a line that begins with such.
var decorations = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`[ \t]+`,
	`\[[^]\n[(]{0,79}]:?`, // [rank3]: and [2024-01-01 12:00:00]
	`\([^)\n[(]*(?:pid=|ip=|[rR]ank)[^)\n[(]*\)`, // (EngineCore pid=7)
	`[\x{2500}-\x{257f}]`,                        // box drawing
	`[0-9][0-9.,TZ+]*[:-][-:0-9.,TZ+]*[ \t]`,     // 2024-05-01, 12:00:00,123 and srun's 3:
	`(?i:debug|info|warning|warn|error|critical|fatal)[: \t|]`,
	`(?i:stderr|stdout)[: \t|](?:. )?`, // Kubernetes writes "stderr F "
	`(?i:rank)[ =:]*[0-9]+:?`,
	`[EWIF][0-9][\w.-]{2}[0-9][^]\n[(\w.-][^]\n[(]*]`, // glog's "E0501 12:00:00.1 77 file.cc:12]"
	`[A-Za-z][\w.-]{0,62} {0,31}\|`,                   // compose's "service  |"
	`[|>#*"'-][ \t]`,
	`// `,
}, "|") + `)`)

// decoration measures what decorations find at the start of raw, or a color there.
func decoration(raw []byte) int {
	if len(raw) > 0 && raw[0] == 0x1b {
		return 1 + control(raw[1:])
	}
	return len(decorations.Find(raw[:min(len(raw), 120)]))
}
