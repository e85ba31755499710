package plain

import (
	"bytes"
	"fmt"
	"io"

	"github.com/snapana/snapana/snapshot"
)

// Text reads a sequence of values from JSON or from what Python prints. encoding/json is not
// used because such files hold NaN, because a list at the top is read one element at a time,
// and because a damaged line must not end the reading.
type Text struct {
	r    io.Reader
	buf  []byte
	pos  int // next byte
	end  int
	base int64 // offset of buf[0]
	err  error // of r, io.EOF at the end

	lines int64 // line feeds behind the position
	began int64 // the same where the last value began
	open  bool  // inside a list at the top
	// oneLine says that each value ends with its line.
	oneLine bool
	nodes   int
	bad     error // what is wrong with the value
	scratch []byte
	names   map[string]string
}

const (
	bufferSize = 1 << 20
	maxNames   = 1 << 16
)

// NewText reads from r. Where the first line holds a value and the second begins another one,
// the input is taken for JSON lines: a value then never goes over the end of its line.
func NewText(r io.Reader) *Text {
	t := &Text{r: r, buf: make([]byte, bufferSize), names: make(map[string]string)}
	t.fill()
	first, rest, _ := bytes.Cut(bytes.TrimLeft(t.buf[:t.end], "\xef\xbb\xbf \t\r\n"), []byte("\n"))
	first, rest = bytes.TrimSpace(first), bytes.TrimSpace(rest)
	t.oneLine = len(first) > 1 && first[0] == '{' && (len(rest) == 0 || rest[0] == '{')
	if bytes.HasPrefix(t.buf[:t.end], []byte("\xef\xbb\xbf")) {
		t.pos = 3
	}
	return t
}

// Line is the number of the line in which the last value began, from 1 on.
func (t *Text) Line() int64 { return t.began + 1 }

// Offset is the byte that comes next.
func (t *Text) Offset() int64 { return t.base + int64(t.pos) }

// OneLine reports whether each value has a line of its own.
func (t *Text) OneLine() bool { return t.oneLine }

// fill reads more input behind the position; false at the end.
func (t *Text) fill() bool {
	if t.pos < t.end {
		return true
	}
	t.base += int64(t.end)
	t.pos, t.end = 0, 0
	for idle := 0; t.err == nil && t.end < len(t.buf)/2; idle++ {
		var n int
		n, t.err = t.r.Read(t.buf[t.end:])
		if t.end += n; n > 0 {
			idle = 0
		} else if idle > 100 && t.err == nil {
			t.err = io.ErrNoProgress
		}
	}
	return t.end > 0
}

// peek is the next byte, 0 at the end.
func (t *Text) peek() byte {
	if t.pos == t.end && !t.fill() {
		return 0
	}
	return t.buf[t.pos]
}

func (t *Text) next() byte {
	b := t.peek()
	if t.pos < t.end {
		t.pos++
		if b == '\n' {
			t.lines++
		}
	}
	return b
}

// AtEnd reports whether nothing is left.
func (t *Text) AtEnd() bool { return t.pos == t.end && !t.fill() }

// fault ends the value for what is at the position, unless something did before.
func (t *Text) fault(class error, format string, args ...any) {
	if t.bad == nil {
		t.bad = &snapshot.FormatError{Offset: t.Offset(), Msg: fmt.Sprintf(format, args...), Err: class}
	}
}

// cut is the fault at the end of the input or, in JSON lines, of a line.
func (t *Text) cut() {
	if t.bad == nil && t.err != nil && t.err != io.EOF && t.AtEnd() {
		t.bad = t.err
	}
	t.fault(snapshot.ErrTruncated, "the text ends in the middle of a value: it was cut off or is still being written")
}

// blanks skips white space; false at the end of what may hold the value.
func (t *Text) blanks(inside bool) bool {
	for !t.AtEnd() {
		switch t.peek() {
		case '\n':
			if t.next(); inside && t.oneLine {
				return false
			}
		case ' ', '\t', '\r', 0:
			t.pos++
		default:
			return true
		}
	}
	return false
}

// Next reads the next value. It returns io.EOF at the end, a *snapshot.FormatError for a fault in
// the text, after which SkipLine may go on, and other errors of the reader as they are.
func (t *Text) Next() (Value, error) {
	for {
		if !t.blanks(false) {
			if t.bad = t.err; t.open && t.err == io.EOF {
				t.bad, t.open = nil, false
				t.cut()
			}
			return Value{}, t.bad
		}
		switch b := t.peek(); {
		case b == '[' && !t.open:
			t.open = true
		case b == ']' && t.open:
			t.open = false
		case b == ',':
		default:
			t.nodes, t.began, t.bad = 0, t.lines, nil
			v := t.value(0)
			return v, t.bad
		}
		t.pos++
	}
}

// SkipLine moves behind the next line feed.
func (t *Text) SkipLine() {
	for !t.AtEnd() {
		at := bytes.IndexByte(t.buf[t.pos:t.end], '\n')
		if at >= 0 {
			t.pos += at + 1
			t.lines++
			return
		}
		t.pos = t.end
	}
}
