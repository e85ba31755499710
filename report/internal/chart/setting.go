package chart

import (
	"cmp"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/whatif"
)

// Setting names a setting that was replayed.
func Setting(r *whatif.Row) string {
	name := cmp.Or(r.Text, "the defaults")
	switch {
	case r.Recorded:
		name += " (as recorded)"
	case r.Needs != "":
		name += " (torch " + r.Needs + " or later)"
	}
	return name
}

// AnswerNote is the note of an answer, with the flag that would settle it.
func AnswerNote(a *oom.Answer) string {
	if a.Wants == finding.WantCapacity {
		return a.Note + "; pass --capacity 80GiB"
	}
	return a.Note
}
