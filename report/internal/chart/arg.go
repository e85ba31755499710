package chart

import (
	"strings"
	"unicode"
)

// Arg is a file's name as an argument of a command that users copy to a shell: the names of files that others gave
// them cannot make it do anything else.
func Arg(name string) string {
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./+:@%,=", r)
	}
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
