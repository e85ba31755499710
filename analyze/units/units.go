// Package units prints sizes, counts and times for people. Sizes are IEC (1 GiB = 2^30
// bytes) with at least three significant digits; machine output uses raw integers instead.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var suffixes = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// Size is a number of bytes that prints as Bytes does; in JSON it is a number.
type Size int64

func (n Size) String() string { return Bytes(int64(n)) }

// Bytes prints n bytes: "512 B", "1.50 KiB", "62.4 GiB". The unit is chosen by the printed
// value, so that 1023.9999 MiB reads "1.00 GiB" and never "1024 MiB".
func Bytes(n int64) string {
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	if u < 1024 {
		return fmt.Sprintf("%s%d B", sign, u)
	}
	v, i := float64(u), 0
	for v >= 1024 && i < len(suffixes)-1 {
		v, i = v/1024, i+1
	}
	s := digits(v)
	if s == "1024" && i < len(suffixes)-1 {
		s, i = "1.00", i+1
	}
	return sign + s + " " + suffixes[i]
}

// Signed prints n bytes with a sign: "+512 B", "-1.50 KiB", "0 B".
func Signed(n int64) string {
	switch {
	case n > 0:
		return "+" + Bytes(n)
	case n < 0:
		return "-" + Bytes(-n)
	}
	return Bytes(0)
}

func digits(v float64) string {
	switch {
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// Count prints n with a space between groups of three digits: "1 300 000".
func Count[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	if neg {
		return "-" + s
	}
	return s
}

// Plural prints n with its noun: "1 block", "2 000 blocks", "0 retries". A noun whose plural no rule
// makes comes with it: Plural(n, "child", "children").
func Plural[N int | int64](n N, noun string, plural ...string) string {
	switch {
	case n == 1:
	case len(plural) > 0:
		noun = plural[0]
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "ch"):
		noun += "es"
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return Count(n) + " " + noun
}

// Times prints how often something happened: "once", "0 times", "2 000 times".
func Times[N int | int64](n N) string {
	if n == 1 {
		return "once"
	}
	return Count(n) + " times"
}

// Percent prints part of whole, "-" when whole is zero.
func Percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	p := 100 * float64(part) / float64(whole)
	if p != 0 && p < 9.95 && p > -9.95 {
		return fmt.Sprintf("%.1f%%", p)
	}
	return fmt.Sprintf("%.0f%%", p)
}

// Micros prints a span of microseconds: "83 µs", "1.20 s", "2m30s".
func Micros(us int64) string {
	d := time.Duration(us) * time.Microsecond
	switch {
	case us < 1000:
		return fmt.Sprintf("%d µs", us)
	case us < 1e6:
		return digits(float64(us)/1e3) + " ms"
	case us < 60e6:
		return digits(float64(us)/1e6) + " s"
	}
	return d.Round(time.Second).String()
}

// ParseSize reads a number of bytes with an optional unit: k, M, G, T, each also as KiB or KB; all are powers of 1024.
// It reports whether it is one, of 0 or more.
func ParseSize(text string) (n int64, ok bool) {
	num := strings.ToLower(strings.TrimSpace(text))
	num = strings.TrimSuffix(strings.TrimSuffix(num, "b"), "i")
	shift := 0
	if n := len(num); n > 0 {
		if at := strings.IndexByte("kmgt", num[n-1]); at >= 0 {
			shift, num = 10*(at+1), strings.TrimSpace(num[:n-1])
		}
	}
	v, err := strconv.ParseFloat(num, 64)
	v = math.Ldexp(v, shift)
	return int64(v), err == nil && v >= 0 && v < math.MaxInt64
}
