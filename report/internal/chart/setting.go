package chart

import "github.com/snapana/snapana/analyze/whatif"

// Setting names a setting that was replayed.
func Setting(r *whatif.Row) string {
	name := r.Text
	if name == "" {
		name = "the defaults"
	}
	switch {
	case r.Recorded:
		name += " (as recorded)"
	case r.Needs != "":
		name += " (torch " + r.Needs + " or later)"
	}
	return name
}
