package finding

import (
	"slices"
	"strings"
)

// Status is the one-word outcome of an analysis.
type Status string

// The outcomes of snapshots and of out-of-memory messages.
const (
	Healthy       Status = "healthy"
	Ghost         Status = "ghost"
	Fragmentation Status = "fragmentation"
	Capacity      Status = "capacity"
	Limit         Status = "limit"
	Pools         Status = "private-pools"
	Others        Status = "other-processes"
	Absurd        Status = "absurd"
	Unbalanced    Status = "imbalance"
	Cached        Status = "cached"
	Inconsistent  Status = "inconsistent"
	NoHistory     Status = "no-history"
	NoData        Status = "no-data"
)

// Outcomes of single findings only, never of a snapshot.
const (
	Stays   Status = "stays"
	Outside Status = "outside"
	Host    Status = "host"
)

// The outcomes of counters over time, of the device's memory and the host's.
const (
	Growing  Status = "growing"
	Swapping Status = "swapping"
	Flat     Status = "flat"
	Unknown  Status = "unknown"
)

// Tone is how an outcome is to be shown: the color class of all outputs.
type Tone uint8

const (
	Bad     Tone = iota // a failure, or data that cannot be trusted
	Warn                // something to look into
	Neutral             // worth knowing, nothing to fix
	Good                // nothing found
	None                // nothing can be said
)

// String is the name of the tone's class in style sheets.
func (t Tone) String() string { return [...]string{"bad", "warn", "calm", "good", "none"}[t] }

// outcome is a row of the table of statuses.
type outcome struct {
	status  Status
	tone    Tone
	meaning string // one clause for legends and manuals
}

// outcomes are all statuses, the gravest first.
var outcomes = [...]outcome{
	{Absurd, Bad, "one request exceeds the whole device"},
	{Capacity, Bad, "live tensors alone exceed the device, or a buffer will when it is full"},
	{Others, Bad, "memory outside PyTorch took what was missing"},
	{Pools, Bad, "a request failed although memory was free in private pools, as CUDA graphs have"},
	{Limit, Bad, "a request failed although there was room: a per-process limit, or free memory of another stream"},
	{Fragmentation, Warn,
		"reserved memory is free only in pieces too small to use, because live blocks pin the segments"},
	{Ghost, Warn, "a loop retains more memory per iteration: a list, closure, hook or cycle still refers to it"},
	{Unbalanced, Warn, "one GPU is much fuller than the others that the program uses"},
	{Growing, Warn, "memory in use grows and is not freed"},
	{Swapping, Warn, "the machine is short of memory; the program is not at fault"},
	{Inconsistent, Bad, "the file contradicts itself, so its figures are estimates"},
	{Outside, Bad, "memory outside PyTorch, by the driver's readings"},
	{Host, Bad, "the process's host memory, pinned or not"},
	{Cached, Neutral, "PyTorch keeps unused memory for later; not a leak"},
	{Stays, Neutral, "memory that a sleep, an offload or a release of much memory left on the device"},
	{NoHistory, Neutral, "only the final state is known: what is live, but not leaks and peaks"},
	{NoData, None, "too little could be read, or was recorded, to judge"},
	{Unknown, None, "too few samples to judge"},
	{Healthy, Good, "no problem found"},
	{Flat, Good, "memory does not grow"},
}

// Statuses lists all statuses, the gravest first.
func Statuses() []Status {
	out := make([]Status, len(outcomes))
	for i := range outcomes {
		out[i] = outcomes[i].status
	}
	return out
}

// Rank orders statuses, the gravest first, from 0 on; it is -1 for one that is not in the table.
func (s Status) Rank() int {
	return slices.IndexFunc(outcomes[:], func(o outcome) bool { return o.status == s })
}

// Tone is how s is to be shown.
func (s Status) Tone() Tone {
	if at := s.Rank(); at >= 0 {
		return outcomes[at].tone
	}
	return None
}

// Word is the status as it is shown to people.
func (s Status) Word() string { return strings.ReplaceAll(string(s), "-", " ") }

// Meaning says in one clause what s stands for, "" for one that is not in the table.
func (s Status) Meaning() string {
	if at := s.Rank(); at >= 0 {
		return outcomes[at].meaning
	}
	return ""
}
