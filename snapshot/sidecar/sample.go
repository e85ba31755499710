package sidecar

// Sample is what was read of the process and its devices in one step.
type Sample struct {
	Time     int64
	Step     *int64
	Epoch    *int64
	Label    string
	Every    *int64 // stands for this many steps; nil means 1
	Devices  []DeviceSample
	Host     *Host
	Tensors  *TensorCounts // nil: not counted in this step
	Children []Child       // nil: not looked at
}

// DeviceSample is one device as the process sees it.
type DeviceSample struct {
	Device      *int64 // ordinal
	Stats       Stats
	Free, Total *int64 // mem_get_info: of the whole device, bytes
}

// DeviceMemory is what mem_get_info says of a whole device, in bytes.
type DeviceMemory struct {
	Device      *int64 // ordinal
	Free, Total *int64
}

// Stats are the flat counters of torch.cuda.memory_stats. Samples share their names.
type Stats struct {
	Names  []string
	Values []int64 // as long as Names
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

// Host is the host memory of the process and of the machine, in bytes.
type Host struct {
	RSS, HWM, Swap                      *int64 // of the process; HWM is the peak of RSS
	Threads, FDs                        *int64
	Available, RAM, SwapFree, SwapTotal *int64 // of the machine
	Pinned                              *int64 // host_memory_stats allocated_bytes.current
	Cgroup                              *int64 // memory.current
	Shm                                 *int64
}

// TensorCounts counts distinct storages, by what Python's collector can see.
type TensorCounts struct {
	CPUCount, CPUBytes, DeviceCount, DeviceBytes *int64
	Objects                                      *int64 // tracked by the collector
}

// Child is a process below the recorder's.
type Child struct {
	PID, PPID, RSS, PSS *int64
	HostPID             *int64
	Name                string
	State               string // one letter of /proc
}
