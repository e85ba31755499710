package json

import (
	"io"

	"github.com/snapana/snapana/analyze/ranks"
)

// RanksSchema is the value of "schema" in what WriteRanks writes; see SCHEMA.md.
const RanksSchema = "snapana.ranks/1"

type ranksDoc struct {
	Schema         string        `json:"schema"`
	Read           int           `json:"read"`
	MedianReserved int64         `json:"median_peak_reserved"`
	MedianActive   int64         `json:"median_peak_active"`
	Ranks          []rankRow     `json:"ranks"`
	Groups         []rankGroup   `json:"groups"`
	Outliers       []rankOutlier `json:"outliers"`
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

type rankGroup struct {
	Status   string `json:"status"`
	Headline string `json:"headline"`
	Ranks    []int  `json:"rows"`
}

type rankOutlier struct {
	Row   int        `json:"row"`
	Sites []rankSite `json:"sites"`
}

type rankSite struct {
	Site   string `json:"site"`
	Bytes  int64  `json:"bytes"`
	Median int64  `json:"median"`
}

// WriteRanks writes the snapshots of a run side by side.
func WriteRanks(w io.Writer, c *ranks.Comparison) error {
	known := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	out := ranksDoc{RanksSchema, c.Read, c.MedianReserved, c.MedianActive, []rankRow{}, []rankGroup{}, []rankOutlier{}}
	for i := range c.Ranks {
		k := &c.Ranks[i]
		row := rankRow{File: k.File, Rank: known(k.Number), Fault: k.Fault, Status: string(k.Status), Headline: k.Headline, Device: known(k.Device)}
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
	for _, g := range c.Groups {
		out.Groups = append(out.Groups, rankGroup{string(g.Status), g.Headline, g.Ranks})
	}
	for _, o := range c.Outliers {
		v := rankOutlier{o.Rank, []rankSite{}}
		for _, d := range o.Sites {
			v.Sites = append(v.Sites, rankSite(d))
		}
		out.Outliers = append(out.Outliers, v)
	}
	return encode(w, out)
}
