// Package address answers who lives at an address of a device: now, before and after a moment, which is what an
// illegal memory access or a use after free asks. An owner of an address is a block whose rounded size holds it;
// an address may also be in a segment where no block lives, or in none.
package address

import (
	"fmt"
	"strconv"
	"strings"
)

// Query is an address as a user typed it.
type Query struct {
	// Addresses are what it can mean, the likeliest first: digits may be decimal or hexadecimal, and a b before
	// hexadecimal digits may be one of them.
	Addresses []uint64
	// Generation is that of a name of memory_viz, -1 for none.
	Generation int32
}

// Forms is what Parse understands, for help and errors.
const Forms = "0x7f064c00000, 7f064c00000, a name of memory_viz like b7f064c00000_2, or a decimal number"

// Parse reads an address in one of the Forms; s7f064c00000_0 is memory_viz's name of a segment. Digits alone are
// decimal, as pickles and data_ptr() print them, unless only the hexadecimal number is one that a file knows.
func Parse(text string) (Query, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	q := Query{Generation: -1}
	add := func(digits string, base int) {
		if v, err := strconv.ParseUint(digits, base, 64); err == nil && !strings.HasPrefix(digits, "+") {
			q.Addresses = append(q.Addresses, v)
		}
	}
	hex, isHex := strings.CutPrefix(word, "0x")
	name, generation, isName := strings.Cut(word, "_")
	switch {
	case isHex:
		add(hex, 16)
	case isName:
		n, err := strconv.ParseInt(generation, 10, 32)
		if len(name) < 2 || name[0] != 'b' && name[0] != 's' || err != nil || n < 0 || generation[0] == '+' {
			break
		}
		if add(strings.TrimPrefix(name[1:], "0x"), 16); name[0] == 'b' {
			q.Generation = int32(n)
		}
	default:
		add(word, 10)
		add(word, 16)
		if len(word) > 1 && (word[0] == 'b' || word[0] == 's') {
			add(strings.TrimPrefix(word[1:], "0x"), 16)
		}
	}
	if len(q.Addresses) == 0 {
		return q, fmt.Errorf("invalid address %q; expected %s", text, Forms)
	}
	return q, nil
}
