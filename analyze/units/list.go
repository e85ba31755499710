package units

import "strings"

// List joins words as in a sentence: "reserved, active and allocated".
func List(words []string) string { return join(words, " and ") }

// Or is List of what there is one of: "alloc, free_requested or free_completed".
func Or(words []string) string { return join(words, " or ") }

func join(words []string, last string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + last + words[n-1]
	}
	return strings.Join(words, "")
}
