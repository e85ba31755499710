package json

import (
	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/oom"
)

type account struct {
	Why     string          `json:"why"`
	Device  int             `json:"driver_device"`
	PID     int64           `json:"pid"`
	Guessed bool            `json:"guessed"`
	Untold  int             `json:"untold"`
	Total   int64           `json:"total"`
	Rows    []oom.LedgerRow `json:"rows"`
}

func buildAccount(a *analyze.Account) *account {
	if a == nil {
		return nil
	}
	out := &account{Why: a.Why, Device: -1, Rows: []oom.LedgerRow{}}
	if l := a.Ledger; l != nil {
		out.Device, out.PID, out.Guessed, out.Untold, out.Total = l.Device, l.PID, l.Guessed != 0, l.Untold, l.Total
		out.Rows = list(l.Rows)
	}
	return out
}
