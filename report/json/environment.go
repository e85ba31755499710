package json

import (
	"io"

	"github.com/snapana/snapana/analyze/environment"
)

// EnvironmentSchema is the value of "schema" in what WriteEnvironments writes; see SCHEMA.md.
const EnvironmentSchema = "snapana.compare-env/1"

type environmentDoc struct {
	Schema string `json:"schema"`
	environment.Comparison
}

// WriteEnvironments writes two environments side by side, with what is the same.
func WriteEnvironments(w io.Writer, c *environment.Comparison) error {
	return encode(w, environmentDoc{EnvironmentSchema, *c})
}
