// Package json writes results for programs: one object, described in SCHEMA.md. Sizes are
// integers in bytes, arrays are never null, and equal results give equal bytes.
package json

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/address"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/gate"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// The values of the field "schema". One changes when a field changes its meaning or goes away;
// new fields do not change it.
const (
	ReportSchema      = "snapana.report/1"
	stateSchema       = "snapana.state/1"
	oomSchema         = "snapana.oom/1"
	statsSchema       = "snapana.stats/1"
	environmentSchema = "snapana.compare-env/1"
	whatifSchema      = "snapana.whatif/1"
	changeSchema      = "snapana.change/1"
	searchSchema      = "snapana.search/1"
	ghostsSchema      = "snapana.ghosts/1"
	nvmlSchema        = "snapana.nvml/1"
	ranksSchema       = "snapana.ranks/1"
	digestsSchema     = "snapana.digests/1"
	atSchema          = "snapana.at/1"
	diffSchema        = "snapana.diff/1"
	gatesSchema       = "snapana.check/1"
	fitSchema         = "snapana.fit/1"
	errorSchema       = "snapana.error/1"
)

// Write writes the report.
func Write(w io.Writer, r *analyze.Result) error { return write(w, ReportSchema, build(r)) }

// WriteWhatif writes what other settings would have done.
func WriteWhatif(w io.Writer, a *whatif.Answer) error { return write(w, whatifSchema, a) }

// WriteFit writes what a program needs at other values.
func WriteFit(w io.Writer, r *fit.Result) error { return write(w, fitSchema, r) }

// WriteChange writes what changes of a program come to, of which verdict.SayChanges has made the words.
func WriteChange(w io.Writer, a *change.Answer) error { return write(w, changeSchema, a) }

// WriteSearch writes which changes make a run fit, of which verdict.SaySearch has made the words.
func WriteSearch(w io.Writer, f *change.Found) error { return write(w, searchSchema, f) }

// WriteAt writes who lives at an address.
func WriteAt(w io.Writer, a *address.Answer) error { return write(w, atSchema, a) }

// WriteOOM writes the out-of-memory messages of a log.
func WriteOOM(w io.Writer, l *oom.Log) error { return write(w, oomSchema, l) }

// WriteStats writes what memory counters show, and what the recorder saw of the host.
func WriteStats(w io.Writer, s *analyze.Stats) error { return write(w, statsSchema, s) }

// WriteEnvironments writes two environments side by side, with what is the same.
func WriteEnvironments(w io.Writer, c *environment.Comparison) error {
	return write(w, environmentSchema, c)
}

// diffDoc is a difference with its tables.
type diffDoc struct {
	Headline string `json:"headline"`
	Delta    int64  `json:"delta"`
	*diff.Result
	Matched diffMatched `json:"matched"`
	Tables  diffTables  `json:"tables"`
	Steps   []diffStep  `json:"steps"`
}

type diffMatched struct {
	Exact     diff.Match `json:"exact"`
	Shifted   diff.Match `json:"shifted"`
	Renamed   diff.Match `json:"renamed"`
	Inlined   diff.Match `json:"inlined"`
	Similar   diff.Match `json:"similar"`
	Unmatched diff.Match `json:"unmatched"`
}

type diffTables struct {
	Category     []diff.Row `json:"category"`
	Site         []diff.Row `json:"site"`
	Stack        []diff.Row `json:"stack"`
	Module       []diff.Row `json:"module"`
	CategorySite []diff.Row `json:"category_site"`
}

type diffStep struct {
	A     int64 `json:"a"`
	B     int64 `json:"b"`
	Delta int64 `json:"delta"`
}

// WriteDiff writes what two sides differ in, by all that it can be grouped by.
func WriteDiff(w io.Writer, r *diff.Result) error {
	m := &r.Matched
	out := diffDoc{
		Headline: verdict.Difference(r), Delta: r.Delta(), Result: r,
		Matched: diffMatched{m[diff.Exact], m[diff.Shifted], m[diff.Renamed], m[diff.Inlined], m[diff.Similar],
			m[diff.Alone]},
		Tables: diffTables{r.Table(attribution.ByCategory), r.Table(attribution.BySite), r.Table(attribution.ByStack),
			r.Table(attribution.ByModule), r.Table(diff.Mixed)},
	}
	for i := range r.Steps() {
		a, b := r.A.Steps[i].Peak, r.B.Steps[i].Peak
		out.Steps = append(out.Steps, diffStep{a, b, b - a})
	}
	return write(w, diffSchema, out)
}

// checkDoc is what came of limits.
type checkDoc struct {
	Passed bool        `json:"passed"`
	Gates  []checkGate `json:"gates"`
}

type checkGate struct {
	*gate.Outcome
	Text    string       `json:"text"`
	Changes []gateChange `json:"changes"`
}

type gateChange struct {
	Bytes int64  `json:"bytes"`
	Text  string `json:"text"`
}

// WriteGates writes what came of limits.
func WriteGates(w io.Writer, all []gate.Outcome) error {
	out := checkDoc{Passed: gate.NotKept(all) == 0}
	for i := range all {
		v := checkGate{Outcome: &all[i], Text: verdict.GateOf(&all[i])}
		if r := all[i].Diff; r != nil {
			for k := range r.Causes {
				v.Changes = append(v.Changes, gateChange{r.Causes[k].Bytes, verdict.CauseOf(&r.Causes[k])})
			}
		}
		out.Gates = append(out.Gates, v)
	}
	return write(w, gatesSchema, out)
}

// write writes a document, indented.
func write(w io.Writer, schema string, doc any) error {
	return encode(w, "{\n \"schema\": \""+schema+"\",", doc)
}

// encode writes a struct indented, with begin in the place of its first brace.
func encode(w io.Writer, begin string, doc any) error { return compact(indenter{w, begin}, doc) }

// compact writes a struct without spaces, and with text as it is.
func compact(w io.Writer, doc any) error {
	filler{}.fill(reflect.ValueOf(&doc).Elem())
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}

// cut is the first n elements of s.
func cut[T any](s []T, n int) []T { return s[:min(len(s), n)] }

type nvmlDoc struct {
	sidecar.Reading
	Findings []finding.Finding `json:"findings"`
}

// WriteNVML writes a reading of the driver on one line, so that several make JSON lines.
func WriteNVML(w io.Writer, r *sidecar.Reading, findings []finding.Finding) error {
	var b bytes.Buffer
	err := compact(&b, nvmlDoc{*r, findings})
	if err == nil {
		_, err = io.WriteString(w, `{"schema":"`+nvmlSchema+`",`+string(harmless(b.Bytes()[1:])))
	}
	return err
}

type ranksDoc struct {
	ranks.Comparison
	MedianReserved *int64    `json:"median_peak_reserved"`
	MedianActive   *int64    `json:"median_peak_active"`
	Ranks          []rankRow `json:"ranks"`
}

type rankRow struct {
	File     string       `json:"file"`
	Rank     *int         `json:"rank"`
	Fault    string       `json:"fault"`
	Code     failure.Code `json:"code,omitempty"`
	Status   string       `json:"status"`
	Headline string       `json:"headline"`
	Device   *int         `json:"device"`
	Reserved *int64       `json:"peak_reserved"`
	Active   *int64       `json:"peak_active"`
	End      *int64       `json:"end_active"`
	Over     *int64       `json:"over_median"`
	Growth   *int64       `json:"growth,omitempty"`
	Pieces   *int64       `json:"in_pieces,omitempty"`
	Steps    *int64       `json:"steps"`
	Unit     string       `json:"step_unit"`
	LapSteps int64        `json:"step_peaks_each,omitempty"`
	Laps     []int64      `json:"step_peaks,omitempty"`
	Failure  *rankFailure `json:"failure"`
}

type rankFailure struct {
	Device    int    `json:"device"`
	Event     int    `json:"event"`
	Time      *int64 `json:"time_us"`
	First     *int64 `json:"first_us"`
	Requested int64  `json:"requested"`
	Site      string `json:"site"`
}

// known is nil for -1, unknown.
func known[N int | int64](n N) *N {
	if n < 0 {
		return nil
	}
	return &n
}

// WriteRanks writes the snapshots of a run side by side.
func WriteRanks(w io.Writer, c *ranks.Comparison) error {
	out := ranksDoc{Comparison: *c, MedianReserved: known(c.MedianReserved), MedianActive: known(c.MedianActive)}
	for i := range c.Ranks {
		k := &c.Ranks[i]
		row := rankRow{
			File: k.File, Rank: known(k.Number), Fault: k.Fault, Status: string(k.Status), Headline: k.Headline,
			Device: known(k.Device), Reserved: known(k.Reserved), Active: known(k.Active), End: known(k.End),
			Growth: known(k.Growth), Pieces: known(k.Pieces), Laps: k.Laps, LapSteps: k.LapSteps,
		}
		if k.Err != nil {
			row.Code = failure.KindOf(k.Err).Code
		}
		if k.Steps > 0 {
			row.Steps, row.Unit = &k.Steps, k.Unit
		}
		if k.Active >= 0 {
			row.Over = &k.Over
		}
		if f := k.Failure; f != nil {
			row.Failure = &rankFailure{Device: f.Device, Event: f.Event, Requested: f.Requested, Site: f.Site}
			if f.Time != 0 {
				row.Failure.Time = &f.Time
			}
			if f.First != 0 {
				row.Failure.First = &f.First
			}
		}
		out.Ranks = append(out.Ranks, row)
	}
	return write(w, ranksSchema, out)
}
