package device

import (
	"slices"

	"github.com/snapana/snapana/snapshot/sidecar"
)

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
	var pids []int64 // the numbers on the machine
	for i := range r.Devices {
		for k := range r.Devices[i].Processes {
			if p := &r.Devices[i].Processes[k]; p.PID == pid || slices.Contains(p.Namespaces, pid) {
				pids = append(pids, p.PID)
			}
		}
	}
	pids = append(pids, pid) // it may itself have nothing on any device
	of := func(pid int64) bool { return slices.Contains(pids, pid) }
	for _, g := range r.Devices {
		all := g.Processes
		g.Processes = nil
		for _, p := range all {
			if of(p.PID) || slices.ContainsFunc(p.Parents, of) {
				g.Processes = append(g.Processes, p)
			}
		}
		if g.Processes == nil {
			continue
		}
		g.Accounting = slices.DeleteFunc(slices.Clone(g.Accounting), func(a sidecar.Accounted) bool { return !of(a.PID) })
		out.Devices = append(out.Devices, g)
	}
	return &out
}
