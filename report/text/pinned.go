package text

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// pinned says in at most three lines what pinned host memory there is and who allocated it, or in
// one line where the screen is full.
func (p *printer) pinned(r *analyze.Result, full bool) {
	if r.Pinned == nil {
		return
	}
	words := chart.Plain(pinnedWords(r.Pinned))
	if full {
		p.labeled("Pinned", []string{chart.Clip(words, p.width-10)})
		return
	}
	p.line("")
	p.section("Pinned", []string{words}, 3)
}

// pinnedWords describes pinned host memory in a sentence or two.
func pinnedWords(m *host.Pinned) string {
	end := &m.Final
	w := fmt.Sprintf("Host memory at the end: %s reserved = %s active + %s cached", units.Bytes(end.Reserved), units.Bytes(end.Active), units.Bytes(end.Reserved-end.Active-m.Unknown))
	if m.Unknown > 0 {
		w += fmt.Sprintf(" + %s active or cached, not recorded which", units.Bytes(m.Unknown))
	}
	if m.Trace.Len() > 0 {
		w += fmt.Sprintf("; peak: %s reserved, %s active", units.Bytes(m.PeakReserved.Bytes), units.Bytes(m.PeakActive.Bytes))
	}
	if m.Registered > 0 {
		w += fmt.Sprintf("; %s more registered by other code", units.Bytes(m.Registered))
	}
	w += "."
	var by []string
	groups, _, more := chart.Largest(m.Holders, 2)
	for i, site := range chart.Sites(groups) {
		by = append(by, units.Bytes(groups[i].Rounded)+" by "+site)
	}
	if more > 0 {
		by = append(by, units.Plural(more, "more stack"))
	}
	if len(by) > 0 {
		w += " Allocated: " + strings.Join(by, ", ") + "."
	}
	return w
}

// pinnedSums prints the sums of pinned host memory.
func (p *printer) pinnedSums(m *host.Pinned) {
	events := "no trace"
	if n := m.Trace.Len(); n > 0 {
		events = units.Plural(n, "event")
	}
	p.line(p.paint(bold, "Pinned host memory") + ": " + events)
	p.totals("", "reserved", "active", "allocated")
	row := func(name string, v ...int64) { p.totals(name, eachBytes(v)...) }
	if m.Trace.Len() > 0 {
		row("start", m.Initial.Reserved, m.Initial.Active, m.Initial.Allocated)
		row("peak", m.PeakReserved.Bytes, m.PeakActive.Bytes, m.PeakAllocated.Bytes)
	}
	row("end", m.Final.Reserved, m.Final.Active, m.Final.Allocated)
}
