package json

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// indenter takes an object as json.Encoder writes it, in one piece without spaces, and writes it with begin in the
// place of its first brace, each level one space further in, and texts made harmless. json.Indent parses it anew for
// that, which takes longer than encoding: a report of many devices has 20 MB.
type indenter struct {
	to    io.Writer
	begin string
}

func (d indenter) Write(text []byte) (int, error) {
	if to, ok := d.to.(interface{ Grow(n int) }); ok {
		to.Grow(2 * len(text)) // and not step by step, copying
	}
	w := bufio.NewWriter(d.to)
	level := 1
	line := func() {
		w.WriteByte('\n')
		for range level {
			w.WriteByte(' ')
		}
	}
	w.WriteString(d.begin)
	line()
	for i := 1; i < len(text); {
		end := i + 1
		switch c := text[i]; c {
		case '{', '[':
			w.WriteByte(c)
			if text[end] == c+2 { // there is nothing in it
				w.WriteByte(text[end])
				end++
				break
			}
			level++
			line()
		case '}', ']':
			level--
			line()
			w.WriteByte(c)
		case ',':
			w.WriteByte(c)
			line()
		case ':':
			w.WriteString(": ")
		case '"':
			for ; text[end] != '"'; end++ {
				if text[end] == '\\' {
					end++
				}
			}
			end++
			w.Write(harmless(text[i:end]))
		default:
			for end < len(text) && strings.IndexByte(",]}", text[end]) < 0 {
				end++
			}
			w.Write(text[i:end])
		}
		i = end
	}
	return len(text), w.Flush()
}

// harmless escapes what json.Encoder leaves as it is, and what drives a terminal, or changes the order in which text is
// shown: DEL and the C1 controls, and those of bidirectional text.
func harmless(text []byte) []byte {
	var out []byte
	from := 0
	for i := 0; i < len(text); i++ {
		if c := text[i]; c != 0x7f && c != 0xc2 && c != 0xd8 && c != 0xe2 {
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if r >= 0x7f && r <= 0x9f || unicode.Is(unicode.Bidi_Control, r) {
			out = fmt.Appendf(append(out, text[from:i]...), `\u%04x`, r)
			from = i + n
		}
		i += n - 1
	}
	if out == nil {
		return text
	}
	return append(out, text[from:]...)
}
