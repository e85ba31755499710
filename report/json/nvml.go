package json

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// NVMLSchema is the value of "schema" in what WriteNVML writes; see SCHEMA.md.
const NVMLSchema = "snapana.nvml/1"

type nvmlDoc struct {
	Schema string `json:"schema"`
	sidecar.Reading
	Findings []finding.Finding `json:"findings"`
}

// WriteNVML writes a reading of the driver on one line, so that several make JSON lines.
func WriteNVML(w io.Writer, r *sidecar.Reading, findings []finding.Finding) error {
	doc := nvmlDoc{NVMLSchema, *r, list(findings)}
	doc.Devices, doc.Errors = list(slices.Clone(r.Devices)), list(r.Errors)
	for i := range doc.Devices {
		g := &doc.Devices[i]
		g.Instances, g.Accounting, g.Errors = list(g.Instances), list(g.Accounting), list(g.Errors)
		g.Processes = slices.Clone(g.Processes) // nil is not none
		for k := range g.Processes {
			p := &g.Processes[k]
			p.Namespaces, p.Parents = list(p.Namespaces), list(p.Parents)
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}
