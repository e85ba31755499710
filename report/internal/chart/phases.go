package chart

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/analyze/units"
)

// PhaseRow is one named part of the program, in words. All texts are plain.
type PhaseRow struct {
	Name, Laps        string
	Peak, Start, Left string
	End, Reserved     string   // of the last lap, and the most of any
	Notes             []string // sentences
}

// Cells are what stands below PhaseColumns; counted says that nothing but torch's counters is known.
func (r *PhaseRow) Cells(counted bool) []string {
	after := r.Left
	if counted {
		after = r.End
	}
	return []string{r.Name, r.Laps, r.Peak, r.Start, after, r.Reserved}
}

// PhaseColumns are the heads of Cells.
func PhaseColumns(counted bool) []string {
	after := "Left behind"
	if counted {
		after = "At its end"
	}
	return []string{"Phase", "Laps", "Peak", "At its start", after, "Reserved"}
}

// Phases makes rows of phases, of those that torch named only if library is set.
func Phases(all []phase.Phase, library bool) []PhaseRow {
	var out []PhaseRow
	for i := range all {
		p := &all[i]
		if p.Library && !library {
			continue
		}
		row := PhaseRow{Name: Plain(p.Name), Laps: units.Count(p.Laps), Peak: p.Bound.Short(p.Peak().Peak),
			Start: sizeOr(p.Peak().Start), Left: sizeOr(p.List[p.Last].Left),
			End: sizeOr(p.List[p.Last].End)}
		reserved := int64(-1)
		for k := range p.List {
			reserved = max(reserved, p.List[k].Reserved)
		}
		row.Reserved = sizeOr(reserved)
		if n := int64(p.Seen); n < p.Laps {
			row.Laps = units.Count(n) + " of " + row.Laps
		}
		row.note(p)
		out = append(out, row)
	}
	return out
}

// LeastLeft is from how many bytes on it is said where what a phase leaves was allocated.
const leastLeft = 1 << 20

func (r *PhaseRow) note(p *phase.Phase) {
	say := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	l := p.Peak()
	if p.Laps > 1 || l.At >= 0 {
		where, after := "Peak", ""
		if p.Laps > 1 {
			where, after = where+" in lap "+units.Count(l.Number), ","
		}
		if l.Step > 0 {
			where += " (step " + units.Count(l.Step) + ")"
		}
		switch {
		case l.At >= 0 && l.At < l.First:
			where += " when it began"
		case l.At >= 0 && l.Micros > 0:
			where += fmt.Sprintf("%s %s after it began, at event %s", after, units.Micros(l.Micros), units.Count(l.At))
		case l.At >= 0:
			where += " at event " + units.Count(l.At)
		}
		if len(p.Holds) > 0 {
			where += ": " + siteOf(&p.Holds[0])
		}
		if low := p.Lowest; p.Seen > 1 && units.Bytes(low) != units.Bytes(l.Peak) {
			where += fmt.Sprintf("; the lowest lap peaks at %s", units.Bytes(low))
		}
		say("%s.", where)
	}
	if p.Most >= 0 && p.List[p.Most].Left >= leastLeft {
		most := &p.List[p.Most]
		var by []string
		for _, s := range p.Leaves[:min(len(p.Leaves), 2)] {
			by = append(by, siteOf(&s))
		}
		which := "It left"
		if p.Laps > 1 {
			which = fmt.Sprintf("Lap %s left", units.Count(most.Number))
		}
		say("%s %s: %s.", which, units.Bytes(most.Left), strings.Join(by, ", "))
	}
	if p.Failed > 0 {
		say("%s ended with an exception, the last a %s.", units.Plural(p.Failed, "lap"), Plain(p.Error))
	}
	if p.Open > 0 {
		say("%s had not ended when the recording did.", units.Plural(p.Open, "lap"))
	}
	if l.How == phase.BySamples && l.AtMost > l.Peak {
		say("This peak is the highest that was seen; it may have been up to %s.", units.Bytes(l.AtMost))
	}
}

func siteOf(s *phase.Site) string {
	return units.Bytes(s.Bytes) + " by " + Plain(attribution.Placed(s.Site))
}

// sizeOr prints a size, -1 as unknown.
func sizeOr(n int64) string {
	if n < 0 {
		return Unknown
	}
	return units.Bytes(n)
}
