package plain

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/snapana/snapana/snapshot"
)

func (t *Text) value(depth int) (Value, error) {
	if depth > maxDepth {
		return Value{}, t.fault(snapshot.ErrLimit, "values are nested more than %d deep", maxDepth)
	}
	if t.nodes++; t.nodes > maxNodes {
		return Value{}, t.fault(snapshot.ErrLimit, "one value contains more than %d others; save one line for each sample",
			maxNodes)
	}
	if !t.blanks(depth > 0) {
		return Value{}, t.cut()
	}
	switch b := t.peek(); {
	case b == '{':
		return t.dict(depth)
	case b == '[':
		return t.list(depth, ']')
	case b == '(':
		return t.list(depth, ')')
	case b == '"' || b == '\'':
		s, err := t.text()
		return Value{Kind: String, Str: s}, err
	case b == '-' || b == '+' || b == '.' || b >= '0' && b <= '9':
		return t.number()
	case isLetter(b):
		return t.word(depth)
	default:
		return Value{}, t.fault(snapshot.ErrCorrupt, "unexpected %q", rune(b))
	}
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' }

func (t *Text) dict(depth int) (Value, error) {
	t.pos++
	v := Value{Kind: Map}
	for {
		if !t.blanks(true) {
			return v, t.cut()
		}
		switch t.peek() {
		case '}':
			t.pos++
			return v, nil
		case ',':
			t.pos++
			continue
		}
		k, err := t.value(depth + 1)
		if err != nil {
			return v, err
		}
		name, ok := key(&k)
		if !ok {
			return v, t.fault(snapshot.ErrCorrupt, "the key of a dict is %s", k.Kind)
		}
		if !t.blanks(true) {
			return v, t.cut()
		}
		if t.peek() != ':' {
			return v, t.fault(snapshot.ErrCorrupt, "a colon is missing after the key %.40q", name)
		}
		t.pos++
		item, err := t.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.Keys, v.Items = append(v.Keys, t.intern(name)), append(v.Items, item)
		if err := t.separator('}'); err != nil {
			return v, err
		}
	}
}

func (t *Text) list(depth int, end byte) (Value, error) {
	t.pos++
	v := Value{Kind: List}
	for {
		if !t.blanks(true) {
			return v, t.cut()
		}
		if t.peek() == end {
			t.pos++
			return v, nil
		}
		item, err := t.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
		if err := t.separator(end); err != nil {
			return v, err
		}
	}
}

// separator reads a comma, or looks at the end of a container.
func (t *Text) separator(end byte) error {
	if !t.blanks(true) {
		return t.cut()
	}
	switch b := t.peek(); b {
	case ',':
		t.pos++
	case end:
	default:
		return t.fault(snapshot.ErrCorrupt, "%q where a comma or %q should be", rune(b), rune(end))
	}
	return nil
}

func (t *Text) intern(s string) string {
	if have, ok := t.names[s]; ok {
		return have
	}
	if len(t.names) < maxNames && len(s) < 256 {
		t.names[s] = s
	}
	return s
}

// text reads a quoted text. Most are keys without escapes that were seen before.
func (t *Text) text() (string, error) {
	quote := t.next()
	if at := bytes.IndexAny(t.buf[t.pos:min(t.end, t.pos+256)], string([]byte{quote, '\\', '\n'})); at >= 0 &&
		t.buf[t.pos+at] == quote {
		raw := t.buf[t.pos : t.pos+at]
		t.pos += at + 1
		if have, ok := t.names[string(raw)]; ok {
			return have, nil
		}
		return string(raw), nil
	}
	t.scratch = t.scratch[:0]
	for {
		if t.AtEnd() {
			return "", t.cut()
		}
		b := t.next()
		switch {
		case b == quote:
			return string(t.scratch), nil
		case b == '\n' && t.oneLine:
			return "", t.cut()
		case b == '\\':
			if err := t.escape(); err != nil {
				return "", err
			}
		default:
			t.scratch = append(t.scratch, b)
		}
		if len(t.scratch) > maxText {
			return "", t.fault(snapshot.ErrLimit, "a string of over %d bytes", maxText)
		}
	}
}

func (t *Text) escape() error {
	switch b := t.next(); b {
	case 'n', 't', 'r', 'b', 'f':
		t.scratch = append(t.scratch, map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}[b])
	case 'u', 'x':
		digits := 4
		if b == 'x' {
			digits = 2
		}
		r, err := t.hex(digits)
		if err != nil {
			return err
		}
		if utf16.IsSurrogate(r) && t.peek() == '\\' {
			t.pos++
			if t.peek() == 'u' {
				t.pos++
				low, err := t.hex(4)
				if err != nil {
					return err
				}
				r = utf16.DecodeRune(r, low)
			}
		}
		t.scratch = utf8.AppendRune(t.scratch, r)
	case 0, '\n':
		return t.cut()
	default:
		t.scratch = append(t.scratch, b)
	}
	return nil
}

func (t *Text) hex(digits int) (rune, error) {
	var r rune
	for range digits {
		b := t.next()
		n, err := strconv.ParseUint(string(rune(b)), 16, 8)
		if err != nil {
			return 0, t.fault(snapshot.ErrCorrupt, "an escape without its %d digits", digits)
		}
		r = r<<4 | rune(n)
	}
	return r, nil
}

func (t *Text) number() (Value, error) {
	t.scratch = t.scratch[:0]
	whole := true
	for !t.AtEnd() && len(t.scratch) < 400 {
		b := t.peek()
		switch {
		case b >= '0' && b <= '9' || b == '-' || b == '+':
		case b == '.' || isLetter(b): // also -Infinity
			whole = false
		default:
			return t.parse(whole)
		}
		t.scratch = append(t.scratch, b)
		t.pos++
	}
	return t.parse(whole)
}

func (t *Text) parse(whole bool) (Value, error) {
	if whole {
		if n, err := strconv.ParseInt(string(t.scratch), 10, 64); err == nil {
			return Value{Kind: Int, Int: n}, nil
		}
	}
	f, err := strconv.ParseFloat(string(t.scratch), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return Value{}, t.fault(snapshot.ErrCorrupt, "%.40q is not a number", t.scratch)
	}
	return Value{Kind: Float, Float: f}, nil
}

var constants = map[string]Value{
	"true": {Kind: Bool, Int: 1}, "True": {Kind: Bool, Int: 1}, "false": {Kind: Bool}, "False": {Kind: Bool},
	"null": {}, "None": {}, "NaN": {Kind: Float, Float: math.NaN()}, "nan": {Kind: Float, Float: math.NaN()},
	"Infinity": {Kind: Float, Float: math.Inf(1)}, "inf": {Kind: Float, Float: math.Inf(1)},
}

// word reads a name: a constant, or OrderedDict with its content.
func (t *Text) word(depth int) (Value, error) {
	t.scratch = t.scratch[:0]
	for isLetter(t.peek()) || t.peek() == '.' {
		if len(t.scratch) == 64 {
			return Value{}, t.fault(snapshot.ErrCorrupt, "%.40q is not a value", t.scratch)
		}
		t.scratch = append(t.scratch, t.next())
	}
	if v, ok := constants[string(t.scratch)]; ok {
		return v, nil
	}
	switch s := string(t.scratch); {
	case s != "OrderedDict" && s != "collections.OrderedDict":
		return Value{}, t.fault(snapshot.ErrCorrupt, "%.40q is not a value", s)
	case t.peek() != '(':
		return Value{}, t.fault(snapshot.ErrCorrupt, "OrderedDict without content")
	}
	v, err := t.list(depth, ')')
	switch {
	case err != nil:
		return v, err
	case len(v.Items) == 0:
		return Value{Kind: Map}, nil
	case len(v.Items) == 1 && v.Items[0].Kind == Map:
		return v.Items[0], nil
	case len(v.Items) == 1 && v.Items[0].Kind == List:
		if m, ok := pairs(&v.Items[0]); ok {
			return m, nil
		}
	}
	return v, t.fault(snapshot.ErrCorrupt, "OrderedDict of something other than pairs")
}
