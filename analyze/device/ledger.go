// Package device reads the GPU driver: how much of each device's memory is used, and by which processes.
// It asks NVML, or in a build without cgo nvidia-smi. NVML is loaded at run time and may be missing; any call before a
// successful nvmlInit, or of a function that an older driver lacks, would kill the process, so
// Open is the only way to a Driver and a Driver asks for each function before it calls it.
//
// What the driver does not tell stays unknown: nil, never zero. A call that fails costs its
// figure and is listed in the reading's errors; a device that is lost costs the rest of its
// figures. What a device does not support is no error.
//
// A Ledger accounts for all memory of a device, from what the driver counts down to what PyTorch's
// allocator does with its part:
//
//	total        = driver + others + this process + free + residual
//	this process = non_pytorch + reserved
//	reserved     = allocated + what is cached, by class
//
// where non_pytorch is the CUDA context and what libraries such as NCCL allocated past PyTorch.
// It is what the process uses less what is *reserved*, never less what is allocated: cached
// memory is PyTorch's, too. The driver and PyTorch are read one after the other, and figures of
// another process, device or moment would give a difference that means nothing, so BuildLedger refuses
// them.
package device

import (
	"errors"
	"fmt"
	"time"

	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// ErrNoDriver says that the machine has no NVIDIA driver, or none that answers.
var ErrNoDriver = errors.New("no NVIDIA driver")

// States of a process.
const (
	Running = "running"
	Zombie  = "zombie" // ended, and its parent has not asked how
	// Gone is a process that the driver lists and the system does not have. It is only said
	// where every process of the machine can be seen, which is not so in a container.
	Gone = "gone"
)

// Rows beside those of an out-of-memory message. The classes of cached memory are those of
// package fragmentation, and stand in the place of oom.RowUnallocated.
const (
	RowDriver     oom.Row = "driver" // what the driver keeps for itself
	RowReleasable oom.Row = "releasable"
	RowHard       oom.Row = "hard"
	RowSoft       oom.Row = "soft"
	RowStream     oom.Row = "stream"
	RowPending    oom.Row = "pending"
)

// Side is PyTorch's side: what one process's allocator did with a device at a moment. Numbers
// of the process are 0 where they are unknown, the rest is empty.
type Side struct {
	PID     int64 // as the process sees it
	HostPID int64 // in the outermost namespace, where it differs
	Started int64 // clock ticks since boot
	Boot    string

	UUID string // of the device or the MIG instance
	At   time.Time

	Reserved, Allocated int64
	Cached              []oom.LedgerRow // parts of Reserved - Allocated; nil: one row for all
}

// Of takes the memory of a side from a snapshot's state.
func (s Side) Of(at timeline.Totals, c fragmentation.Classes) Side {
	s.Reserved, s.Allocated, s.Cached = at.Reserved, at.Allocated, nil
	for _, row := range []oom.LedgerRow{{Row: RowReleasable, Bytes: c.Releasable}, {Row: RowHard, Bytes: c.Hard},
		{Row: RowSoft, Bytes: c.Soft}, {Row: RowStream, Bytes: c.Stream}, {Row: RowPending, Bytes: c.Pending}} {
		if row.Bytes != 0 {
			s.Cached = append(s.Cached, row)
		}
	}
	return s
}

// By takes the process of a side from the header of a recording.
func (s Side) By(h *sidecar.Header) Side {
	told := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	s.PID, s.HostPID, s.Started, s.Boot = told(h.PID), told(h.HostPID), told(h.Started), h.Boot
	return s
}

// Ledger is the split of one device, or of one instance of it. Its rows add up to the total.
type Ledger struct {
	oom.Ledger
	Device int   // of the driver; PyTorch counts those that CUDA_VISIBLE_DEVICES leaves
	PID    int64 // of this process, as the driver says; 0 when it is not among the processes
	// Untold counts other processes whose bytes the driver does not report. They are in the residual.
	Untold int
}

// MaxApart is how far a reading and PyTorch's figures may be apart.
const MaxApart = 5 * time.Second

// ErrApart is why two sides cannot be put into one ledger: they are of different processes,
// devices or moments, or that cannot be ruled out.
var ErrApart = errors.New("not comparable")

func apart(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrApart, fmt.Sprintf(format, args...))
}

// BuildLedger joins a reading with PyTorch's side. The error is ErrApart.
func BuildLedger(r *sidecar.Reading, s Side) (*Ledger, error) {
	after := time.Unix(0, r.Time).Sub(s.At)
	switch {
	case s.Boot != "" && r.Boot != "" && s.Boot != r.Boot:
		return nil, apart("the process ran on another machine, or before a reboot")
	case s.At.IsZero():
		return nil, apart("the time of PyTorch's figures is unknown")
	case after < -MaxApart:
		return nil, apart("the driver was read %s before PyTorch's figures were taken", after.Abs().Round(time.Second))
	case after > MaxApart:
		return nil, apart("the driver was read %s after PyTorch's figures were taken", after.Round(time.Second))
	}
	p, err := choose(r, s)
	if err != nil {
		return nil, err
	}
	own, guessed, err := p.own(s)
	if err != nil {
		return nil, err
	}
	if p.total == nil || p.free == nil {
		return nil, apart("the driver does not report the memory of the device")
	}
	return p.split(s, own, guessed), nil
}

func (p *part) split(s Side, own *sidecar.GPUProcess, guessed bool) *Ledger {
	l := &Ledger{Device: p.device}
	l.Total = *p.total
	l.Add(oom.RowFree, *p.free, false)
	if p.reserved != nil {
		l.Add(RowDriver, *p.reserved, false)
	}
	var others int64
	n := 0
	for i := range p.processes {
		switch o := &p.processes[i]; {
		case o == own:
		case o.Used == nil:
			l.Untold++
		default:
			others, n = others+*o.Used, n+1
		}
	}
	if n > 0 {
		l.Add(oom.RowOthers, others, false)
	}
	told := own != nil && own.Used != nil
	if own != nil {
		l.PID = own.PID
		if guessed {
			l.Guessed = own.PID
		}
	}
	if told {
		l.Add(oom.RowNonPyTorch, *own.Used-s.Reserved, true)
	} else {
		l.Add(oom.RowForeign, l.Rest()-s.Reserved, true)
	}
	l.Add(oom.RowAllocated, s.Allocated, false)
	if s.Cached == nil {
		l.Add(oom.RowUnallocated, s.Reserved-s.Allocated, true)
	}
	for _, c := range s.Cached {
		l.Add(c.Row, c.Bytes, c.Derived)
	}
	if told {
		l.Add(oom.RowResidual, l.Rest(), true)
	}
	return l
}
