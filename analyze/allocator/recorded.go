package allocator

import (
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// Recorded are the settings of the run as far as the file tells.
type Recorded struct {
	Conf Conf
	// Release is the newest one that may have written the file; Tie is its order of equal
	// blocks.
	Release Release
	Tie     Tie
	// Known is whether the file has allocator settings at all (torch 2.3 and later); without
	// them Conf are the defaults.
	Known bool
	// Text is the settings string, "" for none.
	Text string
}

// RecordedIn reads the settings of a snapshot. Where they are values of their own they are
// trusted over the settings string, which may have been set later (SPEC.md 5.2).
func RecordedIn(s *snapshot.Snapshot) Recorded {
	r := Recorded{Conf: Default(), Known: s.Settings.Present, Text: strings.TrimSpace(s.Settings.Conf),
		Release: Release(s.Writer.Newest)}
	r.Tie = r.Release.Tie()
	if !r.Known {
		return r
	}
	if c, err := r.Release.ParseConf(r.Text); err == nil {
		r.Conf = c
	}
	r.Conf.Async = false // such a run has no snapshot
	r.Conf.Expandable = s.Settings.ExpandableSegments
	r.Conf.MaxSplit = -1
	if s.Settings.MaxSplitSize > 0 {
		r.Conf.MaxSplit = s.Settings.MaxSplitSize
	}
	if t := s.Settings.GCThreshold; t > 0 && t < 1 {
		r.Conf.GCThreshold = t
	}
	r.Conf.Roundup = Roundup(s.Settings.Roundup)
	return r
}
