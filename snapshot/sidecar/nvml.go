package sidecar

// NVML is one reading of the driver. It takes a while, so that it is not of one instant.
// Bytes and counts are nil where the driver did not tell.
type NVML struct {
	Driver   string   `msgpack:"driver,omitempty"`
	NVML     string   `msgpack:"nvml,omitempty"`
	CUDA     string   `msgpack:"cuda,omitempty"`
	Boot     string   `msgpack:"boot,omitempty"`     // /proc/sys/kernel/random/boot_id
	Duration *int64   `msgpack:"duration,omitempty"` // nanoseconds that reading took
	Devices  []GPU    `msgpack:"devices"`
	Errors   []Failed `msgpack:"errors,omitempty"`
}

// GPU is one physical device, with bytes as NVML's memory v2 counts them:
// total = reserved (by the driver) + used + free.
type GPU struct {
	Index      *int64        `msgpack:"index,omitempty"`
	UUID       string        `msgpack:"uuid,omitempty"`
	Name       string        `msgpack:"name,omitempty"`
	Bus        string        `msgpack:"bus,omitempty"`
	Total      *int64        `msgpack:"total,omitempty"`
	Reserved   *int64        `msgpack:"reserved,omitempty"`
	Used       *int64        `msgpack:"used,omitempty"`
	Free       *int64        `msgpack:"free,omitempty"`
	MIG        *bool         `msgpack:"mig,omitempty"`
	Instances  []MIGInstance `msgpack:"instances"`
	Processes  []GPUProcess  `msgpack:"processes"` // nil: could not be listed
	Retired    *int64        `msgpack:"retired_pages,omitempty"`
	ECCErrors  *int64        `msgpack:"ecc_errors,omitempty"` // uncorrected, lifetime
	Accounting []Accounted   `msgpack:"accounting"`
	Errors     []Failed      `msgpack:"errors,omitempty"`
}

// MIGInstance is one compute instance of a partitioned device.
type MIGInstance struct {
	UUID            string `msgpack:"uuid,omitempty"`
	GPUInstance     *int64 `msgpack:"gpu_instance,omitempty"`
	ComputeInstance *int64 `msgpack:"compute_instance,omitempty"`
	Name            string `msgpack:"name,omitempty"`
	Total           *int64 `msgpack:"total,omitempty"`
	Reserved        *int64 `msgpack:"reserved,omitempty"`
	Used            *int64 `msgpack:"used,omitempty"`
	Free            *int64 `msgpack:"free,omitempty"`
}

// GPUProcess is one process with memory on a device.
type GPUProcess struct {
	PID             int64   `msgpack:"pid"` // as the driver says, in the outermost namespace
	Kind            string  `msgpack:"kind,omitempty"`
	Used            *int64  `msgpack:"used,omitempty"`
	Name            string  `msgpack:"name,omitempty"`
	PPID            *int64  `msgpack:"ppid,omitempty"`
	Started         *int64  `msgpack:"started,omitempty"` // clock ticks since boot
	User            string  `msgpack:"user,omitempty"`
	State           string  `msgpack:"state,omitempty"`
	GPUInstance     *int64  `msgpack:"gpu_instance,omitempty"`
	ComputeInstance *int64  `msgpack:"compute_instance,omitempty"`
	Namespaces      []int64 `msgpack:"namespaces"` // pids, outermost first
	Parents         []int64 `msgpack:"parents"`    // pids of its parent, its parent's parent and so on
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
