// Package verdict holds the findings of an analysis, ranks them, and says in one line what
// the snapshot shows.
package verdict

// Status is the one-word outcome of an analysis.
type Status string

const (
	Healthy       Status = "healthy"         // nothing to accuse
	Ghost         Status = "ghost"           // memory grows: something keeps references
	Fragmentation Status = "fragmentation"   // reserved memory that cannot serve requests
	Capacity      Status = "capacity"        // live memory alone exceeds what the device gives
	Limit         Status = "limit"           // the device had room: a limit of the process, or another stream, refused
	Pools         Status = "private-pools"   // free memory is kept for CUDA graphs and other private pools
	Others        Status = "other-processes" // memory outside of PyTorch took what was missing
	Absurd        Status = "absurd"          // one request is more than the device has in all
	Cached        Status = "cached"          // reserved but free: empty_cache returns it
	Inconsistent  Status = "inconsistent"    // the file contradicts itself: figures are not to be trusted
	Outside       Status = "outside"         // memory that is not PyTorch's: never the outcome, only a finding's
	NoData        Status = "no-data"         // too little in the file to judge
)

// Severity orders findings: an Error needs an answer, a Warning a look, Info is context.
type Severity string

const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Confidence says how far a finding can be trusted: High is arithmetic on recorded facts,
// Medium a pattern that seldom misleads, Low a hint.
type Confidence string

const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Finding is one statement about a snapshot with its evidence. The same struct feeds text,
// JSON and HTML.
type Finding struct {
	ID         string     `json:"id"` // stable: "oom", "growth", "late", "cached", "fragmentation", "inconsistent"
	Status     Status     `json:"status"`
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	Device     int        `json:"device"`          // -1 when it is about the whole file
	Bytes      int64      `json:"bytes"`           // what is at stake
	Title      string     `json:"title"`           // one line
	Why        []string   `json:"why"`             // plain sentences with numbers
	Next       []string   `json:"next"`            // what to do
	Heuristic  bool       `json:"heuristic"`       // an inference, not arithmetic
	Events     []int      `json:"events"`          // trace indexes that prove it
	Stack      []string   `json:"stack,omitempty"` // innermost first: "file:line function"
	Cause      string     `json:"cause,omitempty"` // of a ghost: what probably keeps the memory
	Fix        []string   `json:"fix,omitempty"`   // lines of Python that show the remedy
}

// Verdict is the outcome for one file.
type Verdict struct {
	Status   Status    `json:"status"`
	Headline string    `json:"headline"`
	Findings []Finding `json:"findings"` // most important first
}
