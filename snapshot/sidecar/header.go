package sidecar

// The fixed values of a Header.
const (
	Format  = "snapana"
	Version = 1

	ProducerRecorder = "recorder"
	ProducerNVML     = "nvml"
)

// Header is the first record of a run.
type Header struct {
	Format          string `msgpack:"format"`
	Version         int64  `msgpack:"version"`
	Producer        string `msgpack:"producer,omitempty"`
	ProducerVersion string `msgpack:"producer_version,omitempty"`
	Run             string `msgpack:"run,omitempty"`
	PID             *int64 `msgpack:"pid,omitempty"`
	HostPID         *int64 `msgpack:"host_pid,omitempty"` // in the outermost namespace, where it differs
	Started         *int64 `msgpack:"started,omitempty"`  // clock ticks since boot
	Boot            string `msgpack:"boot,omitempty"`
	Rank            *int64 `msgpack:"rank,omitempty"`
	WorldSize       *int64 `msgpack:"world_size,omitempty"`
	LocalRank       *int64 `msgpack:"local_rank,omitempty"`
	Program         string `msgpack:"program,omitempty"` // base name
}
