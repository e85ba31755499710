package sidecar

import (
	"fmt"
	"math"
	"strings"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/snapana/snapana/snapshot"
)

// cursor decodes one record that scan has measured, so that it lies in the frame as a whole. The first
// error sticks, and everything after it is zero.
type cursor struct {
	frame   []byte
	at      int   // next byte of the frame
	base    int64 // offset of the frame in the file
	path    []string
	unknown map[string]int64
	names   map[int64][]string // of statistics, of the last run, by id
	err     error
}

func (c *cursor) reset(frame []byte, base int64) {
	c.frame, c.at, c.base, c.path, c.err = frame, 0, base, c.path[:0], nil
}

func (c *cursor) fail(msg string) {
	if c.err == nil {
		c.err = &FormatError{Offset: c.base + int64(c.at), Op: strings.Join(c.path, "."), Msg: msg,
			Err: snapshot.ErrCorrupt}
	}
}

// peek gives the code of the next value.
func (c *cursor) peek() byte {
	if c.err == nil && c.at < len(c.frame) {
		return c.frame[c.at]
	}
	return msgpcode.Nil
}

func (c *cursor) skip() {
	if n, err := scan(c.frame[c.at:]); err == nil && c.err == nil {
		c.at += n
	}
}

// head goes behind the head of the next value and gives how many bytes or values follow it.
func (c *cursor) head() int {
	head, body, inside, _ := measure(c.frame[c.at:])
	c.at += head
	if inside != leaf {
		return int(inside)
	}
	return int(body)
}

func (c *cursor) mapLen() int {
	if code := c.peek(); !msgpcode.IsFixedMap(code) && code != msgpcode.Map16 && code != msgpcode.Map32 {
		c.fail("is not a map")
		return 0
	}
	return c.head() / 2
}

// pairs takes n keys with their values, and calls field for each that is not nil, which means the same as
// nothing; field returns false for a key that it does not know.
func (c *cursor) pairs(n int, field func(key string) bool) {
	for ; n > 0 && c.err == nil; n-- {
		if !msgpcode.IsString(c.peek()) {
			c.fail("a key is not a string")
			return
		}
		key := c.str()
		c.path = append(c.path, key)
		switch {
		case c.peek() == msgpcode.Nil:
			c.at++
		case !field(key):
			c.count()
			c.skip()
		}
		c.path = c.path[:len(c.path)-1]
	}
}

// Bounds of the unknown names that are told apart, and of each.
const (
	maxUnknown = 64
	maxName    = 80
)

// count counts the value at the cursor as unknown.
func (c *cursor) count() {
	name := strings.Join(c.path, ".")
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	if _, have := c.unknown[name]; !have && len(c.unknown) >= maxUnknown {
		name = "others"
	}
	c.unknown[name]++
}

// list reads a list of what item reads. A length is no mere claim: each value takes at least a byte of
// the frame.
func list[T any](c *cursor, item func() T) []T {
	n := c.listLen()
	out := make([]T, 0, n)
	for ; n > 0 && c.err == nil; n-- {
		out = append(out, item())
	}
	return out
}

func (c *cursor) listLen() int {
	if code := c.peek(); !msgpcode.IsFixedArray(code) && code != msgpcode.Array16 && code != msgpcode.Array32 {
		c.fail("is not a list")
		return 0
	}
	return c.head()
}

func (c *cursor) str() string {
	if !msgpcode.IsString(c.peek()) {
		c.fail("is not a string")
		return ""
	}
	n := c.head()
	c.at += n
	return strings.ToValidUTF8(string(c.frame[c.at-n:c.at]), "\uFFFD")
}

func isInt(code byte) bool {
	return msgpcode.IsFixedNum(code) || code >= msgpcode.Uint8 && code <= msgpcode.Int64
}

func (c *cursor) int() int64 {
	u, unsigned := c.integer()
	if unsigned && u > math.MaxInt64 {
		c.fail("is larger than any possible size")
	}
	return int64(u)
}

// integer reads a number, and says whether that is one without a sign.
func (c *cursor) integer() (u uint64, unsigned bool) {
	code := c.peek()
	if !isInt(code) {
		c.fail("is not an integer")
		return 0, false
	}
	c.at++
	if msgpcode.IsFixedNum(code) {
		return uint64(int8(code)), false
	}
	size := 1 << (code & 3) // the codes of one to eight bytes follow each other
	for _, b := range c.frame[c.at : c.at+size] {
		u = u<<8 | uint64(b)
	}
	c.at += size
	if code < msgpcode.Int8 {
		return u, true
	}
	above := 64 - 8*size
	return uint64(int64(u<<above) >> above), false
}

func (c *cursor) bool() bool {
	code := c.peek()
	if code != msgpcode.True && code != msgpcode.False {
		c.fail("is neither true nor false")
		return false
	}
	c.at++
	return code == msgpcode.True
}

// column reads a list of integers from low to high.
func column[T ~int32 | ~int64 | ~uint8 | ~uint32](c *cursor, low, high int64) []T {
	return list(c, func() T {
		v := c.int()
		if v < low || v > high {
			c.fail(fmt.Sprintf("%d is outside %d to %d", v, low, high))
		}
		return T(v)
	})
}

// address reads an unsigned integer, which may have its highest bit set.
func (c *cursor) address() uint64 {
	u, unsigned := c.integer()
	if !unsigned && int64(u) < 0 {
		c.fail("an address is negative")
	}
	return u
}

// scalar reads a string, an integer or a bool, nil for anything else.
func (c *cursor) scalar() any {
	switch code := c.peek(); {
	case msgpcode.IsString(code):
		return c.str()
	case isInt(code):
		return c.int()
	case code == msgpcode.True || code == msgpcode.False:
		return c.bool()
	}
	return nil
}
