package finding

import (
	"fmt"

	"github.com/snapana/snapana/analyze/units"
)

// Request is one that failed. Sizes are -1 where they are not known.
type Request struct {
	// Lacks are the kinds of events that the recording left out, so that memory at the failure is partly inferred.
	Lacks []string `json:"lacks,omitempty"`
	Cause string   `json:"cause"`
	Refusal
	Site           string     `json:"site"`
	Failures       int        `json:"failures"`          // in the trace, this one being the last
	Later          int64      `json:"later_allocations"` // in the trace, after it
	Survived       units.Size `json:"survived"`          // of Active: live at the failure before too, freed after this
	Reserved       units.Size `json:"reserved"`          // when it failed
	Active         units.Size `json:"active"`
	LargestPiece   units.Size `json:"largest_piece"` // free, of any stream and pool
	Usable         units.Size `json:"usable"`        // free on its stream, in pieces
	PrivatePools   units.Size `json:"private_pools"` // free, kept for private pools
	OtherStreams   units.Size `json:"other_streams"` // free, of other streams
	Pending        units.Size `json:"pending"`       // freed by the program, waiting for a stream
	Returned       units.Size `json:"returned"`      // to the device, before it gave up
	Segments       int        `json:"returned_segments"`
	ReservedBefore units.Size `json:"reserved_before"` // that
	Limit          units.Size `json:"limit"`           // that the process may have, as a message says
	Ghosts         int64      `json:"ghosts"`          // live blocks that loops leave behind
	GhostBytes     units.Size `json:"ghost_bytes"`
	Largest        *Share     `json:"largest,omitempty"` // live memory of one stack
	Family         string     `json:"-"`                 // of the message in a log that tells of it, "" in a trace
	Apart          bool       `json:"-"`                 // Elsewhere is other processes' alone
	Cut            bool       `json:"-"`                 // the message lacks figures that its form has
	Hint           string     `json:"-"`                 // the setting that the message recommends, "" for none
}

// Refusal is the figures by which a request was refused, -1 where they are not known.
type Refusal struct {
	Requested     units.Size `json:"requested"` // rounded
	Segment       units.Size `json:"segment"`   // what the device was asked for
	DeviceFree    units.Size `json:"device_free"`
	LargestUsable units.Size `json:"largest_usable"`  // largest free piece that the request could have had
	Servable      units.Size `json:"servable"`        // largest request that could still have succeeded
	DeviceTotal   units.Size `json:"device_total"`    // as told
	AtLeast       units.Size `json:"device_at_least"` // most that the process is known to have had, with what was free
	Elsewhere     units.Size `json:"elsewhere"`       // outside of PyTorch's allocator, unknown without DeviceTotal
	Grown         units.Size `json:"elsewhere_grown"` // by how much Elsewhere is known to have grown
	Fraction      float64    `json:"fraction"`        // of the device, that the process may reserve; 1 unknown
}

// Share is the memory of one stack.
type Share struct {
	Site   string     `json:"site"`
	Blocks int64      `json:"blocks"`
	Bytes  units.Size `json:"bytes"`
}

// Fragments is reserved memory that is not in use, at one moment.
type Fragments struct {
	Reserved   units.Size `json:"reserved"`
	Active     units.Size `json:"active"`
	Peak       units.Size `json:"peak"`       // of active memory, over the trace
	Releasable units.Size `json:"releasable"` // free in segments without a live block
	Split      units.Size `json:"split"`      // free in the others
	Segments   int        `json:"segments"`   // the others
	Retries    int        `json:"retries"`    // requests for which the cache was given up
	Returned   units.Size `json:"returned"`   // to the device by them
	Pins       *Share     `json:"pins,omitempty"`
	Lasting    *Share     `json:"lasting,omitempty"` // of Pins, what one stack made that is there to stay
	LastingUse string     `json:"lasting_use"`       // what it is for, "" unknown
	Settled    *Settled   `json:"settled,omitempty"`
	Without    *Removal   `json:"without,omitempty"`
	Plan       *Removal   `json:"plan,omitempty"` // for the request that failed
}

// Settled are long-lived small blocks that stay in segments through which others, short-lived and larger, pass:
// they came between those and keep the segments for good.
type Settled struct {
	Blocks     int64      `json:"blocks"`
	Size       units.Size `json:"size"`        // median of one
	Site       string     `json:"site"`        // of most
	Passed     int64      `json:"passed"`      // blocks that were born and freed beside them
	PassedSize units.Size `json:"passed_size"` // median of one
	PassedLife int        `json:"passed_life"` // median in events
}

// Removal is which blocks to do without, and what that gives.
type Removal struct {
	Blocks   int64      `json:"blocks"`
	Bytes    units.Size `json:"bytes"`
	Stacks   int        `json:"stacks"` // that allocated them
	Sites    []string   `json:"sites"`  // of the first of them, most blocks first
	Returned units.Size `json:"returned"`
	Segments int        `json:"segments"` // that are returned
	Hole     units.Size `json:"hole"`     // the free piece instead, 0 where segments are returned
	Fewest   bool       `json:"fewest"`   // fewer blocks are not enough
}

// Setting is an allocator setting that is recommended or was tried in vain.
type Setting struct {
	Conf   string `json:"conf"`            // of PYTORCH_CUDA_ALLOC_CONF
	Needs  string `json:"needs,omitempty"` // the release of torch that knows it, if newer than the file's
	Proven bool   `json:"proven"`          // by replays; else nothing below is known
	Tried  int    `json:"tried"`           // settings that the file's release has
	Failed int    `json:"failed"`          // of Tried, under which requests fail
	Gain
	Same     int `json:"requests_same"`    // requests of the run that its replay reproduces
	Requests int `json:"requests_checked"` // of so many
}

// Gain is what a setting gives in place of the recorded one. The zero value is that of no setting.
type Gain struct {
	Kind           GainKind   `json:"gives,omitempty"` // "" where no setting has any
	PeakBefore     units.Size `json:"peak_before"`     // of reserved memory, as recorded
	Peak           units.Size `json:"peak"`            // under the setting
	FailuresBefore int        `json:"failures_before"` // requests, as recorded
	Failures       int        `json:"failures"`        // under the setting; -1 where that is not known
	RetriesBefore  int64      `json:"retries_before"`  // requests for which the cache is given up in the replay
	Retries        int64      `json:"retries"`         // the same under the setting
	Event          int        `json:"event"`           // of ServesOne: that of the request
	First          bool       `json:"first"`           // of ServesOne: it is the first that failed
	Ends           bool       `json:"ends"`            // of ServesAll: nothing was asked for after the failure
}

// GainKind is the most that can be said for a setting.
type GainKind string

// The kinds of gains, the best first.
const (
	ServesAll  GainKind = "serves-all"  // the run failed, and with it no request does
	ServesOne  GainKind = "serves-one"  // a request that failed is served; what would have come after it is not recorded
	FailsNoNew GainKind = "no-new"      // with the recorded setting more requests fail in the replay than did
	FailsLess  GainKind = "fewer-fail"  // fewer requests fail
	RetryLess  GainKind = "fewer-retry" // fewer requests are refused and served only after the cache was given up
	LowersPeak GainKind = "lowers-peak" // the peak is lower
)

// Saved is how much lower the peak of reserved memory is.
func (g *Gain) Saved() units.Size { return g.PeakBefore - g.Peak }

// String is the predicate of a sentence on the setting.
func (g *Gain) String() string {
	switch g.Kind {
	case ServesAll:
		if g.Ends {
			return fmt.Sprintf("every recorded request is served, at a peak of %v reserved (the recording ends at the "+
				"failure).", g.Peak)
		}
		return fmt.Sprintf("every request is served, at a peak of %v reserved.", g.Peak)
	case ServesOne:
		which, later := "the first request that failed", ", so the number of later failures is unknown"
		if g.FailuresBefore == 1 {
			which, later = "the request that failed", ""
		} else if !g.First {
			which = "a request that failed"
		}
		return fmt.Sprintf("%s is served (event %s). What the program would have allocated after it is not recorded%s.",
			which, units.Count(g.Event), later)
	case FailsNoNew:
		return "no request fails beyond those that failed in the run."
	case FailsLess:
		return fmt.Sprintf("fewer requests fail: %d instead of %d.", g.Failures, g.FailuresBefore)
	case RetryLess:
		if g.Retries == 0 {
			return fmt.Sprintf("the driver refuses memory no more (%s as recorded), so PyTorch need not free its cache and retry.",
				units.Times(g.RetriesBefore))
		}
		return fmt.Sprintf("the driver refuses memory %s instead of %s before PyTorch frees its cache and retries.",
			units.Times(g.Retries), units.Times(g.RetriesBefore))
	case LowersPeak:
		return fmt.Sprintf("the peak of reserved memory is %v lower (%s).", g.Saved(),
			units.Percent(int64(g.Saved()), int64(g.PeakBefore)))
	}
	return ""
}
