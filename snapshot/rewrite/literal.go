package rewrite

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"
)

// literal is a text as an opcode of the same kind.
func literal(op byte, now string) []byte {
	n := len(now)
	switch op {
	case 'V':
		return []byte("V" + escape(now) + "\n")
	case 'S':
		return []byte("S'" + strings.ReplaceAll(escape(now), "'", `\x27`) + "'\n")
	case 0x8c, 'U', 'C':
		if n < 256 {
			return append([]byte{op, byte(n)}, now...)
		}
		op = map[byte]byte{0x8c: 'X', 'U': 'T', 'C': 'B'}[op]
	}
	b := []byte{op}
	if widths[op] == 8 {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return append(b, now...)
}

// unescape reads the escapes of a line of protocol 0.
func unescape(s string) string {
	if !strings.Contains(s, `\`) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteRune(rune(s[i])) // Latin-1
			continue
		}
		i++
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		if digits > 0 && i+digits < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32); err == nil {
				b.WriteRune(rune(v))
				i += digits
				continue
			}
		}
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case '\\', '\'', '"':
			b.WriteByte(s[i])
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// escape writes them.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= ' ' && r < 0x7f && r != '\\':
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(`\U` + pad(r, 8))
		default:
			b.WriteString(`\u` + pad(r, 4))
		}
	}
	return b.String()
}

func pad(r rune, n int) string {
	hex := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", n-len(hex)) + hex
}
