package json

import (
	"io"

	"github.com/snapana/snapana/analyze/oom"
)

// OOMSchema is the value of "schema" in what WriteOOM writes; see SCHEMA.md.
const OOMSchema = "snapana.oom/1"

type oomDoc struct {
	Schema string `json:"schema"`
	oom.Log
}

// WriteOOM writes the out-of-memory messages of a log.
func WriteOOM(w io.Writer, l *oom.Log) error { return encode(w, oomDoc{OOMSchema, *l}) }
