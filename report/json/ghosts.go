package json

import (
	"io"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
)

type ghostsDoc struct {
	File     string            `json:"file"`
	Findings []finding.Finding `json:"findings"`
	Holders  *holders          `json:"holders,omitempty"`
	Quality  []analyze.Note    `json:"quality"`
}

// holders is also in report.json.
type holders struct {
	holder.Result
	List     []heldBy       `json:"list"`
	ListN    int            `json:"list_total"`
	Unproven []unprovenGrow `json:"unproven"`
}

type heldBy struct {
	Standing holder.Standing `json:"standing"`
	Words    string          `json:"words"`
	holder.Holder
	Fix []string `json:"fix"`
}

type unprovenGrow struct {
	Device  int    `json:"device"`
	Site    string `json:"site"`
	Bytes   int64  `json:"bytes"`
	PerLap  int64  `json:"per_lap"`
	Holders []int  `json:"holders"`
}

// Bounds of the lists.
const (
	maxHolders   = 1000
	maxHeldSites = 100
)

// WriteGhosts writes who keeps the memory at the end of a snapshot.
func WriteGhosts(w io.Writer, r *analyze.Result) error {
	doc := ghostsDoc{File: r.Snapshot.Name, Holders: buildHolders(r), Quality: r.Quality}
	for _, f := range buildVerdict(r.Verdict).Findings {
		if f.Status == finding.Ghost {
			doc.Findings = append(doc.Findings, f)
		}
	}
	return write(w, ghostsSchema, doc)
}

// buildHolders is nil where no recorder's dump was joined.
func buildHolders(r *analyze.Result) *holders {
	h := r.Holders
	if h == nil {
		return nil
	}
	out := &holders{Result: *h, ListN: len(h.Holders)}
	out.Devices = slices.Clone(h.Devices)
	for i := range out.Devices {
		out.Devices[i].UnheldSites = cut(out.Devices[i].UnheldSites, maxHeldSites)
	}
	for _, x := range cut(h.Holders, maxHolders) {
		x.Sites = cut(x.Sites, maxHeldSites)
		by := heldBy{x.Standing, x.Reference.String(), x, nil}
		if x.Standing == holder.Ghost || x.Standing == holder.Other {
			by.Fix = x.Fix()
		}
		out.List = append(out.List, by)
	}
	for _, u := range h.Unproven {
		site := attribution.Site(r.Snapshot, u.Stacks[0])
		out.Unproven = append(out.Unproven, unprovenGrow{u.Device, site, u.Bytes, u.PerLap, u.Holders})
	}
	return out
}
