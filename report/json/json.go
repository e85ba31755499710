// Package json writes results for programs: one object, described in SCHEMA.md. Sizes are
// integers in bytes, arrays are never null, and equal results give equal bytes.
package json

import (
	"encoding/json"
	"io"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/whatif"
)

// Schema is the value of the field "schema". It changes when a field changes its meaning or
// goes away; new fields do not change it.
const Schema = "snapana.report/1"

// Bounds on the lists of a report; what is left out is summed or counted.
const (
	maxCurve    = 512
	maxStacks   = 50
	maxFrames   = 64
	maxPins     = 50
	maxOOMs     = 100
	maxRetries  = 100
	maxFindings = 100
	maxEvents   = 1000
	maxGroups   = 64
	maxSampled  = 8 // groups of one sample over time
	maxWithout  = 5
	maxKeepers  = 16

	maxGrowthStacks = 50
	maxSteps        = 1000
	maxChurnSites   = 50
)

// Write writes the report as indented JSON.
func Write(w io.Writer, r *analyze.Result) error {
	return encode(w, build(r))
}

// WriteWhatif writes what other settings would have done.
func WriteWhatif(w io.Writer, a *whatif.Answer) error { return encode(w, a) }

// encode writes a document, indented and with text as it is.
func encode(w io.Writer, doc any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}
