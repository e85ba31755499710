package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/report/internal/page"
)

//go:embed page.tmpl
var pageTemplate string

//go:embed fragments.tmpl
var fragmentsTemplate string

// DefaultBytes bounds a page so that it can be mailed.
const DefaultBytes = 8 << 20

// slack is what naming the details that are left out adds to a page.
const slack = 4 << 10

// Write writes the report on r, in at most size bytes as long as these are enough for the tables
// and still pictures, which take less than 2 MiB. Equal results give equal bytes.
func Write(w io.Writer, r *analyze.Result, size int) error {
	return writePage(w, newPage(r), size, "", func(size int) (*page.Packed, error) { return page.Pack(r, size) })
}

// WriteServed writes the same page for a server: its script asks "window" beside the page for
// what the page leaves out. The windows are nil where the page has nothing to zoom into.
func WriteServed(w io.Writer, r *analyze.Result, size int) (*page.Windows, error) {
	var windows *page.Windows
	p := newPage(r)
	p.Policy, p.served = ServedPolicy(), true
	err := writePage(w, p, size, ` data-windows="window"`, func(size int) (live *page.Packed, err error) {
		live, windows, err = page.PackServed(r, size)
		return live, err
	})
	return windows, err
}

func writePage(w io.Writer, p *document, size int, attributes string, pack func(size int) (*page.Packed, error)) error {
	t, err := template.New("page").Funcs(template.FuncMap{"bytes": units.Bytes, "suspects": func() string { return chart.TitleSuspects }}).Parse(fragmentsTemplate + ledgerTemplate + pinnedTemplate + pageTemplate)
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	var body bytes.Buffer
	if err := t.Execute(&body, p); err != nil {
		return fmt.Errorf("write html report: %w", err)
	}
	live, err := pack(size - body.Len() - len(script()) - slack)
	if err != nil {
		return fmt.Errorf("write html report: %w", err)
	}
	if p.leaveOut(live) {
		body.Reset()
		if err := t.Execute(&body, p); err != nil {
			return fmt.Errorf("write html report: %w", err)
		}
	}
	if live != nil {
		body.WriteString(`<script type="application/octet-stream" id="snapana-data"` + attributes + `>`)
		body.Write(live.Text)
		body.WriteString("</script>\n" + script())
	}
	body.WriteString("</body>\n</html>\n")
	if _, err := body.WriteTo(w); err != nil {
		return fmt.Errorf("write html report: %w", err)
	}
	return nil
}
