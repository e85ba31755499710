// Package html writes the report as one self-contained page: no script, no font, no image
// and no style sheet from elsewhere, so that it can be mailed, archived and opened without a
// network.
//
// html.go writes a page that page.go (verdict, findings, settings, data quality) and
// device.go (one section per device) have filled; story.go draws the picture of the verdict that tell.go chose, and
// timeline.go, moment.go, segments.go, replay.go and tables.go make the parts of a section. page.tmpl, style.css,
// live.css and answers.css are embedded.
//
// So far the page needs no script: still pictures and tables tell the story. Behind them follow
// the data of every allocation (report/internal/page) and a script, made of the TypeScript in
// ui, that puts a timeline to zoom into in the place of the still one, and views of what is live
// at any moment. Where scripts are off, or the script fails, the page stays as it was.
//
// Texts from the file reach the page through html/template, which escapes them by context,
// through drawing, which escapes every title, or compressed in the data, which the script shows
// as text only; a policy keeps anything but that script from running. Class names are constants.
// It is Go's html/template without calls of methods, for which programs grow; funcs has them.
// The size of the page is bounded whatever the snapshot holds: depth.go says how much of each
// thing a page shows, and everything that is left out is summed in a row that says so.
package html

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/report/internal/page"
	"github.com/snapana/snapana/snapshot/carried"
)

//go:embed page.tmpl
var pageTemplate string

//go:embed ledger.tmpl
var ledgerTemplate string

//go:embed story.tmpl
var storyTemplate string

//go:embed fragments.tmpl
var fragmentsTemplate string

// DefaultBytes bounds a page so that it can be mailed.
const DefaultBytes = 8 << 20

// slack is what naming the details that are left out adds to a page.
const slack = 4 << 10

// Write writes the report on r, in at most size bytes as long as these are enough for the tables
// and still pictures, which take less than 2 MiB. Equal results give equal bytes.
func Write(w io.Writer, r *analyze.Result, size int) error {
	return writePage(w, newPage(r), size, "", func(size int) (*page.Packed, error) { return page.Pack(r, size) })
}

// WriteServed writes the same page for a server: its script asks "window" beside the page for
// what the page leaves out. The windows are nil where the page has nothing to zoom into.
func WriteServed(w io.Writer, r *analyze.Result, size int) (*page.Windows, error) {
	var windows *page.Windows
	p := newPage(r)
	p.Policy, p.served = ServedPolicy(), true
	err := writePage(w, p, size, ` data-windows="window"`, func(size int) (live *page.Packed, err error) {
		live, windows, err = page.PackServed(r, size)
		return live, err
	})
	return windows, err
}

// funcs are those that templates call, which call no methods: the linker would have to keep those of all types.
// What they say of CUDA is said of p.
func funcs(p *platform.Platform) template.FuncMap {
	return template.FuncMap{
		"available": available, "beyond": beyond, "bytes": units.Bytes, "count": count, "device": chart.DeviceName,
		"events": chart.Count, "first": first, "level": level, "lower": strings.ToLower, "note": chart.AnswerNote,
		"peak": chart.PeakBytes, "failures": chart.Failures,
		"percent": units.Percent, "pool": chart.Pool, "setting": chart.Setting,
		"site": site, "text": text, "texts": texts, "trust": trust, "use": chart.UseSlot, "width": width,
		"kept":     func(r oom.Row) string { return p.Say(chart.LedgerWords[r]) },
		"say":      p.Say,
		"suspects": func() string { return chart.TitleSuspects },

		"alone": (*document).Alone, "calls": (*whatif.Row).Calls, "certainty": shown.Trust,
		"change": (*whatIf).Change, "class": chart.Slot.Class, "describe": (*story).Description,
		"gist":  func(v interface{ Gist() string }) string { return v.Gist() },
		"group": shown.Group, "growth": shown.Growth, "mostly": uses.Mostly, "remark": (*stackRow).Note,
		"scatter": (*fragmentation.Report).Scatter, "severity": shown.Badge, "stack": shown.Frames,
		"timeline": shown.Timeline,
	}
}

func writePage(w io.Writer, p *document, size int, attributes string, pack func(size int) (*page.Packed, error)) error {
	t, err := template.New("page").Funcs(funcs(p.platform)).Parse(fragmentsTemplate + ledgerTemplate +
		pinnedTemplate + storyTemplate + carried.Text(pageTemplate))
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	var body bytes.Buffer
	if err := t.Execute(&body, p); err != nil {
		return fmt.Errorf("write html report: %w", err)
	}
	live, err := pack(size - body.Len() - len(script()) - slack)
	if err != nil {
		return fmt.Errorf("write html report: %w", err)
	}
	if p.leaveOut(live) {
		body.Reset()
		if err := t.Execute(&body, p); err != nil {
			return fmt.Errorf("write html report: %w", err)
		}
	}
	if live != nil {
		body.WriteString(`<script type="application/octet-stream" id="snapana-data"` + attributes + `>`)
		body.Write(live.Text)
		body.WriteString("</script>\n" + script())
	}
	body.WriteString("</body>\n</html>\n")
	if _, err := body.WriteTo(w); err != nil {
		return fmt.Errorf("write html report: %w", err)
	}
	return nil
}

// The script is made of the TypeScript in ui, and kept so that a build needs no tool.
//
//go:generate -command bundle go tool esbuild --bundle --minify --format=iife --target=es2022 --charset=utf8
//go:generate bundle ui/main.ts --legal-comments=none --log-level=warning --outfile=bundle.js
//go:generate bundle ui/diff.ts --legal-comments=none --log-level=warning --outfile=diff.js

//go:embed bundle.js
var bundleFile string

var bundle = sync.OnceValue(func() string { return carried.Text(bundleFile) })

//go:embed style.css
var styleFile string

var style = sync.OnceValue(func() string { return carried.Text(styleFile) })

//go:embed live.css
var liveStyle string

//go:embed answers.css
var answersStyle string

// script and styles are what the page's policy allows, by their hashes.
func script() string { return "<script>" + bundle() + "</script>\n" }

func styles() string { return "\n" + style() + carried.Text(liveStyle) + answersStyle }

// policy keeps a page from loading anything, and from running or styling with anything but its
// own script and sheet, whatever texts a file brings along. The attributes of style are widths.
func policy() string {
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src-elem '%s'; "+
		"style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none'",
		hash(bundle()), hash(styles()))
}

// ServedPolicy is the policy of WriteServed's page: it may ask its own server as well.
func ServedPolicy() string { return policy() + "; connect-src 'self'" }

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func styleElement() template.HTML { return template.HTML("<style>" + styles() + "</style>") }

// leaveOut notes what the page has no room for, and reports whether there is any.
func (p *document) leaveOut(live *page.Packed) bool {
	say := ""
	if live == nil {
		say = "This page has no room for single allocations: its figures are complete, but its timeline cannot be " +
			"zoomed."
	} else if o := live.LeftOut(); o.Lives > 0 || o.Ranges > 0 {
		say = fmt.Sprintf("This page has room for %s of %s allocations. The others, the smallest and shortest, are "+
			"in all sums and drawn as one band.",
			units.Count(int64(o.Of-o.Lives)), units.Count(int64(o.Of)))
		if o.Ranges > 0 {
			say += fmt.Sprintf(" %s reserved ranges are missing in the picture of reserved memory.",
				units.Count(int64(o.Ranges)))
		}
	}
	if say == "" {
		return false
	}
	more := " Raise --max-page for more."
	if p.served {
		more = " Zoom in to load them."
	}
	p.Notes = append([]analyze.Note{{Level: "missing", Text: say + more}}, p.Notes...)
	return true
}

// first are the first n of a list; beyond is how many there are behind them.
func first(n int, list reflect.Value) reflect.Value { return list.Slice(0, min(n, list.Len())) }
func beyond(n int, list reflect.Value) int          { return max(list.Len()-n, 0) }

// count prints an int or an int64.
func count(n any) string {
	if n, ok := n.(int); ok {
		return units.Count(int64(n))
	}
	return units.Count(n.(int64))
}
