package json

import (
	"io"

	"github.com/snapana/snapana/analyze/redact"
)

const redactionSchema = "snapana.redaction/1"

// Redaction is what was replaced in files.
type Redaction struct {
	Strict   bool           `json:"strict"`
	Files    []Redacted     `json:"files"`
	Replaced []redact.Count `json:"replaced"`
}

// Redacted is a file that was written.
type Redacted struct {
	File  string `json:"file"`  // base name
	Bytes int64  `json:"bytes"` // before it was packed
}

// WriteRedaction writes what was replaced.
func WriteRedaction(w io.Writer, r *Redaction) error {
	return write(w, redactionSchema, r)
}
