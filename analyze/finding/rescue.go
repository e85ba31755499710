package finding

import "github.com/snapana/snapana/analyze/units"

// Rescue is what changes of the program come to for a run that ran out of memory, by replays.
type Rescue struct {
	// Fit are changes with which every recorded request is served, the least costly first, or if Early the one that leaves
	// most first; Short those that save something by themselves and are not enough, the one that saves most first.
	Fit   []Amended `json:"fit"`
	Short []Amended `json:"not_enough"`
	// LeftOut says that none were tried, as the trace is long.
	LeftOut bool `json:"left_out"`
	// Ends says that a request failed in the recording: what would have come behind it may need more.
	Ends bool `json:"ends"`
	// Early says that it failed before a backward pass was over: what the rest of a step needs is not known.
	Early bool `json:"ends_in_first_pass"`
}

// Amended is the run with some changes.
type Amended struct {
	Changes []ProgramChange `json:"changes"`
	Saves   units.Size      `json:"saves"` // of the peak of reserved memory
	Spare   units.Size      `json:"spare"` // of what the run could reserve, below 0 where the cache must be freed in between
	Slower  float64         `json:"time_share"`
	// Low and High are between which values the peak of reserved memory is expected, Confidence how narrow that is; of the
	// first of Fit alone.
	Low        units.Size `json:"low,omitempty"`
	High       units.Size `json:"high,omitempty"`
	Confidence Confidence `json:"confidence,omitempty"`
}

// ProgramChange is a change of the program.
type ProgramChange struct {
	Change  string `json:"change"` // as it is asked for
	Kind    string `json:"kind"`
	Line    string `json:"line"`            // that changes, "" where that is not one
	Modules int    `json:"modules"`         // of checkpoint: those that run again
	Of      int    `json:"modules_of_line"` // of so many that the line calls
}
