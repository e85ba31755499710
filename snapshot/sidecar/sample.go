package sidecar

import "fmt"

// Sample is what was read of the process and its devices in one step.
type Sample struct {
	Time     int64          `msgpack:"time"`
	Step     *int64         `msgpack:"step"`
	Epoch    *int64         `msgpack:"epoch"`
	Label    string         `msgpack:"label"`
	Every    *int64         `msgpack:"every"` // stands for this many steps; nil means 1
	Devices  []DeviceSample `msgpack:"devices"`
	Host     *Host          `msgpack:"host"`
	Tensors  *TensorCounts  `msgpack:"tensors"`  // nil: not counted in this step
	Children []Child        `msgpack:"children"` // nil: not looked at
}

// DeviceSample is one device as the process sees it.
type DeviceSample struct {
	Device *int64 `msgpack:"device"` // ordinal
	Stats  Stats  `msgpack:",inline"`
	Free   *int64 `msgpack:"free"` // mem_get_info: of the whole device, bytes
	Total  *int64 `msgpack:"total"`
}

// DeviceMemory is what mem_get_info says of a whole device, in bytes.
type DeviceMemory struct {
	Device *int64 `msgpack:"device"` // ordinal
	Free   *int64 `msgpack:"free"`
	Total  *int64 `msgpack:"total"`
}

// Stats are the flat counters of torch.cuda.memory_stats. Samples share their names.
type Stats struct {
	Names   []string // of the record with the id
	NamesID *int64   `msgpack:"names"`
	Values  []int64  `msgpack:"stats"` // as long as Names
}

// Get gives one counter, such as "reserved_bytes.all.current".
func (s Stats) Get(name string) (value int64, ok bool) {
	for i, n := range s.Names {
		if n == name {
			return s.Values[i], true
		}
	}
	return 0, false
}

// check gives the statistics their names, which an earlier record has.
func (s *DeviceSample) check(c *cursor) string {
	if s.Stats.Values == nil {
		return ""
	}
	if id := s.Stats.NamesID; id != nil {
		s.Stats.Names = c.names[*id]
	}
	if have, want := len(s.Stats.Names), len(s.Stats.Values); have != want {
		return fmt.Sprintf("%d statistics, but %d names for them", want, have)
	}
	return ""
}

// Host is the host memory of the process and of the machine, in bytes.
type Host struct {
	RSS       *int64 `msgpack:"rss"` // of the process, like those up to FDs
	HWM       *int64 `msgpack:"hwm"` // peak of RSS
	Swap      *int64 `msgpack:"swap"`
	Threads   *int64 `msgpack:"threads"`
	FDs       *int64 `msgpack:"fds"`
	Available *int64 `msgpack:"available"` // of the machine, like those up to SwapTotal
	RAM       *int64 `msgpack:"ram"`
	SwapFree  *int64 `msgpack:"swap_free"`
	SwapTotal *int64 `msgpack:"swap_total"`
	Pinned    *int64 `msgpack:"pinned"` // host_memory_stats allocated_bytes.current, of 2.7 to 2.9 reserved_bytes.current
	Cgroup    *int64 `msgpack:"cgroup"` // memory.current
	Shm       *int64 `msgpack:"shm"`
}

// TensorCounts counts distinct storages, by what Python's collector can see.
type TensorCounts struct {
	CPUCount    *int64 `msgpack:"cpu_count"`
	CPUBytes    *int64 `msgpack:"cpu_bytes"`
	DeviceCount *int64 `msgpack:"device_count"`
	DeviceBytes *int64 `msgpack:"device_bytes"`
	Objects     *int64 `msgpack:"objects"` // tracked by the collector
}

// Child is a process below the recorder's.
type Child struct {
	PID     *int64 `msgpack:"pid"`
	PPID    *int64 `msgpack:"ppid"`
	RSS     *int64 `msgpack:"rss"`
	PSS     *int64 `msgpack:"pss"`
	HostPID *int64 `msgpack:"host_pid"`
	Name    string `msgpack:"name"`
	State   string `msgpack:"state"` // one letter of /proc
}
