// Package page packs what the script of the page draws from: every allocation of every
// device, as columns of numbers.
//
// Data is the contract between this package and report/html/ui/data.ts. It travels as
//
//	base64(gzip(length of the header as uint32, little-endian | header | columns))
//
// where the header is Data as JSON, and a Column in it says where its numbers lie behind the
// header. Numbers are base-128 varints, least significant group first, as in protobuf.
//
// A page must stay small enough to mail. When not all fits, the allocations with the most bytes
// times events stay, and those that are live at a moment that a report names; of the others,
// Rest has the sums by category at evenly spread moments, so that totals stay right, and
// LeftOut says what and how much it is.
package page

import "github.com/snapana/snapana/analyze/timeline"

// Version is raised when a page's script could not read older data.
const Version = 4

// Data is all that the script knows. No slice is nil, so that JSON has no null. Texts are one
// line of bounded length, without control characters; the script must show them as text only.
type Data struct {
	Version    int      `json:"version"`
	Strings    []string `json:"strings"`
	Frames     Frames   `json:"frames"`
	Nodes      Nodes    `json:"nodes"`
	Stacks     Stacks   `json:"stacks"`
	Labels     []Label  `json:"labels"`     // row 0 is none
	Categories []string `json:"categories"` // by number, as in Kinds.Category
	Holders    []Holder `json:"holders"`    // none without a recorder's file
	Colors     []string `json:"colors"`     // of Categories: custom properties of style.css
	Free       []Class  `json:"free"`       // what Free has the bytes of, in its order
	Source     Source   `json:"source"`
	Devices    []Device `json:"devices"`
}

// Source are lines of the program, from the files that lay below a folder when the page was made. It is empty without one.
type Source struct {
	Dir   string       `json:"dir"` // as the user named it
	Files []SourceFile `json:"files"`
	// File and Line say where each frame is: one more than the row of Files, 0 for none, and the line. Odd is 1 where the
	// file as it is cannot be what ran there.
	File Column `json:"file"`
	Line Column `json:"line"`
	Odd  Column `json:"odd"`
}

// SourceFile is one file, in pieces around the lines that frames name.
type SourceFile struct {
	Name   string        `json:"name"` // below the folder
	Link   string        `json:"link"` // opens it in an editor, with {line}; "" for none
	Pieces []SourcePiece `json:"pieces"`
}

// SourcePiece are lines in a row.
type SourcePiece struct {
	First int      `json:"first"` // number of the first, from 1
	Lines []string `json:"lines"`
}

// Label is what torch and the program noted beside an allocation.
type Label struct {
	Notes []LabelNote `json:"notes"`
}

// LabelNote is one of them: a kind and a text as those of attribution.Note.
type LabelNote struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Class is a class of free memory, as every output names and draws it.
type Class struct {
	Name  string `json:"name"`
	Means string `json:"means"`
	Color string `json:"color"` // a custom property of style.css
}

// Frames are the frames of the stacks.
type Frames struct {
	Text   Column `json:"text"`   // row of Strings: "file:line function"
	Origin Column `json:"origin"` // attribution.Origin: 0 plumbing, 1 core, 2 native, 3 library, 4 other, 5 user
}

// Nodes are the stacks as one tree of calls, outermost frame first. Row 0 is the root; a parent
// comes before its children.
type Nodes struct {
	Parent Column `json:"parent"` // row of Nodes
	Frame  Column `json:"frame"`  // row of Frames; meaningless for the root
}

// Stacks are the stacks that allocated something which is in the data.
type Stacks struct {
	Node Column `json:"node"` // row of Nodes: the innermost frame, the root without frames
	Site Column `json:"site"` // row of Strings: the frame that the stack stands for
}

// Device is one device. Events count from 0, -1 is before the trace.
type Device struct {
	Ordinal int             `json:"ordinal"`
	Events  int             `json:"events"` // length of the trace
	Initial timeline.Totals `json:"initial"`
	Final   timeline.Totals `json:"final"`
	Marks   []Mark          `json:"marks"` // by event
	Steps   Steps           `json:"steps"`
	Clock   Clock           `json:"clock"`
	Places  []Place         `json:"places"`
	// Stretches are all that the addresses of the device lie in.
	Stretches []Stretch `json:"stretches"`
	Kinds     Kinds     `json:"kinds"`
	Lives     Lives     `json:"lives"`
	Held      Held      `json:"held"`
	Growth    []Growth  `json:"growth"`
	Ranges    Ranges    `json:"ranges"`
	Rest      Rest      `json:"rest"`
	LeftOut   LeftOut   `json:"left_out"`
	Free      Free      `json:"free"`
	WhatIf    WhatIf    `json:"whatif"`
	Failures  []Failure `json:"failures"` // the last ones, by event
	Rules     Rules     `json:"rules"`
}

// Failure is a request that failed, with what it takes to serve it: what the page cannot tell by itself.
type Failure struct {
	Event   int   `json:"event"`
	Rounded int64 `json:"rounded"` // bytes that it takes
	Stream  int   `json:"stream"`
	Small   bool  `json:"small"`   // of the small pool
	Free    int64 `json:"free"`    // bytes that the device had, -1 unknown
	Segment int64 `json:"segment"` // bytes that the device is asked for where no segment can grow
	Granule int64 `json:"granule"` // bytes by which an expandable segment grows
	// Way is how it is served by the rules, though it was not: "refused" where they explain it, as fragmentation.Way.
	Way string `json:"way"`
}

// Rules are those of the run's allocator that say which free range serves a request: allocator.Conf.Takes.
type Rules struct {
	Expandable bool  `json:"expandable"`
	MaxSplit   int64 `json:"max_split"` // -1 for none
	MaxRound   int64 `json:"max_round"` // max_non_split_rounding
}

// Mark is an event worth a jump.
type Mark struct {
	Kind   string `json:"kind"` // "peak", "oom", "retry", "annotation"
	Event  int    `json:"event"`
	Text   string `json:"text"`
	Stream int    `json:"stream"` // of an oom, that of the request that failed
	Addr   int64  `json:"addr"`   // of an annotation, where its block begins, as Stretches count
}

// Steps are the steps of the program.
type Steps struct {
	Unit  string   `json:"unit"`
	First Column   `json:"first"` // events
	Last  Column   `json:"last"`
	Names []string `json:"names"`
}

// Clock gives the times of events; between its rows, time passes evenly. It is empty without
// times. It never runs backwards.
type Clock struct {
	Event  Column `json:"event"`
	Micros Column `json:"micros"` // since the first event
	Exact  bool   `json:"exact"`  // every event has a row
}

// Place is where memory comes from: a pool of a stream.
type Place struct {
	Kind       string `json:"kind"` // "small", "large", "unknown", "" in no known segment
	Stream     int    `json:"stream"`
	Pool       string `json:"pool"` // "" is the default pool
	Expandable bool   `json:"expandable"`
	Page       int64  `json:"page"` // analyze/fragmentation.Page
}

// Kinds are the allocations that differ only in when and where they lived: programs repeat
// themselves.
type Kinds struct {
	Stack     Column `json:"stack"`     // row of Stacks
	Rounded   Column `json:"rounded"`   // bytes taken in the segment
	Requested Column `json:"requested"` // bytes asked for
	Category  Column `json:"category"`  // row of Categories
	Trust     Column `json:"trust"`     // 0 none, 1 low, 2 medium, 3 high
	Place     Column `json:"place"`     // row of Places
	Label     Column `json:"label"`     // row of Labels
}

// Lives are the allocations in order of birth: rows of Timeline.Lives, less those left out.
type Lives struct {
	Kind Column `json:"kind"` // row of Kinds
	Born Column `json:"born"` // event
	// Life is 0 for one that is never freed, else one more than the events from birth to when
	// the block went back to the pool.
	Life Column `json:"life"`
	// Gap says when the program freed the block: 0 when it went back (or never), 1 before the
	// trace, else 2 and more: of a freed block how many events before it went back, of a block
	// that still waits how many events after birth.
	Gap  Column `json:"gap"`
	Addr Column `json:"addr"` // as Stretches count, less that of the last life of the same kind
	// Older is how many blocks lived at the address before, less those of them in this list: 0 where
	// nothing is left out.
	Older Column `json:"older"`
	// Holder is the row of Holders of each life that is never freed, in order. It is empty
	// without a recorder's file.
	Holder Column `json:"holder"`
}

// Ranges are the runs of reserved addresses, in order of birth. Unmapping a part of one ends it
// and begins what is left of it.
type Ranges struct {
	Addr  Column `json:"addr"` // as Stretches count
	Size  Column `json:"size"`
	Born  Column `json:"born"`
	Life  Column `json:"life"` // as of Lives
	Place Column `json:"place"`
}

// Rest is the active bytes of the lives that were left out, at moments spread over the trace:
// each the one of the most active bytes of a run of events. It is empty when all are there.
type Rest struct {
	Edge  Column   `json:"edge"`  // where runs begin, and where the last ends
	Event Column   `json:"event"` // the moment of each run
	Bytes []Column `json:"bytes"` // by category, at each moment
}

// Free is what is reserved and not allocated, by what keeps it from use, right after some events
// (fragmentation.Over). It is empty when nothing is left out: then it follows after every event.
type Free struct {
	Event Column   `json:"event"`
	Bytes []Column `json:"bytes"` // releasable, hard, soft, stream, pending: as fragmentation.Classes
}

// WhatIf is reserved memory under the settings that were replayed, in the order of
// whatif.Answer.Rows: the recorded ones first. It is empty where no replay is to be trusted.
type WhatIf struct {
	Last   Column   `json:"last"`  // where the runs of events end, of which Replay.Reserved has the most
	Limit  int64    `json:"limit"` // bytes that can be reserved, 0 for no limit
	Best   int      `json:"best"`  // row that is recommended, -1 for none
	Replay []Replay `json:"replays"`
}

// Replay is the outcome of one setting.
type Replay struct {
	Name     string `json:"name"`
	Peak     int64  `json:"peak"`     // of reserved bytes
	Reserved Column `json:"reserved"` // empty where not even what was there before the trace fits
	Failures int    `json:"failures"` // requests that fail
	About    bool   `json:"about"`    // their number is an estimate
	Failed   int    `json:"failed"`   // event of the first of them, -1 for none
	Asked    int64  `json:"asked"`    // bytes of it
	Ladder   Ladder `json:"ladder"`
}

// Ladder is how the run fares under a setting with other limits, as whatif.Ladder. It has no rungs and no bounds where it
// was not computed.
type Ladder struct {
	Rungs []Rung `json:"rungs"`
	// Bounds are steps: at which event, and up to which limit.
	SafeEvent Column `json:"safe_event"`
	SafeBytes Column `json:"safe_bytes"`
	Safe      bool   `json:"safe"`    // they are known
	SafeTo    int64  `json:"safe_to"` // largest limit of which they tell, 0 for all
	SureEvent Column `json:"sure_event"`
	SureBytes Column `json:"sure_bytes"`
}

// Rung is the outcome with one limit, in bytes, as whatif.Rung. It is what a server answers to "limit", too.
type Rung struct {
	Limit  int64 `json:"limit"`
	Start  bool  `json:"start"`  // what was there before the trace does not fit
	Failed int   `json:"failed"` // event of the first request that fails, -1 for none
	Asked  int64 `json:"asked"`
	Peak   int64 `json:"peak"`
	About  bool  `json:"about"` // it is an estimate
}

// LeftOut is what did not fit.
type LeftOut struct {
	Lives  int `json:"lives"`  // allocations that are only in Rest
	Of     int `json:"of"`     // all allocations
	Ranges int `json:"ranges"` // reserved ranges, which are then nowhere
}

// Column is where the numbers of a column lie.
type Column struct {
	At   int    `json:"at"`   // bytes behind the header
	Len  int    `json:"len"`  // numbers
	Mode string `json:"mode"` // "u" as they are, "z" zigzag, "d" zigzag of the difference to the one before
}
