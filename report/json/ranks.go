package json

import (
	"io"

	"github.com/snapana/snapana/analyze/ranks"
)

type ranksDoc struct {
	ranks.Comparison
	Ranks []rankRow `json:"ranks"`
}

type rankRow struct {
	File     string       `json:"file"`
	Rank     *int         `json:"rank"`
	Fault    string       `json:"fault"`
	Status   string       `json:"status"`
	Headline string       `json:"headline"`
	Device   *int         `json:"device"`
	Reserved *int64       `json:"peak_reserved"`
	Active   *int64       `json:"peak_active"`
	End      *int64       `json:"end_active"`
	Over     *int64       `json:"over_median"`
	Failure  *rankFailure `json:"failure"`
}

type rankFailure struct {
	Event     int    `json:"event"`
	Time      *int64 `json:"time_us"`
	Requested int64  `json:"requested"`
	Site      string `json:"site"`
}

// WriteRanks writes the snapshots of a run side by side.
func WriteRanks(w io.Writer, c *ranks.Comparison) error {
	known := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	out := ranksDoc{Comparison: *c}
	for i := range c.Ranks {
		k := &c.Ranks[i]
		row := rankRow{
			File: k.File, Rank: known(k.Number), Fault: k.Fault, Status: string(k.Status), Headline: k.Headline,
			Device: known(k.Device),
		}
		if k.Fault == "" {
			row.Reserved, row.Active, row.End, row.Over = &k.Reserved, &k.Active, &k.End, &k.Over
		}
		if f := k.Failure; f != nil {
			row.Failure = &rankFailure{f.Event, nil, f.Requested, f.Site}
			if f.Time != 0 {
				row.Failure.Time = &f.Time
			}
		}
		out.Ranks = append(out.Ranks, row)
	}
	return write(w, ranksSchema, out)
}
