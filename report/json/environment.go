package json

import (
	"io"

	"github.com/snapana/snapana/analyze/environment"
)

// EnvironmentSchema is the value of "schema" in what WriteEnvironments writes; see SCHEMA.md.
const EnvironmentSchema = "snapana.compare-env/1"

type environmentDoc struct {
	Schema string           `json:"schema"`
	A      string           `json:"a"`
	B      string           `json:"b"`
	Rows   []environmentRow `json:"rows"`
}

type environmentRow struct {
	Name    string `json:"name"`
	A       string `json:"a"`
	B       string `json:"b"`
	Absent  string `json:"absent"`
	Differs bool   `json:"differs"`
	Why     string `json:"why"`
}

// WriteEnvironments writes two environments side by side, with what is the same.
func WriteEnvironments(w io.Writer, c *environment.Comparison) error {
	out := environmentDoc{EnvironmentSchema, c.A, c.B, []environmentRow{}}
	for _, r := range c.Rows {
		out.Rows = append(out.Rows, environmentRow(r))
	}
	return encode(w, out)
}
