package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"sync"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/page"
	"github.com/snapana/snapana/snapshot/carried"
)

//go:embed diff.tmpl
var diffTemplate string

//go:embed diff.css
var diffStyle string

//go:embed diff.js
var diffScriptFile string

var diffScript = sync.OnceValue(func() string { return carried.Text(diffScriptFile) })

// WriteDiff writes what two sides differ in as one page, in at most size bytes as long as these are enough for its
// tables. Equal results give equal bytes.
func WriteDiff(w io.Writer, r *diff.Result, size int) error {
	t, err := template.New("diff").Funcs(funcs(platform.Of(""))).Funcs(template.FuncMap{"signed": units.Signed}).
		Parse(fragmentsTemplate + diffTemplate)
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	p := newDiffPage(r)
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("write the page of a diff: %w", err)
	}
	data, _, err := page.PackDifference(r, size-b.Len()-len(diffScript())-slack)
	if err != nil {
		return fmt.Errorf("write the page of a diff: %w", err)
	}
	if data != nil {
		b.WriteString(`<script type="application/octet-stream" id="snapana-data">`)
		b.Write(data)
		b.WriteString("</script>\n<script>" + diffScript() + "</script>\n")
	}
	b.WriteString("</body>\n</html>\n")
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("write the page of a diff: %w", err)
	}
	return nil
}

// diffPage is what diff.tmpl shows. All texts are plain: one line without control characters.
type diffPage struct {
	Policy   string
	Style    template.HTML
	Title    string
	Badge    badge
	Headline string
	Why      []string
	Mind     []string
	Sides    [2]diffSide
	Totals   []diffRow
	Matched  []diffMatch
	Tables   []diffTable // without a script, those that the command line prints as well
	Steps    []diffRow
	Timeline string // what the picture of the two traces lacks, "" for nothing
}

// diffSide is one side and how much of it was matched.
type diffSide struct{ Letter, Name, About string }

// diffRow is a figure of both sides.
type diffRow struct {
	Name        string
	A, B, Delta int64
	State       diff.State
	Noise       bool
}

// diffMatch is how many bytes of each side were matched in one way, and what part of the side that is, in percent.
type diffMatch struct {
	How          string // as diff.How
	About        string
	A, B         int64
	PartA, PartB string
}

type diffTable struct {
	By   attribution.Kind
	Rows []diffRow
	More int
}

// Bounds of what is there without a script.
const (
	maxDiffRows  = 40
	maxDiffSteps = 60
)

func newDiffPage(r *diff.Result) *diffPage {
	word, tone := verdict.Changed(r)
	p := &diffPage{
		Policy: fmt.Sprintf("default-src 'none'; script-src '%s'; style-src-elem '%s'; style-src-attr 'unsafe-inline'; "+
			"base-uri 'none'; form-action 'none'", hash(diffScript()), hash(styles()+diffStyle)),
		Style:    template.HTML("<style>" + styles() + diffStyle + "</style>"),
		Title:    text(fmt.Sprintf("%s: %s to %s", word, r.A.Name, r.B.Name)),
		Badge:    badge{tone.String(), signs[tone], word},
		Headline: text(verdict.Difference(r)),
		Why:      texts(verdict.WhyDifferent(r, false)),
		Timeline: verdict.Unfollowed(r),
	}
	for i := range r.Guards {
		p.Mind = append(p.Mind, text(verdict.GuardOf(&r.Guards[i])))
	}
	for i, f := range []*footprint.Footprint{r.A, r.B} {
		s := []*diff.Spread{r.SpreadA, r.SpreadB}[i]
		p.Sides[i] = diffSide{"AB"[i : i+1], text(f.Name), text(verdict.SideOf(f, s))}
	}
	figure := func(name string, a, b int64) diffRow {
		return diffRow{Name: name, A: a, B: b, Delta: b - a, State: diff.StateOf(a, b)}
	}
	a, b := &r.A.Totals, &r.B.Totals
	p.Totals = []diffRow{
		figure("active", a.Active, b.Active), figure("requested", a.Requested, b.Requested),
		figure("allocated", a.Allocated, b.Allocated), figure("reserved", a.Reserved, b.Reserved),
	}
	part := func(n, all int64) string { return fmt.Sprintf("%.3f", 100*float64(n)/float64(max(all, 1))) }
	for h := diff.Exact; ; h-- {
		m := r.Matched[h]
		if m == (diff.Match{}) && h != diff.Alone && h != diff.Exact {
			continue
		}
		p.Matched = append(p.Matched, diffMatch{
			How: h.String(), About: verdict.HowOf(h), A: m.A, B: m.B, PartA: part(m.A, a.Active), PartB: part(m.B, b.Active),
		})
		if h == diff.Alone {
			break
		}
	}
	for _, by := range []attribution.Kind{attribution.ByCategory, attribution.BySite} {
		p.Tables = append(p.Tables, newDiffTable(r, by))
	}
	for i := range min(r.Steps(), maxDiffSteps) {
		p.Steps = append(p.Steps, figure(fmt.Sprint(i), r.A.Steps[i].Peak, r.B.Steps[i].Peak))
	}
	return p
}

func newDiffTable(r *diff.Result, by attribution.Kind) diffTable {
	rows := r.Table(by)
	t := diffTable{By: by, More: max(len(rows)-maxDiffRows, 0)}
	for _, v := range rows[:min(len(rows), maxDiffRows)] {
		t.Rows = append(t.Rows, diffRow{text(v.Name), v.A, v.B, v.Delta, v.State, v.Noise})
	}
	return t
}
