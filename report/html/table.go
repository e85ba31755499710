package html

import "github.com/snapana/snapana/report/internal/chart"

// table is a table of texts, as the template "table" shows it.
type table struct {
	Class   string
	Columns []column
	Rows    [][]string
	More    string // what the rows leave out
}

// column has the classes of its head and of the cells below.
type column struct{ Head, Class, Cell string }

func words(head string) column   { return column{Head: head} }
func sites(head string) column   { return column{head, "", "path"} }
func numbers(head string) column { return column{head, "n", "n"} }
func strong(head string) column  { return column{head, "n", "n b"} }

func newTable(class string, columns ...column) *table { return &table{Class: class, Columns: columns} }

func (t *table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// site makes a text that names a place in a program, by its end.
func site(s string) string { return chart.ClipLeft(text(s), frameText) }
