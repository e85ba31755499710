package device

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// part is a device, or an instance of one, with the processes in it.
type part struct {
	device                int
	uuid                  string
	total, reserved, free *int64
	processes             []sidecar.GPUProcess
}

// parts lists the devices, and in place of those that are split their instances. Compute
// instances of one GPU instance share its memory and are one part for each name of it.
func parts(r *sidecar.Reading) []part {
	var out []part
	for i := range r.Devices {
		g := &r.Devices[i]
		if g.MIG == nil || !*g.MIG {
			out = append(out, part{Index(g, i), g.UUID, g.Total, g.Reserved, g.Free, g.Processes})
			continue
		}
		for _, m := range g.Instances {
			p := part{Index(g, i), m.UUID, m.Total, m.Reserved, m.Free, nil}
			for _, q := range g.Processes {
				if q.GPUInstance != nil && m.GPUInstance != nil && *q.GPUInstance == *m.GPUInstance {
					p.processes = append(p.processes, q)
				}
			}
			out = append(out, p)
		}
	}
	return out
}

// Index is the driver's number of a device, or its place in the reading.
func Index(g *sidecar.GPU, at int) int {
	if g.Index != nil {
		return int(*g.Index)
	}
	return at
}

// choose finds the side's device: the one that it names, the only one, or the only one that its
// process uses.
func choose(r *sidecar.Reading, s Side) (*part, error) {
	all := parts(r)
	if s.UUID != "" {
		at := slices.IndexFunc(all, func(p part) bool { return bare(p.uuid) == bare(s.UUID) })
		if at >= 0 {
			return &all[at], nil
		}
		return nil, apart("the reading does not have the device %s", s.UUID)
	}
	if len(all) == 1 {
		return &all[0], nil
	}
	var found *part
	for i := range all {
		switch own := slices.ContainsFunc(all[i].processes, func(p sidecar.GPUProcess) bool { return s.is(&p) }); {
		case own && found != nil:
			return nil, apart("the process uses several devices, and PyTorch's figures do not name theirs")
		case own:
			found = &all[i]
		}
	}
	if found == nil {
		return nil, apart("the reading has %d devices, and PyTorch's figures do not name theirs", len(all))
	}
	return found, nil
}

// bare is a UUID without the kind before it, which torch leaves out.
func bare(uuid string) string {
	return strings.TrimPrefix(strings.TrimPrefix(uuid, "GPU-"), "MIG-")
}

// numbered reports whether a process of the driver has the side's number, in any namespace.
func (s *Side) numbered(p *sidecar.GPUProcess) bool {
	switch {
	case s.HostPID != 0:
		return p.PID == s.HostPID
	case s.PID == 0:
		return false
	}
	return p.PID == s.PID || slices.Contains(p.Namespaces, s.PID)
}

// is reports whether a process of the driver is the side's: it has its number, and did not start
// at another time.
func (s *Side) is(p *sidecar.GPUProcess) bool {
	return s.numbered(p) && (s.Started == 0 || p.Started == nil || *p.Started == s.Started)
}

// own finds the side's process. Where it has no number, or the driver's numbers cannot be
// looked up, as in a container, the only process that is large enough is taken for it.
func (p *part) own(s Side) (own *sidecar.GPUProcess, guessed bool, err error) {
	var reused bool
	for i := range p.processes {
		q := &p.processes[i]
		if s.is(q) {
			if own != nil { // the same number in two containers, and nothing to tell them apart
				return nil, false, apart("processes %d and %d could both be this one", own.PID, q.PID)
			}
			own = q
		} else if s.numbered(q) {
			reused = true
		}
	}
	if own != nil {
		if own.Used != nil && *own.Used < s.Reserved {
			return nil, false, apart("process %d used %s, which is less than PyTorch had reserved (%s): they are of "+
				"different moments", own.PID, units.Bytes(*own.Used), units.Bytes(s.Reserved))
		}
		return own, false, nil
	}
	if reused {
		return nil, false, apart("process %d is another one now, started at another time", max(s.HostPID, s.PID))
	}
	for i := range p.processes {
		q := &p.processes[i]
		if q.Used == nil || *q.Used < s.Reserved || s.Reserved == 0 || s.PID != 0 && q.State != "" {
			continue
		}
		if own != nil {
			return nil, false, nil // several: no telling
		}
		own, guessed = q, true
	}
	hidden := func(q sidecar.GPUProcess) bool { return q.State == "" }
	if own == nil && s.PID != 0 && p.processes != nil && !slices.ContainsFunc(p.processes, hidden) {
		return nil, false, apart("process %d has no memory on this device", s.PID)
	}
	return own, guessed, nil
}

// Above is the nearest ancestor of a process among those in a list, as an index, -1 when none is
// there.
func Above(processes []sidecar.GPUProcess, p *sidecar.GPUProcess) int {
	for _, pid := range p.Parents {
		if at := slices.IndexFunc(processes, func(q sidecar.GPUProcess) bool { return q.PID == pid }); at >= 0 {
			return at
		}
	}
	return -1
}

// Only is the reading with one process and those that descend from it. The number is of the
// machine or of any namespace inside.
func Only(r *sidecar.Reading, pid int64) *sidecar.Reading {
	out := *r
	out.Devices = nil
	pids := []int64{pid} // the numbers on the machine; it may itself have nothing on any device
	for _, g := range r.Devices {
		for _, p := range g.Processes {
			if slices.Contains(p.Namespaces, pid) {
				pids = append(pids, p.PID)
			}
		}
	}
	of := func(pid int64) bool { return slices.Contains(pids, pid) }
	for _, g := range r.Devices {
		g.Processes = slices.DeleteFunc(slices.Clone(g.Processes),
			func(p sidecar.GPUProcess) bool { return !of(p.PID) && !slices.ContainsFunc(p.Parents, of) })
		if len(g.Processes) == 0 {
			continue
		}
		g.Accounting = slices.DeleteFunc(slices.Clone(g.Accounting),
			func(a sidecar.Accounted) bool { return !of(a.PID) })
		out.Devices = append(out.Devices, g)
	}
	return &out
}

// History is what was used on each device, by its index: the last readings, oldest first.
type History map[int64][]int64

// Add keeps what a reading says, and returns the histories in the order of its devices: none for
// those that it could not read.
func (h History) Add(r *sidecar.Reading) [][]int64 {
	const most = 64
	out := make([][]int64, len(r.Devices))
	for i := range r.Devices {
		if g := &r.Devices[i]; g.Index != nil && g.Used != nil {
			used := append(h[*g.Index], *g.Used)
			out[i] = used[max(len(used)-most, 0):]
			h[*g.Index] = out[i]
		}
	}
	return out
}
