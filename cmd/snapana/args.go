package main

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
)

// noArgs is the rule of the commands that take flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse("%s takes no arguments, got %q", cmd.Name(), args[0])
	}
	return nil
}

// oneFile is the rule of the commands that read a snapshot.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return misuse("%s takes one FILE, got %d; `snapana ranks` compares the snapshots of a distributed run",
			cmd.Name(), len(args))
	}
	return needs(1, 1, "one FILE (or - for standard input)")(cmd, args)
}

// unknown is the error for a word that is none of those known.
func unknown[S ~string](what, word string, known []S) error {
	hint, list := "", make([]string, len(known))
	if near := nearest(word, known); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	for i, k := range known {
		list[i] = string(k)
	}
	choose := "choose from " + strings.Join(list, ", ")
	return failure.Advise(cmp.Or(strings.Trim(hint, " ()"), choose),
		misuse("unknown %s %q%s; %s", what, word, hint, choose))
}

// nearest is the known word that word was probably meant to be: it begins so, or takes one or two edits.
func nearest[S ~string](word string, known []S) S {
	var found S
	least := min(3, (len(word)+2)/2)
	for _, k := range known {
		n := edits(strings.ToLower(word), string(k))
		if len(word) > 2 && strings.HasPrefix(string(k), word) {
			n = 0
		}
		if n < least {
			found, least = k, n
		}
	}
	return found
}

// edits is the number of bytes to insert, delete or change to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // from the part of a before i to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0]++
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// many is no bound on arguments.
const many = math.MaxInt

// needs is the rule of a command that takes from least to most arguments, which are what it needs;
// a # in it is how many came.
func needs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most {
			return misuse("%s needs %s; see `%s --help`", cmd.Name(),
				strings.ReplaceAll(what, "#", strconv.Itoa(n)), cmd.CommandPath())
		}
		return nil
	}
}

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

// Set reads what units.ParseSize does, of a byte or more.
func (s *size) Set(text string) error {
	v, ok := units.ParseSize(text)
	if !ok || v < 1 {
		return misuse("expected a size like 512MiB or 8GiB")
	}
	*s = size(v)
	return nil
}
