package html

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/page"
)

// The script is made of the TypeScript in ui, and kept so that a build needs no tool.
//
//go:generate go tool esbuild ui/main.ts --bundle --minify --format=iife --target=es2022 --charset=utf8 --legal-comments=none --log-level=warning --outfile=bundle.js

//go:embed bundle.js
var bundle string

//go:embed style.css
var style string

//go:embed live.css
var liveStyle string

// script and styles are what the page's policy allows, by their hashes.
func script() string { return "<script>" + bundle + "</script>\n" }

func styles() string { return "\n" + style + liveStyle }

// policy keeps a page from loading anything, and from running or styling with anything but its
// own script and sheet, whatever texts a file brings along. The attributes of style are widths.
func policy() string {
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src-elem '%s'; style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none'",
		hash(bundle), hash(styles()))
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
		say = "This page has no room for single allocations: its figures are complete, but its timeline cannot be zoomed."
	} else if o := live.LeftOut(); o.Lives > 0 || o.Ranges > 0 {
		say = fmt.Sprintf("This page has room for %s of %s allocations. The others, the smallest and shortest, are in all sums and drawn as one band.",
			units.Count(int64(o.Of-o.Lives)), units.Count(int64(o.Of)))
		if o.Ranges > 0 {
			say += fmt.Sprintf(" %s reserved ranges are missing in the picture of reserved memory.", units.Count(int64(o.Ranges)))
		}
	}
	if say == "" {
		return false
	}
	more := " Raise --max-page for more."
	if p.served {
		more = " Zoom in to load them."
	}
	p.Notes = append([]note{{Badge: noteMissing, Text: say + more}}, p.Notes...)
	return true
}
