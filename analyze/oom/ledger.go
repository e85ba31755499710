package oom

import "github.com/snapana/snapana/snapshot/oomlog"

// Row names a part of a device's memory.
type Row string

// The rows of a ledger, in the order in which they are shown.
const (
	RowFree        Row = "free"        // on the device
	RowOthers      Row = "others"      // other processes, by NVML
	RowNonPyTorch  Row = "non_pytorch" // this process: CUDA context, NCCL, other libraries
	RowForeign     Row = "foreign"     // the two before, where the message does not tell them apart
	RowAllocated   Row = "allocated"
	RowUnallocated Row = "unallocated"
	RowReserved    Row = "reserved" // the two before, where the message does not tell them apart
	RowResidual    Row = "residual" // what the other rows leave of the total
)

// LedgerRow is one part; the Bytes of all rows add up to the total exactly.
type LedgerRow struct {
	Row   Row   `json:"row"`
	Bytes int64 `json:"bytes"`
	// Derived is set for what the message does not print: the row is a difference.
	Derived bool `json:"derived"`
}

// Ledger splits a device's memory at the failure:
// total = free + other processes + this process without PyTorch + allocated + unallocated.
type Ledger struct {
	Total int64
	Rows  []LedgerRow
	// Slack is how far rounding of the printed figures can move a difference.
	Slack int64
	// Guessed is the process that is taken for this one by its size, 0 for none: inside a
	// container NVML's process numbers are not those of the program (snapshot/SPEC.md 7.2).
	Guessed int64
}

// Get returns the bytes of a row.
func (l *Ledger) Get(row Row) (int64, bool) {
	for _, r := range l.Rows {
		if r.Row == row {
			return r.Bytes, true
		}
	}
	return 0, false
}

// ledger derives the split, nil when the message has too few figures.
func (m *Group) split() *Ledger {
	if !m.Total.Known() || !m.Free.Known() || m.Family == oomlog.Async {
		return nil
	}
	l := &Ledger{Total: m.Total.Bytes}
	steps := m.Total.Step + m.Free.Step
	add := func(row Row, bytes int64, derived bool) {
		l.Rows = append(l.Rows, LedgerRow{row, bytes, derived})
	}
	add(RowFree, m.Free.Bytes, false)
	reserved := m.Reserved
	if !reserved.Known() { // nothing more to tell apart
		add(RowForeign, m.Total.Bytes-m.Free.Bytes, true)
		l.Slack = steps
		return l
	}
	steps += reserved.Step
	own, others := l.processes(m, reserved)
	for _, o := range others {
		steps += o.Used.Step
	}
	sum := m.Free.Bytes + reserved.Bytes
	if own.Known() {
		var other int64
		for _, o := range others {
			other += o.Used.Bytes
		}
		if len(others) > 0 {
			add(RowOthers, other, false)
		}
		add(RowNonPyTorch, own.Bytes-reserved.Bytes, true)
		sum += other + own.Bytes - reserved.Bytes
		steps += own.Step
	} else {
		add(RowForeign, m.Total.Bytes-sum, true)
		sum = m.Total.Bytes
	}
	if u := m.Unallocated; u.Known() {
		add(RowAllocated, reserved.Bytes-u.Bytes, false)
		add(RowUnallocated, u.Bytes, u.Derived)
	} else {
		add(RowReserved, reserved.Bytes, false)
	}
	if own.Known() {
		add(RowResidual, m.Total.Bytes-sum, true)
	}
	l.Slack = steps
	return l
}

// processes finds this process in the list, by its size when it is not named, and the others.
func (l *Ledger) processes(m *Group, reserved oomlog.Size) (own oomlog.Size, others []oomlog.Process) {
	fits, named := -1, false
	for i, p := range m.Processes {
		switch {
		case p.PID == 0:
			own, named = p.Used, true
			continue
		case p.Used.Known() && p.Used.Bytes+p.Used.Step+reserved.Step >= reserved.Bytes:
			if fits >= 0 {
				fits = -2 // several: no telling
			} else if fits == -1 {
				fits = len(others)
			}
		}
		if p.Used.Known() {
			others = append(others, m.Processes[i])
		}
	}
	if !named && fits >= 0 && reserved.Bytes > 0 {
		own, l.Guessed = others[fits].Used, others[fits].PID
		others = append(others[:fits], others[fits+1:]...)
	}
	return own, others
}
