package snapshot

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Endings of file names: of what packs a file, and of what holds a snapshot.
var (
	packed = []string{".gz", ".zst", ".xz", ".bz2", ".zip"}
	forms  = append([]string{".pickle", ".pkl", ".json", ".html"}, packed...)
)

// PlainName takes the endings of compression off a file name.
func PlainName(name string) string { return trim(name, packed) }

// Stem is what the files that belong to a snapshot are called after: the base name of its path without
// the endings that tell what it is.
func Stem(path string) string { return trim(filepath.Base(path), forms) }

func trim(name string, endings []string) string {
	for {
		ext := filepath.Ext(name)
		if ext == name || !slices.Contains(endings, strings.ToLower(ext)) {
			return name
		}
		name = strings.TrimSuffix(name, ext)
	}
}

var ranked = regexp.MustCompile(`(?i)rank[^0-9A-Za-z]?([0-9]{1,7})`)

// RunName is what the files of all ranks of a run are called: the stem of a path without the rank that it names, "" where
// it has nothing else.
func RunName(path string) string {
	stem := Stem(path)
	all := ranked.FindAllStringIndex(stem, -1)
	if len(all) == 0 {
		return stem
	}
	last := all[len(all)-1]
	return strings.Trim(stem[:last[0]]+stem[last[1]:], "_-. ")
}

// NamedRank is the rank that the name of a file tells, by the last number behind the word rank; -1 for none.
func NamedRank(name string) int {
	all := ranked.FindAllStringSubmatch(name, -1)
	if len(all) == 0 {
		return -1
	}
	n, _ := strconv.Atoi(all[len(all)-1][1])
	return n
}
