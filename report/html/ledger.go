package html

import (
	_ "embed"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

//go:embed ledger.tmpl
var ledgerTemplate string

// accountView is where all of a device's memory is.
type accountView struct {
	Total, Why string
	Rows       []accountRow
}

type accountRow struct{ Name, Bytes, Share string }

func newAccount(a *analyze.Account) *accountView {
	if a == nil {
		return nil
	}
	v := &accountView{Why: text(a.Why)}
	if l := a.Ledger; l != nil {
		v.Total = units.Bytes(l.Total)
		for _, r := range l.Rows {
			v.Rows = append(v.Rows, accountRow{chart.LedgerWords[r.Row], units.Bytes(r.Bytes), units.Percent(r.Bytes, l.Total)})
		}
	}
	return v
}
