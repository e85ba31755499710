package allocator

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// blanks is what C takes for white space.
const blanks = " \t\n\v\f\r"

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// integer reads a text as C's strtoull: white space, a sign, and digits as far as they go. It is not ok without a
// digit, and does not fit where the digits are too many.
func integer(text string) (neg bool, n uint64, ok, fits bool) {
	text = strings.TrimLeft(text, blanks)
	if text != "" && (text[0] == '-' || text[0] == '+') {
		neg, text = text[0] == '-', text[1:]
	}
	end := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.ParseUint(text[:end], 10, 64)
	return neg, n, end > 0, err == nil
}

var float = regexp.MustCompile(`(?i)^[+-]?(0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?[0-9]+)?|` +
	`([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)`)

// decimal reads a text as C's strtod, and gives the part that is a number, "" for none. What underflows does not fit.
func decimal(text string) (v float64, used string, fits bool) {
	used = float.FindString(strings.TrimLeft(text, blanks))
	if used == "" {
		return 0, "", false
	}
	number := strings.ToLower(used)
	if strings.Contains(number, "0x") && !strings.Contains(number, "p") {
		number += "p0"
	}
	v, err := strconv.ParseFloat(number, 64)
	const least = 0x1p-1022
	tiny := v > -least && v < least && strings.ContainsAny(strings.Split(number, "e")[0], "123456789")
	return v, used, !errors.Is(err, strconv.ErrRange) && !tiny
}
