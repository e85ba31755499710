package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// JudgeReading says what is odd about the processes of a reading of the driver. The findings are ordered by device.
// Numbers of processes are of the machine; pid is the one that the question is about, 0 for none.
func JudgeReading(r *sidecar.Reading, pid int64) []finding.Finding {
	var out []finding.Finding
	for i := range r.Devices {
		g := &r.Devices[i]
		var odd []*finding.Finding
		for k := range g.Processes {
			odd = append(odd, workers(g, k))
		}
		odd = append(odd, strays(r, i), ended(g), others(g, pid), unlisted(g, len(r.Errors) == 0))
		for _, f := range odd {
			if f != nil && f.Bytes+int64(len(f.Evidence.Processes)) > 0 {
				f.Status, f.Device, f.Events = finding.Outside, device.Index(g, i), []int{}
				out = append(out, *f)
			}
		}
	}
	return out
}

// maxContext is more than a process takes that has a context and little else.
const maxContext = 2 << 30

// of begins a finding on those processes of a device that pick takes; it is none where that takes none. It weighs
// their bytes against the device.
func of(g *sidecar.GPU, id string, trust finding.Confidence,
	pick func(p *sidecar.GPUProcess, v *finding.Process) bool) *finding.Finding {
	f := &finding.Finding{ID: id, Severity: finding.Info, Confidence: trust}
	for i := range g.Processes {
		p := &g.Processes[i]
		v := finding.Process{PID: p.PID, Name: p.Name, User: p.User, State: p.State, Used: -1}
		if p.Used != nil {
			v.Used = units.Size(*p.Used)
		}
		if pick(p, &v) {
			f.Evidence.Processes = append(f.Evidence.Processes, v)
			f.Bytes += max(int64(v.Used), 0)
		}
	}
	if f.Bytes >= 1<<30 || g.Total != nil && f.Bytes >= *g.Total/20 {
		f.Severity = finding.Warning
	}
	return f
}

// workers finds children of a process that have a context of their own beside that of their
// parent, as data-loader workers do that touch the device.
func workers(g *sidecar.GPU, at int) *finding.Finding {
	parent := &g.Processes[at]
	f := of(g, "workers", finding.Medium, func(p *sidecar.GPUProcess, v *finding.Process) bool {
		v.Parent, v.Origin = parent.PID, origin(p, parent)
		// A child that has as much as its parent is no helper of it: mp.spawn starts ranks like that.
		return device.Above(g.Processes, p) == at && p.Used != nil && parent.Used != nil && *p.Used <= maxContext &&
			*p.Used <= *parent.Used/2
	})
	found := f.Evidence.Processes
	f.Heuristic = true
	who := fmt.Sprintf("%d children of process %d (%s) have a CUDA context each", len(found), parent.PID,
		name(parent.Name))
	if len(found) == 1 {
		who = fmt.Sprintf("A child of process %d (%s) has a CUDA context of its own", parent.PID, name(parent.Name))
	}
	f.Say("%s: %s.", who, units.Bytes(f.Bytes))
	f.Because("Each process that touches the device pays for a context: %s.",
		list(found, func(p *finding.Process) string { return p.Origin + ", " + used(p.Used) }))
	f.Because("They use much less than their parent, as data-loader workers do; small ranks would look the same.")
	f.Do("Keep the dataset and the collate function on the CPU, and move batches to the device in the main process "+
		"(pin_memory=True, non_blocking=True).",
		"Look for .cuda(), .to(\"cuda\") and torch.cuda calls in code that workers import; CUDA_VISIBLE_DEVICES=\"\" "+
			"in the workers shows who needs the device.")
	return f
}

// origin says how a process came from another.
func origin(p, parent *sidecar.GPUProcess) string {
	switch {
	case strings.Contains(p.Name, "multiprocessing.spawn"):
		return "spawned"
	case strings.Contains(p.Name, "multiprocessing.forkserver"):
		return "from a fork server"
	case p.Name == parent.Name:
		return "forked"
	}
	return name(p.Name)
}

// strays finds processes that work on another device and have little more than a context on this
// one, as every rank of a job has on the first device that forgets to choose its own.
func strays(r *sidecar.Reading, at int) *finding.Finding {
	f := of(&r.Devices[at], "strays", finding.Medium, func(p *sidecar.GPUProcess, v *finding.Process) bool {
		for k := range r.Devices {
			far := slices.IndexFunc(r.Devices[k].Processes, func(q sidecar.GPUProcess) bool {
				return q.PID == p.PID && p.Used != nil && q.Used != nil && *p.Used <= maxContext && *q.Used > 4**p.Used
			})
			if k != at && far >= 0 {
				v.Elsewhere = &finding.OnDevice{Device: device.Index(&r.Devices[k], k),
					Used: units.Size(*r.Devices[k].Processes[far].Used)}
				return true
			}
		}
		return false
	})
	found := f.Evidence.Processes
	f.Heuristic = true
	who := fmt.Sprintf("%d processes that work on other devices use", len(found))
	if len(found) == 1 {
		who = "A process that works on another device uses"
	}
	f.Say("%s %s here, about the size of a CUDA context.", who, units.Bytes(f.Bytes))
	f.Because("They use much more elsewhere: %s.", list(found, func(p *finding.Process) string {
		return fmt.Sprintf("%s, %v; on GPU %d %v", name(p.Name), p.Used, p.Elsewhere.Device, p.Elsewhere.Used)
	}))
	f.Because("A rank that touches this device before it selects its own gets a context here, which stays. A small " +
		"part of a model on this device would look the same.")
	f.Do("Call torch.cuda.set_device(local_rank) before any other torch.cuda call, or give each rank its device with "+
		"CUDA_VISIBLE_DEVICES.",
		"Pass map_location to torch.load, and device_id to init_process_group.")
	return f
}

// ended finds memory of processes that are no more.
func ended(g *sidecar.GPU) *finding.Finding {
	f := of(g, "orphans", finding.High, func(p *sidecar.GPUProcess, _ *finding.Process) bool {
		return p.State == device.Zombie || p.State == device.Gone
	})
	all := f.Evidence.Processes
	sorting.Stable(all, func(a, b finding.Process) int { return cmp.Compare(a.State, b.State) })
	first := slices.IndexFunc(all, func(p finding.Process) bool { return p.State == device.Zombie })
	if first < 0 {
		first = len(all)
	}
	gone, zombies := all[:first], all[first:]
	f.Say("%s of the device is still in use by %s that ended.", units.Bytes(f.Bytes),
		units.Plural(len(all), "process"))
	size := func(p *finding.Process) string { return used(p.Used) }
	if len(gone) > 0 {
		f.Confidence = finding.Medium
		f.Because("The driver lists processes that no longer exist: %s. They may have ended between the two "+
			"readings; try again.", list(gone, size))
		f.Do("If they stay, a child or thread keeps the device open: `fuser -v /dev/nvidia*` names it. Ending that " +
			"frees the memory.")
	}
	if len(zombies) > 0 {
		f.Because("Zombies, whose parents have not waited for them: %s.", list(zombies, size))
		f.Do("End the parent of the zombies, or let it wait for its children.")
	}
	return f
}

// others finds memory of other users than the one of process pid.
func others(g *sidecar.GPU, pid int64) *finding.Finding {
	at := slices.IndexFunc(g.Processes, func(p sidecar.GPUProcess) bool { return p.PID == pid })
	if at < 0 || g.Processes[at].User == "" {
		return nil
	}
	me := g.Processes[at].User
	f := of(g, "other-users", finding.High, func(p *sidecar.GPUProcess, _ *finding.Process) bool {
		return p.User != "" && p.User != me
	})
	f.Say("Other users' processes use %s of the device.", units.Bytes(f.Bytes))
	f.Because("Besides those of %s: %s.", me, list(f.Evidence.Processes, func(p *finding.Process) string {
		return fmt.Sprintf("%s of %s, %s", name(p.Name), p.User, used(p.Used))
	}))
	f.Do("Choose another device with CUDA_VISIBLE_DEVICES, or ask them.")
	return f
}

// unlisted finds used memory that no process accounts for.
func unlisted(g *sidecar.GPU, complete bool) *finding.Finding {
	if g.Used == nil || g.Reserved == nil || g.Processes == nil || !complete || len(g.Errors) > 0 {
		return nil // the first version of the figures counts the driver's own memory as used
	}
	v := &finding.Foreign{Used: units.Size(*g.Used)}
	for i := range g.Processes {
		if g.Processes[i].Used == nil {
			return nil
		}
		v.Known += units.Size(*g.Processes[i].Used)
	}
	bytes := v.Used - v.Known
	if bytes < 1<<30 || g.Total != nil && int64(bytes) < *g.Total/20 {
		return nil
	}
	f := &finding.Finding{ID: "unlisted", Severity: finding.Warning, Confidence: finding.Low, Bytes: int64(bytes),
		Heuristic: true, Evidence: finding.Evidence{Foreign: v}}
	f.Say("%v is used by no process that the driver lists.", bytes)
	f.Because("The device reports %v in use, but its processes have only %v.", v.Used, v.Known)
	f.Because("Processes of other containers and virtual machines, or ended ones whose memory was not returned, look " +
		"like this.")
	f.Do("`fuser -v /dev/nvidia*`, as root on the machine, names everything that has the device open.")
	return f
}

// Outside looks at what a process has outside PyTorch: another framework, or NCCL.
func Outside(l *device.Ledger) *finding.Finding {
	bytes, ok := l.Get(oom.RowNonPyTorch)
	if !ok || bytes <= maxContext {
		return nil
	}
	f := &finding.Finding{ID: "non-pytorch", Status: finding.Outside, Device: l.Device, Bytes: bytes,
		Severity: finding.Warning, Confidence: finding.Medium, Heuristic: true, Events: []int{}}
	f.Evidence.Foreign = &finding.Foreign{PID: l.PID, Used: units.Size(bytes), Total: units.Size(l.Total)}
	f.Say("%s of this process is outside PyTorch's allocator, more than a CUDA context takes.", units.Bytes(bytes))
	f.Because("The driver counts %s more for process %d than PyTorch reserved. A context with its libraries takes a "+
		"few hundred MiB, at most about 1 GiB.", units.Bytes(bytes), l.PID)
	if bytes > l.Total/2 {
		f.Because("That is most of the device: in the same process as PyTorch, JAX takes 75%% of it at its start and " +
			"TensorFlow all.")
	} else {
		f.Because("NCCL takes more with every communicator; extensions may call cudaMalloc themselves; JAX and " +
			"TensorFlow reserve most of the device when they start.")
	}
	f.Do("If JAX or TensorFlow is imported: set XLA_PYTHON_CLIENT_PREALLOCATE=false, call "+
		"tf.config.experimental.set_memory_growth, or hide the device from it.",
		"Fewer process groups or a smaller NCCL_BUFFSIZE reduce the memory of NCCL.")
	return f
}

// OutsideGrowth finds memory outside PyTorch that grows while what PyTorch reserved stays. The first
// third of the points is the start, in which libraries set themselves up.
func OutsideGrowth(points []device.Point) *finding.Finding {
	if len(points) < minPoints {
		return nil
	}
	outside := func(p device.Point) int64 { return p.Used - p.Reserved }
	first, second := len(points)/3, 2*len(points)/3
	middle, last := points[first:second], points[second:]
	most := outside(slices.MaxFunc(middle, func(a, b device.Point) int { return cmp.Compare(outside(a), outside(b)) }))
	least := outside(slices.MinFunc(last, func(a, b device.Point) int { return cmp.Compare(outside(a), outside(b)) }))
	from, to := middle[0], last[len(last)-1]
	bytes := outside(to) - outside(from)
	reserved := func(a, b device.Point) int { return cmp.Compare(a.Reserved, b.Reserved) }
	moved := slices.MaxFunc(points[first:], reserved).Reserved - slices.MinFunc(points[first:], reserved).Reserved
	if least <= most || bytes < minGrowth || moved > bytes/2 {
		return nil
	}
	v := &finding.Foreign{Used: units.Size(to.Used), Known: units.Size(to.Reserved), Before: units.Size(outside(from)),
		Moved: units.Size(moved), Micros: to.At.Sub(from.At).Microseconds()}
	f := &finding.Finding{ID: "non-pytorch-growth", Status: finding.Outside, Severity: finding.Warning,
		Confidence: finding.Medium, Bytes: bytes, Heuristic: true, Events: []int{},
		Evidence: finding.Evidence{Foreign: v}}
	f.Say("Memory outside PyTorch's allocator grew by %s in %s.", units.Bytes(bytes),
		(time.Duration(v.Micros) * time.Microsecond).Round(time.Second))
	f.Because("What the driver counts for the process, minus what PyTorch reserved, went from %v to %v; reserved "+
		"memory moved by only %v.", v.Before, v.Used-v.Known, v.Moved)
	f.Because("The start-up is left out. No tensor uses this memory, so no snapshot shows it.")
	f.Do("New process groups (torch.distributed.new_group) and new streams with cuBLAS each keep memory: create them "+
		"once.",
		"Look for extensions that call cudaMalloc, and for CUDA graphs or modules that are loaded repeatedly.")
	return f
}

const (
	minPoints = 9
	minGrowth = 64 << 20
)

// mostListed bounds the processes that a sentence names.
const mostListed = 6

// list names the first of several processes, with words on each.
func list(all []finding.Process, words func(*finding.Process) string) string {
	var out []string
	for i := range all[:min(len(all), mostListed)] {
		out = append(out, fmt.Sprintf("%d (%s)", all[i].PID, words(&all[i])))
	}
	s := strings.Join(out, ", ")
	if more := len(all) - mostListed; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

func name(s string) string { return cmp.Or(s, "name unknown") }

func used(n units.Size) string {
	if n < 0 {
		return "size unknown"
	}
	return n.String()
}
