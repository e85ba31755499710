package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/snapana/snapana/report/text"
)

// look says how to print to w: in colors and as wide as it is on a terminal, else plain.
func look(w io.Writer) text.Options {
	columns := 0
	if isTerminal(w) {
		if n, _, err := term.GetSize(int(w.(*os.File).Fd())); err == nil {
			columns = n
		}
	}
	return lookOn(isTerminal(w), columns, os.Getenv)
}

// lookOn decides by the variables that terminals agree on: NO_COLOR (no-color.org) forbids
// colors, CLICOLOR_FORCE (bixense.com/clicolors) asks for them also where nobody looks.
func lookOn(terminal bool, columns int, env func(string) string) text.Options {
	force := env("CLICOLOR_FORCE")
	return text.Options{
		Color: env("NO_COLOR") == "" && (terminal || force != "" && force != "0"),
		Width: columns,
	}
}
