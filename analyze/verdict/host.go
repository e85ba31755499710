package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Host is what a program does with the memory of its machine.
type Host struct {
	host.Process
	Status   finding.Status    `json:"status"` // Growing, Swapping, Flat or Unknown
	Headline string            `json:"headline"`
	Trends   counters.Trends   `json:"trends"`
	Findings []finding.Finding `json:"findings"` // most important first
	Notes    []string          `json:"notes"`
}

// JudgeHost judges one process.
func JudgeHost(p *host.Process) *Host {
	j := &Host{Process: *p, Status: finding.Flat, Trends: p.Trends, Findings: []finding.Finding{}, Notes: []string{}}
	j.growth()
	j.pinned()
	j.workers()
	j.swapping()
	j.filled()
	j.conclude()
	return j
}

// conclude ranks the findings and says in a line what they come to.
func (j *Host) conclude() {
	finding.Sort(j.Findings)
	p, lead := j.Trends.Of(host.Size), j.Lead()
	switch {
	case lead != nil:
		j.Status, j.Headline = finding.Growing, lead.Title
		if lead.ID == "host-swapping" {
			j.Status = finding.Swapping
		}
	case p == nil || p.Shape == counters.Short:
		j.Status, j.Headline = finding.Unknown, fmt.Sprintf("Too few samples of the process (%d) to see whether it grows.",
			j.Samples)
	default:
		j.Headline = fmt.Sprintf("The process does not grow: %s at the end, %s at its peak.", units.Bytes(p.Last),
			units.Bytes(p.High))
	}
	if j.Counted < 5 && j.Trends.Grows(host.Size) {
		j.Notes = append(j.Notes, fmt.Sprintf("Tensors were counted in %d of %d samples: the recorder takes the time "+
			"for that only in long runs.", j.Counted, j.Samples))
	}
	if j.Children == 0 && !slices.ContainsFunc(j.Run.Samples, func(s sidecar.Sample) bool { return s.Children != nil }) {
		j.Notes = append(j.Notes, "Child processes were not sampled.")
	}
}

// Lead is the finding that the outcome rests on, nil where none decided it.
func (j *Host) Lead() *finding.Finding {
	if len(j.Findings) == 0 || j.Findings[0].Severity == finding.Info {
		return nil
	}
	return &j.Findings[0]
}

func (j *Host) add(f finding.Finding) {
	f.Status, f.Device, f.Heuristic, f.Events = finding.Host, -1, true, []int{}
	f.Severity = cmp.Or(f.Severity, finding.Warning)
	j.Findings = append(j.Findings, f)
}

// slight reports whether growth is too little to matter in this run.
func slight(t *counters.Trend) bool { return t.Kept < 4<<20 || t.Kept < t.Last/100 }

// growth names what grows along with the process.
func (j *Host) growth() {
	p := j.Trends.Of(host.Size)
	if p == nil || p.Shape != counters.Growing {
		return
	}
	f := finding.Finding{Bytes: p.Kept, Confidence: finding.Medium, Why: []string{slope("RSS with swap rises", p)}}
	if slight(p) {
		f.Severity = finding.Info
	}
	tensors, objects := j.Trends.Of(host.CPUBytes), j.Trends.Of(host.Objects)
	switch {
	case j.Trends.Grows(host.CPUBytes) && tensors.Slope >= p.Slope/4:
		j.tensors(&f, p, tensors)
	case tensors == nil || tensors.Shape == counters.Short || tensors.Shape == counters.Absent:
		f.ID, f.Confidence = "host-growth", finding.Low
		f.Title = "The process grows by " + pace(p) + "; the cause is unknown."
		f.Why = append(f.Why, "Tensors were not counted often enough to say whether they grow too.")
		f.Next = []string{"Let it run longer with the recorder: it spends 1% of the time on counting tensors and objects."}
	case j.Trends.Grows(host.Objects):
		f.ID = "host-objects"
		f.Title = "Python objects pile up in host memory: " + more(p) + ", but no tensors."
		f.Why = append(f.Why, j.flatTensors(tensors), fmt.Sprintf("Objects that the garbage collector tracks rise from "+
			"%s to %s, by %.3g per %s.",
			units.Count(objects.First), units.Count(objects.Last), objects.Slope, objects.Unit))
		f.Next = []string{"Look for lists, dicts and logs of numbers that a loop extends: metric histories, results of " +
			".tolist(), caches without a bound.",
			"Compare two moments with tracemalloc: it names the line that allocates what stays."}
	default:
		f.ID, f.Confidence = "host-native", finding.Low
		f.Title = "The process grows by " + pace(p) + ", but neither its tensors nor its Python objects do."
		f.Why = append(f.Why, j.flatTensors(tensors), "That leaves memory that Python does not see: buffers of C++ "+
			"libraries, strings and arrays of numbers in long-lived objects, a fragmented malloc heap.")
		f.Next = []string{"Try another malloc (LD_PRELOAD jemalloc or tcmalloc) or MALLOC_ARENA_MAX=2: if the growth " +
			"ends, it was heap fragmentation.",
			"Otherwise run the program under memray or heaptrack, which see native allocations."}
	}
	if s := j.forecast(p); s != "" {
		f.Why = append(f.Why, s)
	}
	j.add(f)
}

func (j *Host) flatTensors(t *counters.Trend) string {
	return fmt.Sprintf("CPU tensors do not explain it: %s at first, %s at the end.", units.Bytes(t.First),
		units.Bytes(t.Last))
}

func (j *Host) tensors(f *finding.Finding, p, t *counters.Trend) {
	f.ID = "host-tensors"
	f.Title = "CPU tensors pile up in host memory: " + more(t) + ", never freed."
	f.Why = append(f.Why, slope("CPU tensors rise", t))
	if n := j.Trends.Of(host.CPUTensors); n.Shape == counters.Growing {
		f.Because("Their number rises too, from %s to %s, by %.3g per %s.", units.Count(n.First), units.Count(n.Last),
			n.Slope, n.Unit)
		if t.Slope >= p.Slope/2 {
			f.Confidence = finding.High
		}
	} else {
		f.Why = append(f.Why, "Their number does not rise: the same tensors get larger, like a buffer that is extended.")
	}
	if int64(t.Slope) > 0 && t.Slope < p.Slope/2 {
		f.Why = append(f.Why, "They explain only part of the growth.")
	}
	f.Next = []string{"Keep numbers, not tensors: .item() for losses and metrics; write outputs to disk or reduce " +
		"them in each step.",
		"Run inference under torch.inference_mode(): otherwise a kept output also keeps what autograd saved for it.",
		"Record with start(devices=\"all\") and dump(): the file then names the object that holds the tensors in host " +
			"memory."}
}

// forecast says how soon the memory ends that the process can have.
func (j *Host) forecast(p *counters.Trend) string {
	left, of := int64(-1), ""
	try := func(n int64, what string) {
		if n >= 0 && (left < 0 || n < left) {
			left, of = n, what
		}
	}
	if j.Last.Available != nil {
		try(*j.Last.Available, "available on the machine")
	}
	if limit, ok := j.Run.Env["os.cgroup_memory_max"].(int64); ok && j.Last.Cgroup != nil && limit > 0 {
		try(max(limit-*j.Last.Cgroup, 0), "left below the limit of its cgroup")
	}
	if left < 0 || p.Slope <= 0 || float64(left)/p.Slope > 1e12 {
		return ""
	}
	return fmt.Sprintf("At this rate the %s %s last for about %s more %ss.", units.Bytes(left), of,
		units.Count(int64(float64(left)/p.Slope)), p.Unit)
}

func (j *Host) pinned() {
	t := j.Trends.Of(host.PinnedBytes)
	if t == nil || t.Shape != counters.Growing {
		return
	}
	j.add(finding.Finding{ID: "host-pinned", Bytes: t.Kept, Confidence: finding.Medium,
		Title: "Pinned host memory grows by " + pace(t) + ".",
		Why: []string{slope("Pinned memory rises", t), "Pinned memory cannot be swapped, and PyTorch keeps its freed " +
			"blocks for later, in sizes of powers of two."},
		Next: []string{"Look for batches that are kept after pin_memory=True or .pin_memory(), and for varying batch " +
			"sizes: each new size is pinned anew.",
			"Lower prefetch_factor or the number of workers of loaders with pin_memory=True."}})
}

// workers tells copies of what workers share with their parent from growth of their own.
func (j *Host) workers() {
	pss, rss := j.Trends.Of(host.Workers), j.Trends.Of(host.WorkersRSS)
	if pss == nil || pss.Shape != counters.Growing {
		return
	}
	children := "child process"
	if j.Children != 1 {
		children = fmt.Sprintf("%d child processes", j.Children)
	}
	f := finding.Finding{Bytes: pss.Kept, Confidence: finding.Medium, Why: []string{
		slope(fmt.Sprintf("The share of memory (PSS) of the %s rises", children), pss)}}
	if slight(pss) {
		f.Severity = finding.Info
	}
	if rss != nil && (rss.Shape != counters.Growing || rss.Slope < pss.Slope/4) {
		f.ID = "worker-copies"
		f.Title = "Worker processes copy memory that they shared with their parent: " + more(pss) + "."
		f.Why = append(f.Why, fmt.Sprintf("Their RSS stays the same (%s at first, %s at the end): nothing is new, but "+
			"shared pages become their own.", units.Bytes(rss.First), units.Bytes(rss.Last)),
			"A forked worker that only reads a Python object still writes to it: the reference count is in the object.")
		if m, ok := j.Run.Env["python.start_method"].(string); ok {
			f.Why = append(f.Why, "The start method of processes is "+m+".")
			if m != "fork" && m != "forkserver" {
				f.Confidence = finding.Low
			}
		}
		f.Next = []string{"Keep the dataset in a few large buffers (a tensor, a NumPy array, pyarrow, a memory-mapped " +
			"file) instead of lists and dicts of objects.",
			"It ends when all is copied, at most at the workers' RSS: plan for that much, or use fewer workers."}
	} else {
		f.ID = "worker-growth"
		f.Title = "Worker processes grow: " + more(pss) + "."
		f.Next = []string{"Check what the dataset's __getitem__ and the collate function keep: caches, open files, " +
			"lists on the class."}
		if rss == nil {
			f.Confidence = finding.Low
		} else {
			f.Why = append(f.Why, slope("Their RSS rises too,", rss))
		}
	}
	j.add(f)
}

// swapping: the machine has no memory left, and it is not this process that takes more.
func (j *Host) swapping() {
	var short, all int
	var first, last int64 = -1, -1
	for i := range j.Run.Samples {
		h := j.Run.Samples[i].Host
		if h == nil || h.Available == nil || h.RAM == nil {
			continue
		}
		all++
		if *h.Available < *h.RAM/20 {
			short++
		}
		if h.SwapFree != nil && h.SwapTotal != nil {
			if last = *h.SwapTotal - *h.SwapFree; first < 0 {
				first = last
			}
		}
	}
	own := j.Trends.Of(host.Swap)
	moved := own != nil && own.Last-own.First >= 16<<20
	if all < 5 || short*2 < all || !moved && last-first < 64<<20 {
		return
	}
	if p := j.Trends.Of(host.Size); p == nil || p.Shape == counters.Growing {
		if p != nil && len(j.Findings) > 0 {
			j.Findings[0].Why = append(j.Findings[0].Why, "The machine is already short of memory: it swaps.")
		}
		return
	}
	f := finding.Finding{ID: "host-swapping", Bytes: max(last-first, 0), Confidence: finding.Medium,
		Title: "The machine is short of memory and swaps; this program does not leak.",
		Why: []string{fmt.Sprintf("Less than 5%% of the RAM was available in %d of %d samples; %s at the end.", short, all,
			units.Bytes(*j.Last.Available)),
			fmt.Sprintf("The process keeps its size (RSS with swap %s at first, %s at the end): a falling RSS does not "+
				"mean that memory was freed.", units.Bytes(j.Trends.Of(host.Size).First),
				units.Bytes(j.Trends.Of(host.Size).Last))},
		Next: []string{"Find what else uses the memory: other processes, /dev/shm, files in tmpfs.",
			"Use fewer workers, less prefetching, or a machine with more RAM: swapping slows every step."}}
	if first >= 0 {
		f.Because("Swap in use on the machine went from %s to %s.", units.Bytes(first), units.Bytes(last))
	}
	if t := j.Trends.Of(host.CPUBytes); t != nil && t.Shape != counters.Growing {
		f.Because("CPU tensors do not grow either (%s at the end).", units.Bytes(t.Last))
	}
	j.add(f)
}

// filled: the process rose and is level since, as with caches.
func (j *Host) filled() {
	p := j.Trends.Of(host.Size)
	if p == nil || p.Shape != counters.Settled || p.Last-p.First < max(p.First/10, 16<<20) {
		return
	}
	f := finding.Finding{ID: "host-filled", Severity: finding.Info, Confidence: finding.Medium, Bytes: p.Last - p.First,
		Title: fmt.Sprintf("The process grew by %s and has been level since, like a cache that fills up.",
			units.Bytes(p.Last-p.First)),
		Why: []string{fmt.Sprintf("RSS with swap went from %s to %s, and stayed there for the last third of the samples.",
			units.Bytes(p.First), units.Bytes(p.Last))},
		Next: []string{"No fix needed. A longer run would show whether it grows again."}}
	if t := j.Trends.Of(host.CPUBytes); t != nil && t.Shape == counters.Settled && t.Last > t.First {
		f.Because("CPU tensors did the same: %s to %s.", units.Bytes(t.First), units.Bytes(t.Last))
	}
	j.add(f)
}
