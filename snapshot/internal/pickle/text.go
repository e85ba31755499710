package pickle

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/snapana/snapana/snapshot"
)

const maxLine = 1 << 24

// textOp executes the opcodes of protocol 0, whose arguments are lines of text.
func (l *loop) textOp(op byte) error {
	b, p, ok := l.src.line(l.p, maxLine)
	l.window(p)
	if !ok {
		if len(b) > maxLine {
			return corrupt("has an argument without an end")
		}
		return l.truncated()
	}
	switch op {
	case opInt:
		if s := string(b); s == "00" || s == "01" {
			return l.push(value{u: uint64(s[1] - '0'), kind: kBool})
		}
		return l.pushDecimal(b)
	case opLong:
		return l.pushDecimal(bytes.TrimSuffix(b, []byte("L")))
	case opFloat:
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return corrupt("expected a number, got %.20q", b)
		}
		return l.push(value{u: math.Float64bits(f), kind: kFloat})
	case opGet, opPut:
		i, err := strconv.ParseUint(string(b), 10, 63)
		if err != nil {
			return corrupt("expected a memo index, got %.20q", b)
		}
		if op == opPut {
			return l.put(i)
		}
		return l.get(i)
	case opString:
		if len(b) < 2 || b[0] != b[len(b)-1] || b[0] != '\'' && b[0] != '"' {
			return corrupt("expected a quoted string")
		}
		return l.push(value{u: uint64(l.intern(unescape(b[1:len(b)-1], true))), kind: kStr})
	case opUnicode:
		return l.push(value{u: uint64(l.intern(unescape(b, false))), kind: kStr})
	}
	name, p, ok := l.src.line(l.p, maxLine)
	l.window(p)
	if !ok {
		return l.truncated()
	}
	return l.global(string(b), string(name))
}

func (d *machine) pushDecimal(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		return d.pushInt(n)
	}
	if n, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		return d.push(value{u: n, kind: kUint})
	}
	if len(b) > 4096 {
		return &fault{snapshot.ErrLimit, "has a number with thousands of digits"}
	}
	if _, ok := new(big.Int).SetString(string(b), 10); !ok {
		return corrupt("expected a number, got %.20q", b)
	}
	return d.push(value{kind: kBig})
}

// unescape reads the raw-unicode-escape form of protocol 0 (\uXXXX, \UXXXXXXXX, other bytes
// are Latin-1), or with full set the escapes of a Python 2 string literal.
func unescape(b []byte, full bool) []byte {
	out := make([]byte, 0, len(b))
	digits := map[byte]int{'u': 4, 'U': 8}
	if full {
		digits = map[byte]int{'x': 2}
	}
	for len(b) > 0 {
		if b[0] == '\\' && len(b) > 1 {
			if at := bytes.IndexByte([]byte(`\'"nrt`), b[1]); at >= 0 && full {
				out, b = append(out, "\\'\"\n\r\t"[at]), b[2:]
				continue
			}
			if end := 2 + digits[b[1]]; end > 2 && end <= len(b) {
				if n, err := strconv.ParseUint(string(b[2:end]), 16, 32); err == nil {
					if full {
						out = append(out, byte(n))
					} else {
						out = appendRune(out, uint32(n))
					}
					b = b[end:]
					continue
				}
			}
		}
		if full {
			out = append(out, b[0])
		} else {
			out = utf8.AppendRune(out, rune(b[0]))
		}
		b = b[1:]
	}
	return out
}

// appendRune is UTF-8 with surrogatepass: lone surrogates are encoded like any other code.
func appendRune(out []byte, r uint32) []byte {
	if r >= 0xd800 && r < 0xe000 {
		return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0xbf, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(out, rune(r))
}
