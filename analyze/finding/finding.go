// Package finding is the vocabulary of judgments: what a statement about memory is made of, and the one
// table of the outcomes that there are. It knows no analysis and no output; package verdict writes
// findings, the reports show them.
package finding

import (
	"cmp"
	"fmt"

	"github.com/snapana/snapana/snapshot/sorting"
)

// Severity orders findings: an Error needs an answer, a Warning a look, Info is context.
type Severity string

const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Rank orders severities, the gravest first, from 0 on.
func (s Severity) Rank() int {
	switch s {
	case Error:
		return 0
	case Warning:
		return 1
	}
	return 2
}

// Confidence says how far a finding can be trusted: High is arithmetic on recorded facts,
// Medium a pattern that seldom misleads, Low a hint.
type Confidence string

const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Want is what the caller could give so that more can be said.
type Want string

const (
	WantCapacity Want = "capacity" // the memory of the device
	WantSnapshot Want = "snapshot" // one of the failure
)

// Finding is one statement about a snapshot with its evidence. The same struct feeds text,
// JSON and HTML.
type Finding struct {
	ID         string     `json:"id"` // stable, of its kind: "oom", "growth"
	Status     Status     `json:"status"`
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	Device     int        `json:"device"`            // -1 when it is about the whole file
	Bytes      int64      `json:"bytes"`             // what is at stake
	Title      string     `json:"title"`             // one line
	Why        []string   `json:"why"`               // plain sentences with numbers
	Next       []string   `json:"next"`              // what to do
	Heuristic  bool       `json:"heuristic"`         // an inference, not arithmetic
	Events     []int      `json:"events"`            // trace indexes that prove it
	Stack      []string   `json:"stack,omitempty"`   // innermost first: "file:line function"
	Cause      string     `json:"cause,omitempty"`   // of a ghost: what probably keeps the memory
	Fix        []string   `json:"fix,omitempty"`     // lines of Python that show the remedy
	Wants      Want       `json:"-"`                 // only of a message in a log, which no JSON has
	Evidence   Evidence   `json:"evidence,omitzero"` // the figures in Title, Why and Next
}

// Say sets the title, put together as fmt.Sprintf does.
func (f *Finding) Say(format string, args ...any) { f.Title = fmt.Sprintf(format, args...) }

// Because adds a reason, put together as fmt.Sprintf does.
func (f *Finding) Because(format string, args ...any) {
	f.Why = append(f.Why, fmt.Sprintf(format, args...))
}

// Do adds steps to take.
func (f *Finding) Do(steps ...string) { f.Next = append(f.Next, steps...) }

// Trust says how far the finding can be trusted.
func (f *Finding) Trust() string {
	s := string(f.Confidence) + " confidence"
	if f.Heuristic {
		s += ", heuristic"
	}
	return s
}

// Sort puts findings in order: the gravest first; among equals doubts about the data before all that was
// derived from it, and a failure that growth explains before the growth; then by bytes.
func Sort(list []Finding) {
	sorting.Stable(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(a.class(), b.class()),
			cmp.Compare(b.Bytes, a.Bytes))
	})
}

func (f *Finding) class() int {
	switch {
	case f.Status == Inconsistent:
		return 0
	case f.ID == "oom" && f.Status == Ghost:
		return 1
	case f.Status == Stays: // a detail of what others say of the end
		return 3
	}
	return 2
}
