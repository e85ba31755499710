package chart

import "github.com/rivo/uniseg"

// Width is how many columns a text takes on a terminal: a wide character takes two, a combining one none.
func Width(s string) int {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return uniseg.StringWidth(s)
		}
	}
	return len(s)
}

// Cut takes a text apart: into its beginning of at most n columns, and the rest. It never cuts within what is seen as one
// character.
func Cut(s string, n int) (head, rest string) {
	at, state := 0, -1
	for rest = s; rest != ""; {
		var cluster string
		var width int
		cluster, rest, width, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if n -= width; n < 0 {
			break
		}
		at += len(cluster)
	}
	return s[:at], s[at:]
}

// Clip shortens a text to n columns by cutting its end.
func Clip(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	head, _ := Cut(s, n-1)
	return head + "…"
}

// ClipLeft shortens a path-like text to n columns by cutting its start, where the least telling part of a path is.
func ClipLeft(s string, n int) string {
	over := Width(s) - n
	if over <= 0 {
		return s
	}
	return "…" + skip(s, over+1)
}

// skip is a text without its first n columns, and without the other half of a wide character.
func skip(s string, n int) string {
	for state := -1; n > 0 && s != ""; {
		var width int
		_, s, width, state = uniseg.FirstGraphemeClusterInString(s, state)
		n -= width
	}
	return s
}

// clipMiddle shortens a text to n columns, of both ends alike.
func clipMiddle(s string, n int) string {
	have := Width(s)
	if have <= n {
		return s
	}
	head, _ := Cut(s, n/2)
	return head + "…" + skip(s, have-(n-n/2-1))
}
