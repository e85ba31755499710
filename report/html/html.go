package html

import (
	"bufio"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"snapana/analyze"
)

//go:embed page.tmpl
var pageTemplate string

//go:embed fragments.tmpl
var fragmentsTemplate string

//go:embed style.css
var style string

// Write writes the report on r. Equal results give equal bytes.
func Write(w io.Writer, r *analyze.Result) error {
	t, err := template.New("page").Parse(fragmentsTemplate + pageTemplate)
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	p := newPage(r)
	p.Style = template.CSS(style)
	b := bufio.NewWriter(w)
	if err := t.Execute(b, p); err != nil {
		return fmt.Errorf("write html report: %w", err)
	}
	return b.Flush()
}
