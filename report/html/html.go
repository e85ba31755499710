package html

import (
	"bufio"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"snapana/analyze"
	"snapana/analyze/units"
	"snapana/report/internal/view"
)

//go:embed page.tmpl
var pageTemplate string

//go:embed fragments.tmpl
var fragmentsTemplate string

//go:embed style.css
var style string

// heldRows is a titled list of holders.
type heldRows struct {
	Title string
	Rows  []view.HolderRow
}

func newHeldRows(title string, rows []view.HolderRow) heldRows { return heldRows{title, rows} }

// Write writes the report on r. Equal results give equal bytes.
func Write(w io.Writer, r *analyze.Result) error {
	t, err := template.New("page").Funcs(template.FuncMap{"bytes": units.Bytes, "rows": newHeldRows}).Parse(fragmentsTemplate + ledgerTemplate + pageTemplate)
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
