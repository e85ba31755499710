package json

import (
	"io"

	"github.com/snapana/snapana/analyze"
)

// StatsSchema is the value of "schema" in what WriteStats writes; see SCHEMA.md.
const StatsSchema = "snapana.stats/1"

type statsDoc struct {
	Schema string `json:"schema"`
	analyze.Stats
}

// WriteStats writes what memory counters show, and what the recorder saw of the host.
func WriteStats(w io.Writer, r *analyze.Stats) error {
	doc := statsDoc{StatsSchema, *r}
	doc.Hosts, doc.Checks = list(r.Hosts), list(r.Checks)
	return encode(w, doc)
}
