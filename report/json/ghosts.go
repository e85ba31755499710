package json

import (
	"encoding/json"
	"io"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/snapshot"
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
	Recorder string         `json:"recorder"`
	Dump     string         `json:"dump"`
	Earlier  string         `json:"earlier"`
	Devices  []heldDevice   `json:"devices"`
	List     []heldBy       `json:"list"`
	ListN    int            `json:"list_total"`
	Stray    holderSum      `json:"stray"`
	Unproven []unprovenGrow `json:"unproven"`
	Notes    []string       `json:"notes"`
}

type holderSum struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

type heldDevice struct {
	Device    int        `json:"device"`
	Allocated holderSum  `json:"allocated"`
	Held      holderSum  `json:"held"`
	Unheld    holderSum  `json:"unheld"`
	Sites     []heldSite `json:"unheld_sites"`
}

type heldSite struct {
	Site  string `json:"site"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

type heldUse struct {
	Use   string `json:"use"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

type heldBy struct {
	Standing   holder.Standing   `json:"standing"`
	Words      string            `json:"words"`
	Reference  holder.Reference  `json:"reference"`
	Formerly   *holder.Reference `json:"formerly,omitempty"`
	Devices    []int             `json:"devices"`
	Bytes      int64             `json:"bytes"`
	Blocks     int64             `json:"blocks"`
	Tensors    int               `json:"tensors"`
	Objects    int               `json:"objects"`
	Graph      int64             `json:"graph_bytes"`
	Frees      int64             `json:"frees"`
	Alone      int64             `json:"frees_alone"`
	Shared     int64             `json:"shared"`
	SharedWith []string          `json:"shared_with"`
	Also       []string          `json:"also"`
	Chain      string            `json:"chain"`
	Grown      int64             `json:"grown"`
	PerLap     int64             `json:"per_lap"`
	Laps       int               `json:"laps"`
	Storage    holderSum         `json:"storages"`
	Before     holderSum         `json:"storages_before"`
	Gone       int64             `json:"keys_gone"`
	Bound      *bound            `json:"bound,omitempty"`
	Sites      []heldSite        `json:"sites"`
	Uses       []heldUse         `json:"uses"`
	Fix        []string          `json:"fix"`
}

type bound struct {
	Length int64  `json:"length"`
	Limit  int64  `json:"limit"`
	Hint   string `json:"hint"`
	Full   int64  `json:"full"`
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
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

// buildHolders is nil where no recorder's dump was joined.
func buildHolders(r *analyze.Result) *holders {
	h := r.Holders
	if h == nil {
		return nil
	}
	out := &holders{
		Recorder: h.File, Dump: h.Dump, Earlier: h.Earlier, Devices: []heldDevice{}, List: []heldBy{}, ListN: len(h.Holders),
		Stray: holderSum(h.Stray), Unproven: []unprovenGrow{}, Notes: list(h.Notes),
	}
	s := r.Snapshot
	for _, d := range h.Devices {
		out.Devices = append(out.Devices, heldDevice{d.Ordinal, holderSum(d.Allocated), holderSum(d.Held), holderSum(d.Unheld), heldSites(s, d.UnheldSites)})
	}
	for i := range h.Holders[:min(len(h.Holders), maxHolders)] {
		x := &h.Holders[i]
		by := heldBy{
			Standing: x.Standing, Words: x.Reference.String(), Reference: x.Reference, Formerly: x.Formerly, Devices: list(x.Devices), Bytes: x.Bytes, Blocks: x.Count, Tensors: x.Tensors,
			Objects: x.Objects, Graph: x.Graph.Bytes, Frees: x.Frees, Alone: x.Alone, Shared: x.Shared, SharedWith: list(x.SharedWith), Also: list(x.Also),
			Chain: x.Chain, Grown: x.Grown.Bytes, PerLap: x.PerLap, Laps: x.Laps, Storage: holderSum(x.Storage), Before: holderSum(x.Before), Gone: x.Gone,
			Sites: heldSites(s, x.Sites), Uses: []heldUse{}, Fix: []string{},
		}
		if b := x.Bound; b != nil {
			by.Bound = &bound{b.Length, b.Limit, b.Hint, b.Full}
		}
		for _, u := range x.Uses {
			by.Uses = append(by.Uses, heldUse{u.Name, u.Count, u.Bytes})
		}
		if x.Standing == holder.Ghost || x.Standing == holder.Other {
			by.Fix = x.Fix()
		}
		out.List = append(out.List, by)
	}
	for _, u := range h.Unproven {
		out.Unproven = append(out.Unproven, unprovenGrow{u.Device, attribution.Site(s, u.Stacks[0]), u.Bytes, u.PerLap, list(u.Holders)})
	}
	return out
}

func heldSites(s *snapshot.Snapshot, sites []holder.Site) []heldSite {
	out := []heldSite{}
	for _, x := range sites[:min(len(sites), maxHeldSites)] {
		out = append(out, heldSite{attribution.Site(s, x.Stack), x.Count, x.Bytes})
	}
	return out
}
