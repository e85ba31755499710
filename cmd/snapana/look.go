package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/snapana/snapana/report/text"
)

// lookFlags say how results are printed. All commands have them.
type lookFlags struct {
	width int
	color string
}

var colors = []string{"auto", "always", "never"}

func (f *lookFlags) add(root *cobra.Command) {
	fl := root.PersistentFlags()
	fl.IntVar(&f.width, "width", 0, fmt.Sprintf("print lines of at most so many `COLUMNS`, %d or more\n"+
		"(default: as wide as the terminal is, elsewhere 100)", text.MinWidth))
	fl.StringVar(&f.color, "color", "auto", "use colors `WHEN`: auto (on a terminal), always or never")
	fl.Lookup("color").DefValue = "" // the words say it
	oneOf(root, "color", colors)
}

func (f *lookFlags) check() error {
	if f.width != 0 && f.width < text.MinWidth {
		return misuse("invalid --width %d; expected %d columns or more", f.width, text.MinWidth)
	}
	for _, c := range colors {
		if c == f.color {
			return nil
		}
	}
	return unknown("--color", f.color, colors)
}

// look says how to print on standard output.
func look(cmd *cobra.Command) text.Options {
	var f lookFlags
	if fl := cmd.Flags().Lookup("width"); fl != nil {
		f.width, _ = strconv.Atoi(fl.Value.String())
		f.color = cmd.Flags().Lookup("color").Value.String()
	}
	w := cmd.OutOrStdout()
	o := f.on(isTerminal(w), columns(w), os.Getenv)
	o.Brief = isBrief(cmd)
	return o
}

// addBrief adds --brief, which every command has that prints JSON.
func addBrief(fl *pflag.FlagSet) {
	fl.Bool("brief", false, "print 5 lines at most: verdict, why, figures, next step, gaps")
}

func isBrief(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("brief")
	return f != nil && f.Value.String() == "true"
}

// alone wants --brief without what else chooses how results are printed.
func alone(cmd *cobra.Command) error {
	format := cmd.Flags().Lookup("format")
	switch {
	case !isBrief(cmd):
	case wantsJSON(cmd), format != nil && format.Value.String() != "text":
		return misuse("--brief prints text and cannot be used with --json or another --format")
	case cmd.Flags().Lookup("quiet") != nil && cmd.Flags().Changed("quiet"):
		return misuse("--brief cannot be used with --quiet")
	}
	return nil
}

// on decides how to print, on a terminal of so many columns or elsewhere. What a flag asks for goes before variables,
// and these before the terminal itself: COLUMNS is its width, NO_COLOR (no-color.org) and CLICOLOR=0 forbid colors,
// FORCE_COLOR (force-color.org) and CLICOLOR_FORCE (bixense.com/clicolors) ask for them also where nobody looks.
func (f *lookFlags) on(terminal bool, columns int, env func(string) string) text.Options {
	o := text.Options{Width: columns, ASCII: !utf8Locale(env)}
	if n, err := strconv.Atoi(env("COLUMNS")); err == nil && n > 0 {
		o.Width = n
	}
	if f.width > 0 {
		o.Width = f.width
	}
	is := func(name string) bool { return env(name) != "" && env(name) != "0" }
	switch {
	case f.color == "always" || f.color == "never":
		o.Color = f.color == "always"
	case env("NO_COLOR") != "" || env("FORCE_COLOR") == "0":
	case is("FORCE_COLOR") || is("CLICOLOR_FORCE"):
		o.Color = true
	default:
		o.Color = terminal && env("CLICOLOR") != "0"
	}
	return o
}

// utf8Locale reports whether the locale has characters to draw with. Where none is set, as in most containers, it does:
// nearly all terminals are UTF-8.
func utf8Locale(env func(string) string) bool {
	locale := strings.ToLower(cmp.Or(env("LC_ALL"), env("LC_CTYPE"), env("LANG")))
	return locale == "" || strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

// file is the file behind a writer of a command, nil where there is none.
func file(w io.Writer) *os.File {
	if s, ok := w.(*results); ok {
		w = s.Writer
	}
	f, _ := w.(*os.File)
	return f
}

// isTerminal reports whether w is a terminal that shows colors and lines that change, and that a person looks at.
func isTerminal(w io.Writer) bool {
	f := file(w)
	return f != nil && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// columns is how wide a terminal is, 0 where w is none.
func columns(w io.Writer) int {
	if f := file(w); f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return n
		}
	}
	return 0
}
