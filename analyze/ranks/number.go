package ranks

import (
	"regexp"
	"slices"
	"strconv"
)

var (
	named  = regexp.MustCompile(`(?i)rank[^0-9A-Za-z]?([0-9]{1,7})`)
	digits = regexp.MustCompile(`[0-9]+`)
)

// numbers tells the ranks of files from their names: by the number behind the word rank, and
// where no name has it, by the only number in which the names differ. -1 is unknown; a number that
// two files have tells nothing.
func numbers(files []string) []int {
	out := slices.Repeat([]int{-1}, len(files))
	some := false
	for i, f := range files {
		if all := named.FindAllStringSubmatch(f, -1); len(all) > 0 {
			out[i], some = number(all[len(all)-1][1]), true
		}
	}
	if !some {
		differing(files, out)
	}
	seen := make(map[int]int)
	for _, n := range out {
		seen[n]++
	}
	for i, n := range out {
		if seen[n] > 1 {
			out[i] = -1
		}
	}
	return out
}

// differing fills in the numbers of names that are equal but for one number.
func differing(files []string, out []int) {
	if len(files) < 2 {
		return
	}
	at, shape := -1, digits.ReplaceAllString(files[0], "0")
	first := digits.FindAllString(files[0], -1)
	for _, f := range files[1:] {
		if digits.ReplaceAllString(f, "0") != shape {
			return
		}
		for i, n := range digits.FindAllString(f, -1) {
			if n == first[i] {
				continue
			}
			if at >= 0 && at != i {
				return
			}
			at = i
		}
	}
	if at < 0 {
		return
	}
	for i, f := range files {
		out[i] = number(digits.FindAllString(f, -1)[at])
	}
}

// number is -1 where there are too many digits for a rank.
func number(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n < 1e7 {
		return n
	}
	return -1
}
