package text

import "github.com/snapana/snapana/report/internal/chart"

// Arg is a file's name as an argument of a command that users copy to a shell.
func Arg(name string) string { return chart.Arg(name) }

// ClipLeft shortens a path-like text to n columns of a terminal by cutting its start.
func ClipLeft(s string, n int) string { return chart.ClipLeft(s, n) }
