package html

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// page is what page.tmpl shows. All texts are plain: one line without control characters.
type document struct {
	Policy   string
	Style    template.HTML
	Title    string
	Badge    badge
	Headline string
	Facts    []fact
	Banner   string // what is wrong with the file itself
	Top      *shown
	Others   []findings
	More     int // findings that are not shown

	Questions []question // that the page answers, with where

	Holders *chart.Holders // nil without a recorder's file

	Overview    []overviewRow // with more than one device
	MoreDevices int           // without a row
	Devices     []device
	Unshown     int // devices with a row and no section

	Pinned   *pinnedView // nil without pinned host memory
	Settings *snapshot.Settings
	Notes    []note

	served bool // its script asks for what it leaves out
}

// badge is a status or severity: a word, a sign and a color, never the color alone.
type badge struct{ Class, Sign, Word string }

type fact struct{ Name, Value string }

type shown struct {
	Badge      badge
	Title      string
	Where      string // the device, "" for the whole file
	Bytes      string
	Confidence string
	Heuristic  bool
	Why, Next  []string
	MoreWhy    []string // folded away
	Fix        []string // lines of Python
	Stack      []string
	Events     []int
	MoreEvents string // the number of those that are left out
	Device     int    // of the events, with the ID of its timeline
	Timeline   string
	Show       string // of a growth, for the script: "growth", the device and the place among its growths
}

// findings are the further findings of one severity.
type findings struct {
	Name string
	List []shown
}

type note struct {
	Badge badge
	Text  string
	Count string
}

func newPage(r *analyze.Result) *document {
	p := &document{
		Policy:   policy(),
		Style:    styleElement(),
		Badge:    statusBadge(r.Verdict.Status),
		Headline: text(r.Verdict.Headline),
		Title:    text(string(r.Verdict.Status) + ": " + r.Snapshot.Name),
		Facts:    facts(r),
		Banner:   banner(r),
		Pinned:   newPinned(r.Pinned),
		Settings: &r.Snapshot.Settings,
		Notes:    notes(r),
	}
	if r.Holders != nil {
		p.Holders = chart.NewHolders(r, 1<<20)
	}
	p.addFindings(r)
	p.addDevices(r)
	p.addQuestions(r)
	return p
}

// text makes a text from the file one safe line of bounded length.
func text(s string) string { return chart.Clip(chart.Plain(clipBytes(s)), longText) }

// clipBytes bounds the work on texts that no one will read.
func clipBytes(s string) string {
	if len(s) > 8*longText {
		return strings.ToValidUTF8(s[:8*longText], "")
	}
	return s
}

func texts(list []string, n int) []string {
	var out []string
	for i, s := range list {
		if i == n {
			return append(out, fmt.Sprintf("… and %d more", len(list)-n))
		}
		out = append(out, text(s))
	}
	return out
}

// signs stand beside the word of a status, by its tone.
var signs = [...]string{
	finding.Bad: "!", finding.Warn: "!", finding.Neutral: "i", finding.Good: "✓", finding.None: "–",
}

func statusBadge(s finding.Status) badge {
	word := chart.Clip(text(string(s)), 24)
	if s == finding.NoData || s == "" {
		s, word = finding.NoData, "no data"
	}
	return badge{s.Tone().String(), signs[s.Tone()], word}
}

// severities are by rank.
var severities = [...]struct {
	group string
	badge badge
}{
	{"Errors", badge{"error", "✕", "error"}},
	{"Warnings", badge{"warning", "!", "warning"}},
	{"For information", badge{"info", "i", "info"}},
}

// banner says that a file was read in part only, or that it contradicts itself.
func banner(r *analyze.Result) string {
	if r.Snapshot.Partial != nil {
		return chart.Clip("Only part of the file was read, up to a fault "+text(r.Snapshot.Partial.Error())+".",
			longText)
	}
	if n, residual := r.Books(); n > 0 || residual > 0 {
		return "N" + analyze.Verified(n, residual)[1:] + "."
	}
	return ""
}

func facts(r *analyze.Result) []fact {
	s := r.Snapshot
	var events int64
	for i := range s.Traces {
		events += int64(s.Traces[i].Len())
	}
	writer := "unknown torch release"
	if s.Writer.Text != "" {
		writer = "torch " + text(s.Writer.Text) + " (guessed)"
	}
	trace := "none"
	if events > 0 {
		trace = units.Plural(events, "event")
	}
	list := []fact{{"File", text(s.Name)}, {"Written by", writer}, {"Size", units.Bytes(s.Bytes)}, {"Trace", trace}}
	if len(r.Devices) > 0 {
		list = append(list, fact{"Replay", analyze.Verified(r.Books())})
	}
	if len(s.Container) > 0 {
		list = append(list, fact{"Format", text(strings.Join(s.Container, ", "))})
	}
	return list
}

func newFinding(f *finding.Finding) shown {
	v := shown{
		Badge: severities[f.Severity.Rank()].badge, Title: text(f.Title),
		Confidence: chart.Clip(text(string(f.Confidence)), 24), Heuristic: f.Heuristic,
		Why: texts(f.Why, maxSteps), Next: texts(f.Next, maxSteps), Fix: texts(f.Fix, maxSteps),
		Stack: frames(f.Stack, full.frames), Device: f.Device,
		Timeline: deviceID(f.Device) + "-timeline",
	}
	const most = 8
	v.Events = f.Events[:min(len(f.Events), most)]
	if n := len(f.Events) - most; n > 0 {
		v.MoreEvents = units.Count(int64(n))
	}
	if n := 4; len(v.Why) > n+1 { // the first ones say most, and the timeline should not be far down
		v.Why, v.MoreWhy = v.Why[:n], v.Why[n:]
	}
	if f.Device >= 0 {
		v.Where = chart.DeviceName(f.Device)
	}
	if f.Bytes > 0 {
		v.Bytes = units.Bytes(f.Bytes)
	}
	if g := f.Evidence.Growth; g != nil && g.Index >= 0 && f.ID == "growth" {
		v.Show = fmt.Sprintf("growth %d %d", f.Device, g.Index)
	}
	return v
}

func (p *document) addFindings(r *analyze.Result) {
	all := r.Verdict.Findings
	if len(all) == 0 {
		return
	}
	top := newFinding(&all[0])
	p.Top = &top
	rest := all[1:]
	if len(rest) > maxFindings {
		p.More = len(rest) - maxFindings
		rest = rest[:maxFindings]
	}
	for k := range severities {
		v := findings{Name: severities[k].group}
		for i := range rest {
			if rest[i].Severity.Rank() == k {
				v.List = append(v.List, newFinding(&rest[i]))
			}
		}
		if len(v.List) > 0 {
			p.Others = append(p.Others, v)
		}
	}
}

var (
	noteOK      = badge{"ok", "✓", "ok"}
	noteMissing = badge{"missing", "–", "missing"}
	noteProblem = badge{"problem", "!", "problem"}
)

// notes lists problems first, then what is missing, then what is in order.
func notes(r *analyze.Result) []note {
	var all []note
	for _, b := range [...]badge{noteProblem, noteMissing, noteOK} {
		for _, n := range r.Quality {
			if n.Level == b.Class || b == noteMissing && n.Level != noteProblem.Class && n.Level != noteOK.Class {
				v := note{Badge: b, Text: text(n.Text)}
				if n.Count > 0 {
					v.Count = units.Count(n.Count)
				}
				all = append(all, v)
			}
		}
	}
	if len(all) > maxNotes {
		rest := len(all) - maxNotes
		all = append(all[:maxNotes], note{Badge: noteMissing, Text: fmt.Sprintf("… and %s more notes",
			units.Count(int64(rest)))})
	}
	return all
}
