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

// value reads a value. After a fault, here and below, nothing more is read, and the value is of no use.
func (t *Text) value(depth int) (v Value) {
	t.nodes++
	switch {
	case depth > maxDepth:
		t.fault(snapshot.ErrLimit, "values are nested more than %d deep", maxDepth)
	case t.nodes > maxNodes:
		t.fault(snapshot.ErrLimit, "one value contains more than %d others; save one line for each sample", maxNodes)
	case !t.blanks(depth > 0):
		t.cut()
	}
	if t.bad != nil {
		return v
	}
	switch b := t.peek(); {
	case b == '{':
		return t.items(Map, '}', depth)
	case b == '[':
		return t.items(List, ']', depth)
	case b == '(':
		return t.items(List, ')', depth)
	case b == '"' || b == '\'':
		return Value{Kind: String, Str: t.text()}
	case b == '-' || b == '+' || b == '.' || b >= '0' && b <= '9':
		return t.number()
	case isLetter(b):
		return t.word(depth)
	default:
		t.fault(snapshot.ErrCorrupt, "unexpected %q", rune(b))
	}
	return v
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' }

// items reads a List or a Map.
func (t *Text) items(kind Kind, end byte, depth int) Value {
	t.pos++
	v := Value{Kind: kind}
	for t.more() {
		switch b := t.peek(); {
		case b == end:
			t.pos++
			return v
		case b == ',' && kind == Map:
			t.pos++
			continue
		}
		item := t.value(depth + 1)
		if kind == Map && t.bad == nil {
			name := t.key(&item)
			item = t.value(depth + 1)
			v.Keys = append(v.Keys, t.intern(name))
		}
		v.Items = append(v.Items, item)
		if !t.more() {
			break
		}
		switch b := t.peek(); b {
		case ',':
			t.pos++
		case end:
		default:
			t.fault(snapshot.ErrCorrupt, "%q where a comma or %q should be", rune(b), rune(end))
		}
	}
	return v
}

// more skips white space inside a value; false where that does not go on.
func (t *Text) more() bool {
	if t.bad == nil && !t.blanks(true) {
		t.cut()
	}
	return t.bad == nil
}

// key is v as the key of a dict, with the colon behind it read.
func (t *Text) key(v *Value) string {
	name, ok := key(v)
	switch {
	case !ok:
		t.fault(snapshot.ErrCorrupt, "the key of a dict is %s", v.Kind)
	case t.more() && t.peek() != ':':
		t.fault(snapshot.ErrCorrupt, "a colon is missing after the key %.40q", name)
	case t.bad == nil:
		t.pos++
	}
	return name
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
func (t *Text) text() string {
	quote := t.next()
	if at := bytes.IndexAny(t.buf[t.pos:min(t.end, t.pos+256)], string([]byte{quote, '\\', '\n'})); at >= 0 &&
		t.buf[t.pos+at] == quote {
		raw := t.buf[t.pos : t.pos+at]
		t.pos += at + 1
		if have, ok := t.names[string(raw)]; ok {
			return have
		}
		return string(raw)
	}
	t.scratch = t.scratch[:0]
	for t.bad == nil {
		if t.AtEnd() {
			t.cut()
			break
		}
		switch b := t.next(); {
		case b == quote:
			return string(t.scratch)
		case b == '\n' && t.oneLine:
			t.cut()
		case b == '\\':
			t.escape()
		default:
			t.scratch = append(t.scratch, b)
		}
		if t.bad == nil && len(t.scratch) > maxText {
			t.fault(snapshot.ErrLimit, "a string of over %d bytes", maxText)
		}
	}
	return ""
}

func (t *Text) escape() {
	switch b := t.next(); b {
	case 'n', 't', 'r', 'b', 'f':
		t.scratch = append(t.scratch, map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}[b])
	case 'u', 'x':
		digits := 4
		if b == 'x' {
			digits = 2
		}
		r := t.hex(digits)
		if utf16.IsSurrogate(r) && t.peek() == '\\' {
			t.pos++
			if t.peek() == 'u' {
				t.pos++
				r = utf16.DecodeRune(r, t.hex(4))
			}
		}
		t.scratch = utf8.AppendRune(t.scratch, r)
	case 0, '\n':
		t.cut()
	default:
		t.scratch = append(t.scratch, b)
	}
}

// hex reads the digits of an escape, 0 where they are none.
func (t *Text) hex(digits int) (r rune) {
	for range digits {
		n, err := strconv.ParseUint(string(rune(t.next())), 16, 8)
		if err != nil {
			t.fault(snapshot.ErrCorrupt, "an escape without its %d digits", digits)
			return 0
		}
		r = r<<4 | rune(n)
	}
	return r
}

func (t *Text) number() Value {
	t.scratch = t.scratch[:0]
	whole := true
loop:
	for !t.AtEnd() && len(t.scratch) < 400 {
		b := t.peek()
		switch {
		case b >= '0' && b <= '9' || b == '-' || b == '+':
		case b == '.' || isLetter(b): // also -Infinity
			whole = false
		default:
			break loop
		}
		t.scratch = append(t.scratch, b)
		t.pos++
	}
	if n, err := strconv.ParseInt(string(t.scratch), 10, 64); err == nil && whole {
		return Value{Kind: Int, Int: n}
	}
	f, err := strconv.ParseFloat(string(t.scratch), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		t.fault(snapshot.ErrCorrupt, "%.40q is not a number", t.scratch)
	}
	return Value{Kind: Float, Float: f}
}

var constants = map[string]Value{
	"true": {Kind: Bool, Int: 1}, "True": {Kind: Bool, Int: 1}, "false": {Kind: Bool}, "False": {Kind: Bool},
	"null": {}, "None": {}, "NaN": {Kind: Float, Float: math.NaN()}, "nan": {Kind: Float, Float: math.NaN()},
	"Infinity": {Kind: Float, Float: math.Inf(1)}, "inf": {Kind: Float, Float: math.Inf(1)},
}

// word reads a name: a constant, or OrderedDict with its content.
func (t *Text) word(depth int) (v Value) {
	t.scratch = t.scratch[:0]
	for isLetter(t.peek()) || t.peek() == '.' {
		if len(t.scratch) == 64 {
			t.fault(snapshot.ErrCorrupt, "%.40q is not a value", t.scratch)
			return v
		}
		t.scratch = append(t.scratch, t.next())
	}
	if v, ok := constants[string(t.scratch)]; ok {
		return v
	}
	switch s := string(t.scratch); {
	case s != "OrderedDict" && s != "collections.OrderedDict":
		t.fault(snapshot.ErrCorrupt, "%.40q is not a value", s)
		return v
	case t.peek() != '(':
		t.fault(snapshot.ErrCorrupt, "OrderedDict without content")
		return v
	}
	v = t.items(List, ')', depth)
	switch {
	case t.bad != nil:
		return v
	case len(v.Items) == 0:
		return Value{Kind: Map}
	case len(v.Items) == 1 && v.Items[0].Kind == Map:
		return v.Items[0]
	case len(v.Items) == 1 && v.Items[0].Kind == List:
		if m, ok := pairs(&v.Items[0]); ok {
			return m
		}
	}
	t.fault(snapshot.ErrCorrupt, "OrderedDict of something other than pairs")
	return v
}
