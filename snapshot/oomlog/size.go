package oomlog

import (
	"math"
	"math/bits"
)

// cursor reads words and sizes from cleaned text. Words match without regard to case and to
// white space, since logs are wrapped anywhere.
type cursor struct {
	text []byte
	i    int
}

func blank(b byte) bool { return b == ' ' || b == '\n' }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b | 0x20
	}
	return b
}

func (c *cursor) skip() {
	for c.i < len(c.text) && blank(c.text[c.i]) {
		c.i++
	}
}

// lit reads a text, given in lower case and without blanks.
func (c *cursor) lit(s string) bool {
	i := c.i
	for k := 0; k < len(s); k++ {
		for i < len(c.text) && blank(c.text[i]) {
			i++
		}
		if i == len(c.text) || lower(c.text[i]) != s[k] {
			return false
		}
		i++
	}
	c.i = i
	return true
}

// any reads the first of the texts that is there and returns its index, -1 for none.
func (c *cursor) any(texts ...string) int {
	for k, s := range texts {
		if c.lit(s) {
			return k
		}
	}
	return -1
}

// decimal reads a number with an optional fraction: digits without the point, and how many
// of them are behind it. A line may break inside it.
func (c *cursor) decimal() (digits uint64, frac int, ok bool) {
	c.skip()
	i, n, point := c.i, 0, false
	for ; i < len(c.text); i++ {
		switch b := c.text[i]; {
		case isDigit(b) && n < 18:
			digits = digits*10 + uint64(b-'0')
			n++
			if point {
				frac++
			}
			continue
		case b == '.' && !point && n > 0 && i+1 < len(c.text) && (isDigit(c.text[i+1]) || c.text[i+1] == '\n'):
			point = true
			continue
		case b == '\n' && n > 0 && i+1 < len(c.text) && (isDigit(c.text[i+1]) || c.text[i+1] == '.'):
			continue
		}
		break
	}
	if n == 0 || i < len(c.text) && isDigit(c.text[i]) {
		return 0, 0, false
	}
	c.i = i
	return digits, frac, true
}

// whole reads a whole number that fits an int32.
func (c *cursor) whole() (int, bool) {
	start := c.i
	n, frac, ok := c.decimal()
	if !ok || frac > 0 || n > math.MaxInt32 {
		c.i = start
		return 0, false
	}
	return int(n), true
}

// units in the order in which they must be tried. MPS prints powers of 1024 as KB, MB and GB.
var units = []struct {
	name  string
	shift uint
}{
	{"bytes", 0}, {"byte", 0}, {"kib", 10}, {"mib", 20}, {"gib", 30}, {"tib", 40},
	{"kb", 10}, {"mb", 20}, {"gb", 30}, {"tb", 40},
}

// size reads a printed size (snapshot/SPEC.md 7.1).
func (c *cursor) size() (Size, bool) {
	start := c.i
	digits, frac, ok := c.decimal()
	if !ok {
		return Size{}, false
	}
	for _, u := range units {
		if c.lit(u.name) && (c.i == len(c.text) || lower(c.text[c.i]) < 'a' || lower(c.text[c.i]) > 'z') {
			return scale(digits, frac, u.shift), true
		}
	}
	c.i = start
	return Size{}, false
}

// scale is digits * 10^-frac * 2^shift, rounded.
func scale(digits uint64, frac int, shift uint) Size {
	ten := uint64(1)
	for range frac {
		ten *= 10
	}
	step := int64((uint64(1)<<shift + ten - 1) / ten)
	hi, lo := bits.Mul64(digits, 1<<shift)
	lo, carry := bits.Add64(lo, ten/2, 0)
	if hi += carry; hi >= ten {
		return Size{Bytes: math.MaxInt64, Step: step}
	}
	n, _ := bits.Div64(hi, lo, ten)
	return Size{Bytes: int64(min(n, math.MaxInt64)), Step: step}
}
