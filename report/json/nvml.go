package json

import (
	"io"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/sidecar"
)

type nvmlDoc struct {
	sidecar.Reading
	Findings []finding.Finding `json:"findings"`
}

// WriteNVML writes a reading of the driver on one line, so that several make JSON lines.
func WriteNVML(w io.Writer, r *sidecar.Reading, findings []finding.Finding) error {
	return encode(w, "", `{"schema":"`+nvmlSchema+`",`, nvmlDoc{*r, findings})
}
