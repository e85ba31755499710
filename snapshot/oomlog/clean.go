package oomlog

import "bytes"

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
		for i, b := range raw[1:end] {
			if b >= 0x40 && b <= 0x7e {
				return i + 2
			}
			if b < 0x20 {
				return i + 1
			}
		}
		return 1
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
