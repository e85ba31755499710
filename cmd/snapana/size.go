package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// size is a flag value in bytes.
type size int64

var _ pflag.Value = (*size)(nil)

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (s *size) Type() string { return "size" }

// Set reads a number of bytes with an optional unit: k, M, G, T, each also as KiB or KB; all
// are powers of 1024.
func (s *size) Set(text string) error {
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
	if err != nil || !(v >= 1 && v < math.MaxInt64) {
		return fmt.Errorf("expected a size like 512MiB or 8GiB")
	}
	*s = size(v)
	return nil
}

// sizeOrZero is a size that may be 0.
type sizeOrZero struct{ size }

func (s *sizeOrZero) Set(text string) error {
	if text == "0" {
		s.size = 0
		return nil
	}
	return s.size.Set(text)
}
