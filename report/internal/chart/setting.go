package chart

import (
	"cmp"

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
