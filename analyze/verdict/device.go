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
)

// JudgeReading says what is odd about the processes of a reading of the driver. The findings are ordered by device.
// Numbers of processes are of the machine; pid is the one that the question is about, 0 for none.
func JudgeReading(r *sidecar.Reading, pid int64) []finding.Finding {
	var out []finding.Finding
	for i := range r.Devices {
		g := &r.Devices[i]
		var found []*finding.Finding
		for k := range g.Processes {
			found = append(found, workers(g, k))
		}
		for _, f := range append(found, strays(r, i), ended(g), others(g, pid), unlisted(g, len(r.Errors) == 0)) {
			if f != nil {
				f.Status, f.Device, f.Events = finding.Outside, device.Index(g, i), []int{}
				out = append(out, *f)
			}
		}
	}
	return out
}

// workers finds children of a process that have a context of their own beside that of their
// parent, as data-loader workers do that touch the device.
func workers(g *sidecar.GPU, at int) *finding.Finding {
	parent := &g.Processes[at]
	var found tally
	for i := range g.Processes {
		p := &g.Processes[i]
		// A child that has as much as its parent is no helper of it: mp.spawn starts ranks like that.
		if device.Above(g.Processes, p) != at || p.Used == nil || parent.Used == nil || *p.Used > maxContext ||
			*p.Used > *parent.Used/2 {
			continue
		}
		found.add(p, "%s, %s", origin(p, parent), used(p))
	}
	if found.by == nil {
		return nil
	}
	who := fmt.Sprintf("%d children of process %d (%s) have a CUDA context each", len(found.by), parent.PID, name(parent))
	if len(found.by) == 1 {
		who = fmt.Sprintf("A child of process %d (%s) has a CUDA context of its own", parent.PID, name(parent))
	}
	return &finding.Finding{
		ID: "workers", Severity: found.severity(g), Confidence: finding.Medium, Bytes: found.bytes, Heuristic: true,
		Title: fmt.Sprintf("%s: %s.", who, units.Bytes(found.bytes)),
		Why: []string{"Each process that touches the device pays for a context: " + list(found.by) + ".",
			"They use much less than their parent, as data-loader workers do; small ranks would look the same."},
		Next: []string{"Keep the dataset and the collate function on the CPU, and move batches to the device in the " +
			"main process (pin_memory=True, non_blocking=True).",
			"Look for .cuda(), .to(\"cuda\") and torch.cuda calls in code that workers import; CUDA_VISIBLE_DEVICES=\"\" " +
				"in the workers shows who needs the device."},
	}
}

// strays finds processes that work on another device and have little more than a context on this
// one, as every rank of a job has on the first device that forgets to choose its own.
func strays(r *sidecar.Reading, at int) *finding.Finding {
	g := &r.Devices[at]
	var found tally
	for i := range g.Processes {
		p := &g.Processes[i]
		if p.Used == nil || *p.Used > maxContext {
			continue
		}
		for k := range r.Devices {
			far := slices.IndexFunc(r.Devices[k].Processes, func(q sidecar.GPUProcess) bool {
				return q.PID == p.PID &&
					value(q.Used) > 4**p.Used
			})
			if k == at || far < 0 {
				continue
			}
			found.add(p, "%s, %s; on GPU %d %s", name(p), used(p), device.Index(&r.Devices[k], k),
				used(&r.Devices[k].Processes[far]))
			break
		}
	}
	if found.by == nil {
		return nil
	}
	who := fmt.Sprintf("%d processes that work on other devices use", len(found.by))
	if len(found.by) == 1 {
		who = "A process that works on another device uses"
	}
	return &finding.Finding{
		ID: "strays", Severity: found.severity(g), Confidence: finding.Medium, Bytes: found.bytes, Heuristic: true,
		Title: fmt.Sprintf("%s %s here, about the size of a CUDA context.", who, units.Bytes(found.bytes)),
		Why: []string{"They use much more elsewhere: " + list(found.by) + ".",
			"A rank that touches this device before it selects its own gets a context here, which stays. A small part of a " +
				"model on this device would look the same."},
		Next: []string{"Call torch.cuda.set_device(local_rank) before any other torch.cuda call, or give each rank its " +
			"device with CUDA_VISIBLE_DEVICES.",
			"Pass map_location to torch.load, and device_id to init_process_group."},
	}
}

// maxContext is more than a process takes that has a context and little else.
const maxContext = 2 << 30

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
	return name(p)
}

// ended finds memory of processes that are no more.
func ended(g *sidecar.GPU) *finding.Finding {
	var gone, zombies tally
	for i := range g.Processes {
		p := &g.Processes[i]
		switch p.State {
		case device.Zombie:
			zombies.add(p, "%s", used(p))
		case device.Gone:
			gone.add(p, "%s", used(p))
		}
	}
	all := tally{bytes: gone.bytes + zombies.bytes}
	if gone.by == nil && zombies.by == nil {
		return nil
	}
	f := &finding.Finding{ID: "orphans", Severity: all.severity(g), Confidence: finding.High, Bytes: all.bytes,
		Title: fmt.Sprintf("%s of the device is still in use by %s that ended.", units.Bytes(all.bytes),
			units.Plural(len(gone.by)+len(zombies.by), "process"))}
	if gone.by != nil {
		f.Confidence = finding.Medium
		f.Why = append(f.Why, "The driver lists processes that no longer exist: "+list(gone.by)+
			". They may have ended between the two readings; try again.")
		f.Next = append(f.Next, "If they stay, a child or thread keeps the device open: `fuser -v /dev/nvidia*` names it. "+
			"Ending that frees the memory.")
	}
	if zombies.by != nil {
		f.Why = append(f.Why, "Zombies, whose parents have not waited for them: "+list(zombies.by)+".")
		f.Next = append(f.Next, "End the parent of the zombies, or let it wait for its children.")
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
	var found tally
	for i := range g.Processes {
		if p := &g.Processes[i]; p.User != "" && p.User != me {
			found.add(p, "%s of %s, %s", name(p), p.User, used(p))
		}
	}
	if found.by == nil {
		return nil
	}
	return &finding.Finding{ID: "other-users", Severity: found.severity(g), Confidence: finding.High, Bytes: found.bytes,
		Title: fmt.Sprintf("Other users' processes use %s of the device.", units.Bytes(found.bytes)),
		Why:   []string{"Besides those of " + me + ": " + list(found.by) + "."},
		Next:  []string{"Choose another device with CUDA_VISIBLE_DEVICES, or ask them."}}
}

// unlisted finds used memory that no process accounts for.
func unlisted(g *sidecar.GPU, complete bool) *finding.Finding {
	if g.Used == nil || g.Reserved == nil || g.Processes == nil || !complete || len(g.Errors) > 0 {
		return nil // the first version of the figures counts the driver's own memory as used
	}
	bytes := *g.Used
	for i := range g.Processes {
		if g.Processes[i].Used == nil {
			return nil
		}
		bytes -= *g.Processes[i].Used
	}
	if bytes < 1<<30 || bytes < value(g.Total)/20 {
		return nil
	}
	return &finding.Finding{ID: "unlisted", Severity: finding.Warning, Confidence: finding.Low, Bytes: bytes,
		Heuristic: true,
		Title:     fmt.Sprintf("%s is used by no process that the driver lists.", units.Bytes(bytes)),
		Why: []string{fmt.Sprintf("The device reports %s in use, but its processes have only %s.", units.Bytes(*g.Used),
			units.Bytes(*g.Used-bytes)),
			"Processes of other containers and virtual machines, or ended ones whose memory was not returned, look like this."},
		Next: []string{"`fuser -v /dev/nvidia*`, as root on the machine, names everything that has the device open."}}
}

// Outside looks at what a process has outside PyTorch: another framework, or NCCL.
func Outside(l *device.Ledger) *finding.Finding {
	bytes, ok := l.Get(oom.RowNonPyTorch)
	if !ok || bytes <= maxContext {
		return nil
	}
	f := &finding.Finding{ID: "non-pytorch", Status: finding.Outside, Device: l.Device, Bytes: bytes,
		Severity: finding.Warning, Confidence: finding.Medium, Heuristic: true, Events: []int{},
		Title: fmt.Sprintf("%s of this process is outside PyTorch's allocator, more than a CUDA context takes.",
			units.Bytes(bytes)),
		Why: []string{fmt.Sprintf("The driver counts %s more for process %d than PyTorch reserved. A context with its "+
			"libraries takes a few hundred MiB, at most about 1 GiB.", units.Bytes(bytes), l.PID),
			"NCCL takes more with every communicator; extensions may call cudaMalloc themselves; JAX and TensorFlow " +
				"reserve most of the device when they start."},
		Next: []string{"If JAX or TensorFlow is imported: set XLA_PYTHON_CLIENT_PREALLOCATE=false, call " +
			"tf.config.experimental.set_memory_growth, or hide the device from it.",
			"Fewer process groups or a smaller NCCL_BUFFSIZE reduce the memory of NCCL."}}
	if bytes > l.Total/2 {
		f.Why[1] = "That is most of the device: in the same process as PyTorch, JAX takes 75% of it at its start and " +
			"TensorFlow all."
	}
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
	return &finding.Finding{ID: "non-pytorch-growth", Status: finding.Outside, Severity: finding.Warning,
		Confidence: finding.Medium, Bytes: bytes, Heuristic: true, Events: []int{},
		Title: fmt.Sprintf("Memory outside PyTorch's allocator grew by %s in %s.", units.Bytes(bytes),
			to.At.Sub(from.At).Round(time.Second)),
		Why: []string{fmt.Sprintf("What the driver counts for the process, minus what PyTorch reserved, went from %s to "+
			"%s; reserved memory moved by only %s.", units.Bytes(outside(from)), units.Bytes(outside(to)), units.Bytes(moved)),
			"The start-up is left out. This memory is no tensor, so no snapshot shows it."},
		Next: []string{"New process groups (torch.distributed.new_group) and new streams with cuBLAS each keep memory: " +
			"create them once.",
			"Look for extensions that call cudaMalloc, and for CUDA graphs or modules that are loaded repeatedly."}}
}

const (
	minPoints = 9
	minGrowth = 64 << 20
)

// tally is memory of several processes.
type tally struct {
	by    []string
	bytes int64
}

// add counts a process, with words on it.
func (h *tally) add(p *sidecar.GPUProcess, format string, args ...any) {
	h.by = append(h.by, fmt.Sprintf("%d (%s)", p.PID, fmt.Sprintf(format, args...)))
	h.bytes += value(p.Used)
}

// severity weighs the bytes against the device.
func (h *tally) severity(g *sidecar.GPU) finding.Severity {
	if h.bytes >= 1<<30 || g.Total != nil && h.bytes >= *g.Total/20 {
		return finding.Warning
	}
	return finding.Info
}

func name(p *sidecar.GPUProcess) string {
	if p.Name == "" {
		return "name unknown"
	}
	return p.Name
}

func used(p *sidecar.GPUProcess) string {
	if p.Used == nil {
		return "size unknown"
	}
	return units.Bytes(*p.Used)
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// list joins the first of several.
func list(all []string) string {
	const most = 6
	if len(all) > most {
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
	}
	return strings.Join(all, ", ")
}
