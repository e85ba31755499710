package json

import (
	"io"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
)

// GhostsSchema is the value of "schema" in what WriteGhosts writes; see SCHEMA.md.
const GhostsSchema = "snapana.ghosts/1"

type ghostsDoc struct {
	Schema   string            `json:"schema"`
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
	doc := ghostsDoc{Schema: GhostsSchema, File: r.Snapshot.Name, Findings: []finding.Finding{}, Holders: buildHolders(r), Quality: list(r.Quality)}
	for _, f := range buildVerdict(r.Verdict).Findings {
		if f.Status == finding.Ghost {
			doc.Findings = append(doc.Findings, f)
		}
	}
	return encode(w, doc)
}

// buildHolders is nil where no recorder's dump was joined.
func buildHolders(r *analyze.Result) *holders {
	h := r.Holders
	if h == nil {
		return nil
	}
	out := &holders{
		Result: *h, List: []heldBy{}, ListN: len(h.Holders), Unproven: []unprovenGrow{},
	}
	out.Notes, out.Devices = list(h.Notes), list(slices.Clone(h.Devices))
	for i := range out.Devices {
		out.Devices[i].UnheldSites = cut(out.Devices[i].UnheldSites, maxHeldSites)
	}
	for _, x := range cut(h.Holders, maxHolders) {
		x.Devices, x.SharedWith, x.Also, x.Uses = list(x.Devices), list(x.SharedWith), list(x.Also), list(x.Uses)
		x.Sites = cut(x.Sites, maxHeldSites)
		by := heldBy{x.Standing, x.Reference.String(), x, []string{}}
		if x.Standing == holder.Ghost || x.Standing == holder.Other {
			by.Fix = x.Fix()
		}
		out.List = append(out.List, by)
	}
	for _, u := range h.Unproven {
		out.Unproven = append(out.Unproven,
			unprovenGrow{u.Device, attribution.Site(r.Snapshot, u.Stacks[0]), u.Bytes, u.PerLap, list(u.Holders)})
	}
	return out
}
