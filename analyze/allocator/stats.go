package allocator

// Stat is one figure over time.
type Stat struct {
	Current, Peak int64
	Allocated     int64 // sum of all increases
}

// Freed is the sum of all decreases.
func (s *Stat) Freed() int64 { return s.Allocated - s.Current }

// add counts what comes, or with a number below zero what leaves.
func (s *Stat) add(n int64) {
	s.Current += n
	if n > 0 {
		s.Allocated += n
		s.Peak = max(s.Peak, s.Current)
	}
}

// Metric is a figure for all pools together, the small ones, and the large ones.
type Metric [3]Stat

// The parts of a Metric.
const (
	All = iota
	SmallPools
	LargePools
)

// Add counts what comes to the pools of a kind, SmallPools or LargePools; a number below zero is what
// leaves them.
func (m *Metric) Add(kind int, n int64) {
	m[All].add(n)
	m[kind].add(n)
}

// sub is Add of what leaves, which is half the work: frees are as many as requests.
func (m *Metric) sub(kind int, n int64) {
	m[All].Current -= n
	m[kind].Current -= n
}

// Stats are the figures of torch.cuda.memory_stats() (SPEC.md 5.11, snapshot/SPEC.md 6.1). Bytes are rounded sizes but
// for RequestedBytes.
type Stats struct {
	Allocation         Metric // blocks that the program holds
	AllocatedBytes     Metric
	Segment            Metric // of cudaMalloc; maps are no segments
	ReservedBytes      Metric
	Active             Metric // blocks that the program holds or another stream still uses
	ActiveBytes        Metric
	InactiveSplit      Metric // free blocks with neighbors, expandable ones left out
	InactiveSplitBytes Metric
	RequestedBytes     Metric

	OversizeAllocations Stat // blocks of max_split_size and more
	OversizeSegments    Stat

	NumAllocRetries   int64 // requests for which the whole cache was given back
	NumOOMs           int64
	NumOOMRejections  int64 // failures of throw_on_cudamalloc_oom
	NumSyncAllStreams int64
	NumDeviceAlloc    int64 // cudaMalloc calls and maps
	NumDeviceFree     int64 // cudaFree calls and unmaps
	MaxSplitSize      int64 // -1 for no limit
}

// Allocate counts a block that the program gets, with its rounded size and what was asked for in bytes.
func (s *Stats) Allocate(kind int, size, requested int64) {
	s.Allocation.Add(kind, 1)
	s.AllocatedBytes.Add(kind, size)
	s.Active.Add(kind, 1)
	s.ActiveBytes.Add(kind, size)
	s.RequestedBytes.Add(kind, requested)
}

// Free counts a block that the program gives back, while other streams may still use it.
func (s *Stats) Free(kind int, size int64) {
	s.Allocation.sub(kind, 1)
	s.AllocatedBytes.sub(kind, size)
}

// Complete counts a block that nobody uses any more.
func (s *Stats) Complete(kind int, size, requested int64) {
	s.Active.sub(kind, 1)
	s.ActiveBytes.sub(kind, size)
	s.RequestedBytes.sub(kind, requested)
}

// split counts free blocks of cudaMalloc that have neighbors, and their bytes.
func (s *Stats) split(kind int, blocks, bytes int64) {
	s.InactiveSplit.Add(kind, blocks)
	s.InactiveSplitBytes.Add(kind, bytes)
}

// named is a Metric under its name in memory_stats().
type named struct {
	key    string
	metric *Metric
}

func (s *Stats) metrics() []named {
	return []named{
		{"allocation", &s.Allocation}, {"segment", &s.Segment}, {"active", &s.Active},
		{"inactive_split", &s.InactiveSplit}, {"allocated_bytes", &s.AllocatedBytes},
		{"reserved_bytes", &s.ReservedBytes}, {"active_bytes", &s.ActiveBytes},
		{"inactive_split_bytes", &s.InactiveSplitBytes}, {"requested_bytes", &s.RequestedBytes},
	}
}

// Each calls f with every key of memory_stats() and its value, in a fixed order.
func (s *Stats) Each(f func(key string, value int64)) {
	stat := func(key string, st *Stat) {
		f(key+".current", st.Current)
		f(key+".peak", st.Peak)
		f(key+".allocated", st.Allocated)
		f(key+".freed", st.Freed())
	}
	for _, m := range s.metrics() {
		for kind, name := range []string{"all", "small_pool", "large_pool"} {
			stat(m.key+"."+name, &m.metric[kind])
		}
	}
	stat("oversize_allocations", &s.OversizeAllocations)
	stat("oversize_segments", &s.OversizeSegments)
	f("num_alloc_retries", s.NumAllocRetries)
	f("num_ooms", s.NumOOMs)
	f("num_oom_rejections", s.NumOOMRejections)
	f("num_sync_all_streams", s.NumSyncAllStreams)
	f("num_device_alloc", s.NumDeviceAlloc)
	f("num_device_free", s.NumDeviceFree)
	f("max_split_size", s.MaxSplitSize)
}

// ResetPeaks makes the current values the peaks (torch.cuda.reset_peak_memory_stats).
func (s *Stats) ResetPeaks() {
	for _, m := range s.metrics() {
		for i := range m.metric {
			m.metric[i].Peak = m.metric[i].Current
		}
	}
	s.OversizeAllocations.Peak = s.OversizeAllocations.Current
	s.OversizeSegments.Peak = s.OversizeSegments.Current
}

// KindOf is the part of a Metric that counts small pools, or large ones.
func KindOf(small bool) int {
	if small {
		return SmallPools
	}
	return LargePools
}
