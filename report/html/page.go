package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// page is what page.tmpl shows. All texts are plain: one line without control characters.
type document struct {
	platform *platform.Platform
	Policy   string
	Style    template.HTML
	Title    string
	Badge    badge
	Headline string
	Facts    []fact
	Banner   string // what is wrong with the file itself
	Story    *story // nil where there is nothing to draw
	Top      *shown
	Savings  []string // what would lower the peak
	Start    string   // the largest use at the peak
	Next     string   // what to do where Top does not say it, and Fix lines of Python for it
	Fix      []string
	Others   [len(severities)][]shown // the further ones by severity
	More     int                      // findings that are not shown

	Lead     *shown  // Top where the headline says it
	Contents []place // of the page, but for the verdict

	Holders *chart.Holders // nil without a recorder's file

	Overview    []overviewRow // with more than one device
	MoreDevices int           // without a row
	Devices     []device
	Unshown     int // devices with a row and no section

	Pinned   *pinnedView // nil without pinned host memory
	Settings *snapshot.Settings
	Notes    []analyze.Note

	served bool // its script asks for what it leaves out
}

// badge is a status or severity: a word, a sign and a color, never the color alone.
type badge struct{ Class, Sign, Word string }

type fact struct{ Name, Value string }

// shown is a finding with what only the page shows of it.
type shown struct{ *finding.Finding }

func (v shown) Badge() badge     { return severities[v.Severity.Rank()].badge }
func (v shown) Group() string    { return severities[v.Severity.Rank()].group }
func (v shown) Timeline() string { return deviceID(v.Device) + "-timeline" }
func (v shown) Frames() []string { return frames(v.Stack, full.frames) }

// Growth is that of the finding, for the script: "growth", the device and the place among its growths, "" for none.
func (v shown) Growth() string {
	if g := v.Evidence.Growth; g != nil && g.Index >= 0 && v.ID == "growth" {
		return fmt.Sprintf("growth %d %d", v.Device, g.Index)
	}
	return ""
}

func newPage(r *analyze.Result) *document {
	p := &document{
		platform: platform.Of(r.Snapshot.Writer.Backend),
		Policy:   policy(),
		Style:    styleElement(),
		Badge:    statusBadge(r.Verdict.Status),
		Headline: text(r.Verdict.Headline),
		Start:    text(r.Verdict.Start()),
		Next:     text(r.Verdict.Next),
		Fix:      r.Verdict.Fix,
		Title:    text(r.Verdict.Status.Word() + ": " + r.Snapshot.Name),
		Facts:    facts(r),
		Banner:   banner(r),
		Story:    newStory(r),
		Pinned:   newPinned(r.Pinned, platform.Of(r.Snapshot.Writer.Backend)),
		Settings: &r.Snapshot.Settings,
		Notes:    notes(r),
	}
	if r.Holders != nil {
		p.Holders = chart.NewHolders(r, 1<<20)
	}
	p.addFindings(r.Verdict.Findings)
	if r.Verdict.Lead() != nil {
		p.Lead = p.Top
	}
	for _, v := range r.Verdict.Savings() {
		p.Savings = append(p.Savings, text(v.Text))
	}
	p.addDevices(r)
	p.addContents()
	return p
}

// text makes a text from the file one safe line of bounded length.
func text(s string) string { return chart.Line(s, longText) }

// texts are the sentences or lines of code that the page shows of a list.
func texts(list []string) []string {
	var out []string
	for i, s := range list {
		if i == maxSteps {
			return append(out, fmt.Sprintf("… and %d more", len(list)-i))
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
	s = cmp.Or(s, finding.NoData)
	return badge{s.Tone().String(), signs[s.Tone()], chart.Clip(text(s.Word()), 24)}
}

// Alone is what to do where no finding says it.
func (p *document) Alone() string {
	if p.Top != nil {
		return ""
	}
	return p.Next
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

// banner says that a file was read in part only, as it was asked for or because of a fault. That it contradicts itself its headline says.
func banner(r *analyze.Result) string {
	if words := r.Window(); words != "" {
		return "This is a window of the trace: " + words + ". All figures are those of the window."
	}
	if r.Snapshot.Partial != nil {
		return chart.Clip("Only part of the file was read, up to a fault "+text(r.Snapshot.Partial.Error())+".",
			longText)
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
	if words := r.Window(); words != "" {
		list = append(list, fact{"Window", words})
	}
	if len(r.Devices) > 0 {
		list = append(list, fact{"Replay", r.VerifiedBriefly()})
	}
	if len(s.Container) > 0 {
		list = append(list, fact{"Format", text(strings.Join(s.Container, ", "))})
	}
	return list
}

func (p *document) addFindings(all []finding.Finding) {
	for i := range all {
		switch f := (shown{&all[i]}); {
		case i == 0:
			p.Top = &f
		case i <= maxFindings:
			k := f.Severity.Rank()
			p.Others[k] = append(p.Others[k], f)
		default:
			p.More++
		}
	}
}

// level is the badge of a note.
func level(n analyze.Note) badge {
	switch n.Level {
	case "problem":
		return badge{n.Level, "!", n.Level}
	case "ok":
		return badge{n.Level, "✓", n.Level}
	}
	return badge{"missing", "–", "missing"}
}

// notes lists problems first, then what is missing, then what is in order.
func notes(r *analyze.Result) []analyze.Note {
	all := slices.Concat(r.Notes())
	if rest := len(all) - maxNotes; rest > 0 {
		all = append(all[:maxNotes], analyze.Note{Level: "missing",
			Text: fmt.Sprintf("… and %s more notes", units.Count(rest))})
	}
	return all
}
