package oom

import (
	"slices"

	"github.com/snapana/snapana/snapshot/oomlog"
)

// Row names a part of a device's memory.
type Row string

// The rows of a ledger, in the order in which they are shown.
const (
	RowFree        Row = "free"        // on the device
	RowOthers      Row = "others"      // other processes, by NVML
	RowNonPyTorch  Row = "non_pytorch" // this process: CUDA context, NCCL, other libraries
	RowForeign     Row = "foreign"     // the two before, where the message does not tell them apart
	RowProcess     Row = "process"     // this process with all of PyTorch's memory, of which the message says no more
	RowUsed        Row = "used"        // all processes, this one with PyTorch's memory among them
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

// Add appends a row; derived tells that it is a difference.
func (l *Ledger) Add(row Row, bytes int64, derived bool) {
	l.Rows = append(l.Rows, LedgerRow{row, bytes, derived})
}

// Rest is what the rows so far leave of the total.
func (l *Ledger) Rest() int64 {
	rest := l.Total
	for _, r := range l.Rows {
		rest -= r.Bytes
	}
	return rest
}

// split derives the ledger of a message, nil when it has too few figures.
func (g *Group) split() *Ledger {
	if !g.Total.Known() || !g.Free.Known() || g.Family == oomlog.Async || g.Unified() {
		return nil
	}
	l := &Ledger{Total: g.Total.Bytes, Slack: g.Total.Step + g.Free.Step}
	l.Add(RowFree, g.Free.Bytes, false)
	if !g.Reserved.Known() { // nothing more to tell apart
		l.cut(g)
		return l
	}
	own, others := l.processes(g)
	l.Slack += g.Reserved.Step + own.Step
	var other int64
	for _, o := range others {
		other += o.Used.Bytes
		l.Slack += o.Used.Step
	}
	if len(others) > 0 && own.Known() {
		l.Add(RowOthers, other, false)
	}
	if own.Known() {
		l.Add(RowNonPyTorch, own.Bytes-g.Reserved.Bytes, true)
	} else {
		l.Add(RowForeign, l.Rest()-g.Reserved.Bytes, true)
	}
	if u := g.Unallocated; u.Known() {
		l.Add(RowAllocated, g.Reserved.Bytes-u.Bytes, false)
		l.Add(RowUnallocated, u.Bytes, u.Derived)
	} else {
		l.Add(RowReserved, g.Reserved.Bytes, false)
	}
	if own.Known() {
		l.Add(RowResidual, l.Rest(), true)
	}
	return l
}

// cut adds the rows of a message that ends before what PyTorch has.
func (l *Ledger) cut(g *Group) {
	own := slices.IndexFunc(g.Processes, func(p oomlog.Process) bool { return p.PID == 0 && p.Used.Known() })
	if own < 0 {
		l.Add(RowUsed, l.Rest(), true)
		return
	}
	var others int64
	for _, p := range g.Processes {
		l.Slack += p.Used.Step
		if p.PID != 0 {
			others += p.Used.Bytes
		}
	}
	if len(g.Processes) > 1 {
		l.Add(RowOthers, others, false)
	}
	l.Add(RowProcess, g.Processes[own].Used.Bytes, false)
	l.Add(RowResidual, l.Rest(), true)
}

// processes finds this process in the list, by its size when it is not named, and the others.
func (l *Ledger) processes(g *Group) (own oomlog.Size, others []oomlog.Process) {
	fits, named := -1, false
	for i, p := range g.Processes {
		switch {
		case p.PID == 0:
			own, named = p.Used, true
			continue
		case p.Used.Known() && p.Used.Bytes+p.Used.Step+g.Reserved.Step >= g.Reserved.Bytes:
			if fits >= 0 {
				fits = -2 // several: no telling
			} else if fits == -1 {
				fits = len(others)
			}
		}
		if p.Used.Known() {
			others = append(others, g.Processes[i])
		}
	}
	if !named && fits >= 0 && g.Reserved.Bytes > 0 {
		own, l.Guessed = others[fits].Used, others[fits].PID
		others = append(others[:fits], others[fits+1:]...)
	}
	return own, others
}
