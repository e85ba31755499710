package sidecar

// Records of the driver are tagged twice: by their keys in a file, and in the JSON of `snapana nvml --json`.

// NVML is one reading of the driver. It takes a while, so that it is not of one instant.
// Bytes and counts are nil where the driver did not tell.
type NVML struct {
	Duration *int64   `msgpack:"duration,omitempty" json:"duration_ns,omitempty"` // nanoseconds that reading took
	Driver   string   `msgpack:"driver,omitempty" json:"driver"`
	NVML     string   `msgpack:"nvml,omitempty" json:"nvml"`
	Reader   string   `msgpack:"reader,omitempty" json:"reader,omitempty"` // "nvidia-smi"; empty for NVML
	CUDA     string   `msgpack:"cuda,omitempty" json:"cuda"`
	Boot     string   `msgpack:"boot,omitempty" json:"boot"` // /proc/sys/kernel/random/boot_id
	Devices  []GPU    `msgpack:"devices" json:"devices"`
	Errors   []Failed `msgpack:"errors,omitempty" json:"errors"`
}

// GPU is one physical device, with bytes as NVML's memory v2 counts them:
// total = reserved (by the driver) + used + free.
type GPU struct {
	Index      *int64        `msgpack:"index,omitempty" json:"index,omitempty"`
	UUID       string        `msgpack:"uuid,omitempty" json:"uuid"`
	Name       string        `msgpack:"name,omitempty" json:"name"`
	Bus        string        `msgpack:"bus,omitempty" json:"bus"`
	Total      *int64        `msgpack:"total,omitempty" json:"total,omitempty"`
	Reserved   *int64        `msgpack:"reserved,omitempty" json:"reserved,omitempty"`
	Used       *int64        `msgpack:"used,omitempty" json:"used,omitempty"`
	Free       *int64        `msgpack:"free,omitempty" json:"free,omitempty"`
	Shared     bool          `msgpack:"shared,omitempty" json:"shared,omitempty"` // memory of the system, used by the CPU too
	MIG        *bool         `msgpack:"mig,omitempty" json:"mig,omitempty"`
	Instances  []MIGInstance `msgpack:"instances" json:"instances"`
	Processes  []GPUProcess  `msgpack:"processes" json:"processes,omitzero"` // nil: could not be listed
	Retired    *int64        `msgpack:"retired_pages,omitempty" json:"retired_pages,omitempty"`
	ECCErrors  *int64        `msgpack:"ecc_errors,omitempty" json:"ecc_errors,omitempty"` // uncorrected, lifetime
	Accounting []Accounted   `msgpack:"accounting" json:"accounting"`
	Errors     []Failed      `msgpack:"errors,omitempty" json:"errors"`
}

// MIGInstance is one compute instance of a partitioned device.
type MIGInstance struct {
	GPUInstance     *int64 `msgpack:"gpu_instance,omitempty" json:"gpu_instance,omitempty"`
	ComputeInstance *int64 `msgpack:"compute_instance,omitempty" json:"compute_instance,omitempty"`
	UUID            string `msgpack:"uuid,omitempty" json:"uuid"`
	Name            string `msgpack:"name,omitempty" json:"name"`
	Total           *int64 `msgpack:"total,omitempty" json:"total,omitempty"`
	Reserved        *int64 `msgpack:"reserved,omitempty" json:"reserved,omitempty"`
	Used            *int64 `msgpack:"used,omitempty" json:"used,omitempty"`
	Free            *int64 `msgpack:"free,omitempty" json:"free,omitempty"`
}

// GPUProcess is one process with memory on a device.
type GPUProcess struct {
	PID             int64   `msgpack:"pid" json:"pid"` // as the driver says, in the outermost namespace
	Kind            string  `msgpack:"kind,omitempty" json:"kind"`
	Used            *int64  `msgpack:"used,omitempty" json:"used,omitempty"`
	Name            string  `msgpack:"name,omitempty" json:"name"`
	User            string  `msgpack:"user,omitempty" json:"user"`
	State           string  `msgpack:"state,omitempty" json:"state"`
	PPID            *int64  `msgpack:"ppid,omitempty" json:"ppid,omitempty"`
	Started         *int64  `msgpack:"started,omitempty" json:"started,omitempty"` // clock ticks since boot
	GPUInstance     *int64  `msgpack:"gpu_instance,omitempty" json:"gpu_instance,omitempty"`
	ComputeInstance *int64  `msgpack:"compute_instance,omitempty" json:"compute_instance,omitempty"`
	Namespaces      []int64 `msgpack:"namespaces" json:"namespaces"` // pids, outermost first
	Parents         []int64 `msgpack:"parents" json:"parents"`       // pids of its parent, the parent of that, ...
}

// Accounted is what the driver's accounting mode remembers of a process.
type Accounted struct {
	PID     int64  `msgpack:"pid" json:"pid"`
	MaxUsed *int64 `msgpack:"max_used,omitempty" json:"max_used,omitempty"`
	Running *bool  `msgpack:"running,omitempty" json:"running,omitempty"`
}

// Failed is a call that failed.
type Failed struct {
	What string `msgpack:"what" json:"what"`
	Why  string `msgpack:"why" json:"why"`
}
