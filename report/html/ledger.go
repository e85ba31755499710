package html

import (
	_ "embed"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

//go:embed ledger.tmpl
var ledgerTemplate string

// accountView is where all of a device's memory is, or why that cannot be said.
type accountView struct {
	Why   string
	Table *table
}

func newAccount(a *analyze.Account) *accountView {
	if a == nil {
		return nil
	}
	v := &accountView{Why: text(a.Why)}
	if l := a.Ledger; l != nil {
		v.Table = newTable("ledger", words(units.Bytes(l.Total)+" in total"), numbers("Bytes"), numbers("Share"))
		for _, r := range l.Rows {
			v.Table.add(chart.LedgerWords[r.Row], units.Bytes(r.Bytes), units.Percent(r.Bytes, l.Total))
		}
	}
	return v
}
