package oomlog

// Cause is why a request failed, as far as its message's own figures say.
type Cause string

const (
	CauseAbsurd        Cause = "absurd"          // more than any device has: a size that overflowed
	CauseTooLarge      Cause = "too-large"       // more than this device has in all
	CauseLimit         Cause = "limit"           // the memory fraction or watermark is used up
	CauseFragmentation Cause = "fragmentation"   // the allocator's free blocks are enough, in pieces
	CausePools         Cause = "private-pools"   // free memory is kept for CUDA graphs
	CauseRoom          Cause = "room"            // the device had enough free memory
	CauseJoined        Cause = "joined"          // free blocks and free device memory together are enough
	CauseOthers        Cause = "other-processes" // it would fit without the other processes
	CauseCapacity      Cause = "capacity"        // tensors fill the device
	CauseOutside       Cause = "outside"         // the caching allocator did not fail, CUDA did
	CauseHost          Cause = "host"            // the machine's memory, not a device's
	CauseUnknown       Cause = "unknown"         // too few figures
)

// absurdBytes is beyond what any device has: sizes from there on are overflows.
const absurdBytes = 1 << 50

// granule is what cudaMalloc may need beyond the request.
const granule = 2 << 20

// Cause judges by arithmetic on the printed figures.
func (m *Message) Cause() Cause {
	free, unallocated, tried := m.Free.Bytes, m.UnallocatedBytes(), m.Tried.Bytes
	switch {
	case m.Family == Exabyte || tried >= absurdBytes:
		return CauseAbsurd
	case m.Backend == "cpu":
		return CauseHost
	case m.Family == Outside:
		return CauseOutside
	case m.Family == Rejected:
		return CauseLimit
	case !m.Tried.Known():
		return CauseUnknown
	case m.Total.Known() && tried > m.Total.Bytes:
		return CauseTooLarge
	case m.Family == MPS:
		return m.watermark()
	case m.limited():
		return CauseLimit
	case m.Spilled():
		return CauseCapacity // of the device; what is free on it is not the limit
	case unallocated.Known() && unallocated.Bytes >= tried:
		return CauseFragmentation
	case m.PrivatePools.Known() && m.PrivatePools.Bytes >= tried:
		return CausePools
	case m.Free.Known() && free >= tried+granule:
		return CauseRoom
	case m.Family == Async && m.Free.Known():
		return CauseCapacity // this backend has no free blocks of its own
	case !m.Free.Known() || !unallocated.Known():
		return CauseUnknown
	case free+unallocated.Bytes >= tried:
		return CauseJoined
	case m.foreign() >= m.Total.Bytes/4 && m.Total.Known() && free+unallocated.Bytes+m.foreign() >= tried:
		return CauseOthers
	}
	return CauseCapacity
}

// limited reports whether the process may not take as much as the device has left.
func (m *Message) limited() bool {
	if !m.Allowed.Known() {
		return false
	}
	held := m.ReservedBytes()
	if m.Family == Async {
		held = m.Allocated
	}
	return held.Known() && held.Bytes+m.Tried.Bytes > m.Allowed.Bytes-m.Allowed.Step && m.Free.Bytes >= m.Tried.Bytes
}

// watermark is the judgement on family K, whose limit is a share of the machine's memory.
func (m *Message) watermark() Cause {
	switch {
	case !m.Allowed.Known() || !m.Allocated.Known():
		return CauseUnknown
	case m.Other.Bytes > m.Allocated.Bytes:
		return CauseOthers
	}
	return CauseLimit
}

// foreign is what other processes hold; where the message does not tell them from this
// process's own non-PyTorch memory, both.
func (m *Message) foreign() int64 {
	l := m.Ledger()
	if l == nil {
		return 0
	}
	if n, ok := l.Get(RowOthers); ok {
		return n
	}
	n, _ := l.Get(RowForeign)
	return n
}

// Spilled reports whether the process holds more than the device has: the driver moved part
// of it to the machine's memory, as it does under Windows and WSL.
func (m *Message) Spilled() bool {
	r := m.ReservedBytes()
	return m.Total.Known() && r.Known() && r.Bytes > m.Total.Bytes+r.Step+m.Total.Step
}
