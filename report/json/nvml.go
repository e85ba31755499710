package json

import (
	"encoding/json"
	"io"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// NVMLSchema is the value of "schema" in what WriteNVML writes; see SCHEMA.md.
const NVMLSchema = "snapana.nvml/1"

type nvmlDoc struct {
	Schema   string            `json:"schema"`
	Time     int64             `json:"time_ns"`
	Duration *int64            `json:"duration_ns,omitempty"`
	Driver   string            `json:"driver"`
	NVML     string            `json:"nvml"`
	CUDA     string            `json:"cuda"`
	Boot     string            `json:"boot"`
	Devices  []nvmlDevice      `json:"devices"`
	Errors   []sidecar.Failed  `json:"errors"`
	Findings []finding.Finding `json:"findings"`
}

type nvmlMemory struct {
	Total    *int64 `json:"total,omitempty"`
	Reserved *int64 `json:"reserved,omitempty"`
	Used     *int64 `json:"used,omitempty"`
	Free     *int64 `json:"free,omitempty"`
}

type nvmlDevice struct {
	Index *int64 `json:"index,omitempty"`
	UUID  string `json:"uuid"`
	Name  string `json:"name"`
	Bus   string `json:"bus"`
	nvmlMemory
	MIG        *bool               `json:"mig,omitempty"`
	Instances  []nvmlInstance      `json:"instances"`
	Processes  []nvmlProcess       `json:"processes,omitzero"`
	Retired    *int64              `json:"retired_pages,omitempty"`
	ECCErrors  *int64              `json:"ecc_errors,omitempty"`
	Accounting []sidecar.Accounted `json:"accounting"`
	Errors     []sidecar.Failed    `json:"errors"`
}

type nvmlInstance struct {
	GPUInstance     *int64 `json:"gpu_instance,omitempty"`
	ComputeInstance *int64 `json:"compute_instance,omitempty"`
	UUID            string `json:"uuid"`
	Name            string `json:"name"`
	nvmlMemory
}

type nvmlProcess struct {
	PID             int64   `json:"pid"`
	Kind            string  `json:"kind"`
	Used            *int64  `json:"used,omitempty"`
	Name            string  `json:"name"`
	User            string  `json:"user"`
	State           string  `json:"state"`
	PPID            *int64  `json:"ppid,omitempty"`
	Started         *int64  `json:"started,omitempty"`
	GPUInstance     *int64  `json:"gpu_instance,omitempty"`
	ComputeInstance *int64  `json:"compute_instance,omitempty"`
	Namespaces      []int64 `json:"namespaces"`
	Parents         []int64 `json:"parents"`
}

// WriteNVML writes a reading of the driver on one line, so that several make JSON lines.
func WriteNVML(w io.Writer, r *sidecar.Reading, findings []finding.Finding) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	doc := nvmlDoc{Schema: NVMLSchema, Time: r.Time, Duration: r.Duration, Driver: r.Driver, NVML: r.NVML.NVML, CUDA: r.CUDA, Boot: r.Boot,
		Devices: []nvmlDevice{}, Errors: list(r.Errors), Findings: list(findings)}
	for i := range r.Devices {
		doc.Devices = append(doc.Devices, buildGPU(&r.Devices[i]))
	}
	return e.Encode(doc)
}

func buildGPU(g *sidecar.GPU) nvmlDevice {
	out := nvmlDevice{Index: g.Index, UUID: g.UUID, Name: g.Name, Bus: g.Bus, nvmlMemory: nvmlMemory{g.Total, g.Reserved, g.Used, g.Free}, MIG: g.MIG,
		Retired: g.Retired, ECCErrors: g.ECCErrors, Errors: list(g.Errors), Instances: []nvmlInstance{}, Accounting: list(g.Accounting)}
	for _, m := range g.Instances {
		out.Instances = append(out.Instances, nvmlInstance{m.GPUInstance, m.ComputeInstance, m.UUID, m.Name, nvmlMemory{m.Total, m.Reserved, m.Used, m.Free}})
	}
	if g.Processes != nil {
		out.Processes = []nvmlProcess{}
	}
	for _, p := range g.Processes {
		out.Processes = append(out.Processes, nvmlProcess{PID: p.PID, Kind: p.Kind, Used: p.Used, Name: p.Name, User: p.User, State: p.State, PPID: p.PPID, Started: p.Started,
			GPUInstance: p.GPUInstance, ComputeInstance: p.ComputeInstance, Namespaces: list(p.Namespaces), Parents: list(p.Parents)})
	}
	return out
}
