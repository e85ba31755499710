package json

import (
	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	frag "github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
)

// The types below are the schema; SCHEMA.md says what each field means.

type report struct {
	Schema   string            `json:"schema"`
	Source   source            `json:"source"`
	Verdict  verdict.Verdict   `json:"verdict"`
	Devices  []device          `json:"devices"`
	Holders  *holders          `json:"holders,omitempty"`
	Pinned   *pinnedMemory     `json:"pinned,omitempty"` // absent where none was recorded
	Settings snapshot.Settings `json:"settings"`
	Quality  []analyze.Note    `json:"quality"`
	Missing  []string          `json:"missing"`
}

type source struct {
	Name      string   `json:"name"`
	Bytes     int64    `json:"bytes"`
	Container []string `json:"container"`
	Writer    string   `json:"writer"`
	Partial   string   `json:"partial"`
	HasTimes  bool     `json:"has_times"`
	HasStacks bool     `json:"has_stacks"`
	Events    int      `json:"events"`
	Segments  int      `json:"segments"`
	Blocks    int      `json:"blocks"`
	Stacks    int      `json:"stacks"`
}

type device struct {
	Device  int                 `json:"device"`
	Events  int                 `json:"events"`
	Initial timeline.Totals     `json:"initial"`
	Final   timeline.Totals     `json:"final"`
	Peaks   *peaks              `json:"peaks"` // null without a trace
	Curve   []timeline.Point    `json:"curve"`
	Moments []moment            `json:"moments"`
	OOMs    []timeline.OOMEvent `json:"ooms"`
	OOMsN   int                 `json:"ooms_total"`
	Retries []timeline.Retry    `json:"retries"`
	RetryN  int                 `json:"retries_total"`
	Steps   stepList            `json:"steps"`
	Churn   churnSum            `json:"churn"`
	Free    []frag.Sample       `json:"free"`
	Failure *oom.Report         `json:"failure,omitempty"` // absent when no request failed
	Account *account            `json:"ledger,omitempty"`  // absent without readings
	Growth  []growth            `json:"growth"`
	OneOffs []ghost.OneOff      `json:"one_offs"`
	Checks  checks              `json:"checks"`
}

type stepList struct {
	steps.Result
	Total int `json:"total"`
}

type churnSum struct {
	Within int `json:"within_events"`
	attribution.Turnover
}

type peaks struct {
	Reserved  timeline.Peak `json:"reserved"`
	Active    timeline.Peak `json:"active"`
	Allocated timeline.Peak `json:"allocated"`
	Requested timeline.Peak `json:"requested"`
	Split     timeline.Peak `json:"inactive_split"`
}

type moment struct {
	Name string `json:"name"`
	timeline.State
	Stacks        []stack       `json:"stacks"`
	StacksN       int           `json:"stacks_total"`
	Uses          []use         `json:"uses"`
	Fragmentation fragmentation `json:"fragmentation"`
}

type stack struct {
	Kind string `json:"kind"` // "stack" or "other"
	attribution.Group
}

type use struct {
	category.Sum
	High   int64 `json:"high"`
	Medium int64 `json:"medium"`
	Low    int64 `json:"low"`
}

type keeper struct {
	Offset  int64  `json:"offset"`
	Bytes   int64  `json:"bytes"`
	Hostage int64  `json:"hostage"`
	Born    int    `json:"born"`
	Site    string `json:"site"`
}

type pin struct {
	Address    string `json:"address"`
	Size       int64  `json:"size"`
	Free       int64  `json:"free"`
	Live       int64  `json:"live"`
	Blocks     int    `json:"blocks"`
	Stream     int32  `json:"stream"`
	Pool       string `json:"pool"`
	Expandable bool   `json:"expandable"`
	Largest    int64  `json:"largest_block"`
	Site       string `json:"site"`

	Keepers []keeper `json:"keepers"`
}

type checks struct {
	Inconsistent int64 `json:"inconsistent"`
	timeline.Checks
}

type fragmentation struct {
	frag.Report
	Scatter float64      `json:"scatter"`
	Holes   []frag.Holes `json:"holes"`
	Pins    []pin        `json:"pins"`
	Without []without    `json:"without"`
}

// without is a stack that keeps segments.
type without struct {
	Site string `json:"site"`
	frag.Step
}
