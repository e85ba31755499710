// Package verdict holds the findings of an analysis, ranks them, and says in one line what
// the snapshot shows.
package verdict

import "github.com/snapana/snapana/analyze/finding"

// Verdict is the outcome for one file.
type Verdict struct {
	Status   finding.Status    `json:"status"`
	Headline string            `json:"headline"`
	Findings []finding.Finding `json:"findings"` // most important first
}
