package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Host is what a program does with the memory of its machine.
type Host struct {
	host.Process
	Status   finding.Status    `json:"status"` // Growing, Swapping, Flat or Unknown
	Headline string            `json:"headline"`
	Trends   finding.Trends    `json:"trends"`
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
		j.Status, j.Headline = finding.Unknown, fmt.Sprintf("Too few samples of the process (%d) to see whether it "+
			"grows.", j.Samples)
	default:
		j.Headline = fmt.Sprintf("The process does not grow: %s at the end, %s at its peak.", units.Bytes(p.Last),
			units.Bytes(p.High))
	}
	if j.Counted < 5 && j.Trends.Of(host.Size).Grows() {
		j.Notes = append(j.Notes, fmt.Sprintf("Tensors were counted in %d of %d samples: the recorder takes the time "+
			"for that only in long runs.", j.Counted, j.Samples))
	}
	if j.Children == 0 &&
		!slices.ContainsFunc(j.Run.Samples, func(s sidecar.Sample) bool { return s.Children != nil }) {
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

func (j *Host) add(f *finding.Finding) {
	f.Status, f.Device, f.Heuristic, f.Events = finding.Host, -1, true, []int{}
	f.Severity = cmp.Or(f.Severity, finding.Warning)
	f.Confidence = cmp.Or(f.Confidence, finding.Medium)
	j.Findings = append(j.Findings, *f)
}

// rise begins a finding on a series that grows, with those that tell why; nil where it does not.
func (j *Host) rise(what string, names ...string) (*finding.Finding, *finding.Trend) {
	f := &finding.Finding{Evidence: trends(j.Trends, names...)}
	t := f.Evidence.Trends.Of(names[0])
	if !t.Grows() {
		return nil, nil
	}
	f.Bytes = t.Kept
	if t.Kept < 4<<20 || t.Kept < t.Last/100 {
		f.Severity = finding.Info // too little to matter in this run
	}
	rises(f, what, t)
	return f, t
}

// rises says how a series rises.
func rises(f *finding.Finding, what string, t *finding.Trend) {
	f.Because("%s from %s to %s, by %s (95%%: %s to %s, %d windows).", what, units.Bytes(t.First), units.Bytes(t.Last),
		pace(t), per(t.From95), per(t.To95), t.Windows)
}

// growth names what grows along with the process.
func (j *Host) growth() {
	f, p := j.rise("RSS with swap rises", host.Size, host.CPUBytes, host.CPUTensors, host.Objects)
	if f == nil {
		return
	}
	tensors, objects := j.Trends.Of(host.CPUBytes), j.Trends.Of(host.Objects)
	unexplained := func() {
		f.Because("CPU tensors do not explain it: %s at first, %s at the end.", units.Bytes(tensors.First),
			units.Bytes(tensors.Last))
	}
	switch {
	case tensors.Grows() && tensors.Slope >= p.Slope/4:
		j.tensors(f, p, tensors)
	case tensors == nil || tensors.Shape == counters.Short || tensors.Shape == counters.Absent:
		f.ID, f.Confidence = "host-growth", finding.Low
		f.Say("The process grows by %s; the cause is unknown.", pace(p))
		f.Because("Tensors were not counted often enough to say whether they grow too.")
		f.Do("Let it run longer with the recorder: it spends 1% of the time on counting tensors and objects.")
	case objects.Grows():
		f.ID = "host-objects"
		f.Say("Python objects pile up in host memory: %s, but no tensors.", more(p))
		unexplained()
		f.Because("Objects that the garbage collector tracks rise from %s to %s, by %.3g per %s.",
			units.Count(objects.First), units.Count(objects.Last), objects.Slope, objects.Unit)
		f.Do("Look for lists, dicts and logs of numbers that a loop extends: metric histories, results of .tolist(), "+
			"caches without a bound.",
			"Compare two moments with tracemalloc: it names the line that allocates what stays.")
	default:
		f.ID, f.Confidence = "host-native", finding.Low
		f.Say("The process grows by %s, but neither its tensors nor its Python objects do.", pace(p))
		unexplained()
		f.Because("That leaves memory that Python does not see: buffers of C++ libraries, strings and arrays of " +
			"numbers in long-lived objects, a fragmented malloc heap.")
		f.Do("Try another malloc (LD_PRELOAD jemalloc or tcmalloc) or MALLOC_ARENA_MAX=2: if the growth ends, it was "+
			"heap fragmentation.",
			"Otherwise run the program under memray or heaptrack, which see native allocations.")
	}
	if v := j.forecast(p); v != nil {
		f.Evidence.Forecast = v
		f.Because("At this rate the %s %s last for about %s more %ss.", units.Bytes(v.Usable), v.Source,
			units.Count(v.Units), p.Unit)
	}
	j.add(f)
}

func (j *Host) tensors(f *finding.Finding, p, t *finding.Trend) {
	f.ID = "host-tensors"
	f.Say("CPU tensors pile up in host memory: %s, never freed.", more(t))
	rises(f, "CPU tensors rise", t)
	if n := j.Trends.Of(host.CPUTensors); n.Grows() {
		f.Because("Their number rises too, from %s to %s, by %.3g per %s.", units.Count(n.First), units.Count(n.Last),
			n.Slope, n.Unit)
		if t.Slope >= p.Slope/2 {
			f.Confidence = finding.High
		}
	} else {
		f.Because("Their number does not rise: the same tensors get larger, like a buffer that is extended.")
	}
	if int64(t.Slope) > 0 && t.Slope < p.Slope/2 {
		f.Because("They explain only part of the growth.")
	}
	f.Do("Keep numbers, not tensors: .item() for losses and metrics; write outputs to disk or reduce them in each "+
		"step.",
		"Run inference under torch.inference_mode(): otherwise a kept output also keeps what autograd saved for it.")
	j.holder(f)
}

// holder names who holds the tensors that pile up, where two dumps of the recorder show it.
func (j *Host) holder(f *finding.Finding) {
	_, _, held, _ := holder.Alone(&sidecar.File{Name: j.File, Runs: []sidecar.Run{*j.Run}}, nil)
	if held == nil || held.Earlier == "" {
		f.Do("Call dump() of the recorder twice, some steps apart: the file then names the object that holds the " +
			"tensors.")
		return
	}
	var best *holder.Holder
	rise := func(h *holder.Holder) int64 { return h.Storage.Bytes - h.Before.Bytes }
	var all int64 // that came between the dumps
	for i := range held.Holders {
		h := &held.Holders[i]
		if !slices.Contains(h.Devices, holder.Host) || rise(h) <= 0 {
			continue
		}
		all += rise(h)
		if best == nil || rise(h) > rise(best) {
			best = h
		}
	}
	if best == nil || 2*rise(best) < all {
		f.Because("Between %s, and %s of the recorder, no one object took most of what came.", held.Earlier, held.Dump)
		return
	}
	v := holderEvidence(best)
	f.Evidence.Holder = v
	f.Because("Seen in the process: %s held %s in %s, and %s in %s.", v.Reference, units.Bytes(best.Before.Bytes),
		held.Earlier, units.Bytes(best.Storage.Bytes), held.Dump)
	switch {
	case best.Filling():
		f.Because("It has %s, and is still filling: it takes %v when full.", entries(v.Bound), v.Bound.Full)
		f.Severity, f.Confidence = finding.Info, finding.Low
	case best.Standing == holder.Ghost:
		f.Confidence = finding.High
		f.Do(fmt.Sprintf("Clear or bound %s.", v.Reference))
	}
}

// forecast says how soon the memory ends that the process can have, nil where nothing is known of it.
func (j *Host) forecast(p *finding.Trend) *finding.Forecast {
	v := &finding.Forecast{Usable: -1, Seconds: -1}
	try := func(n int64, source string) {
		if n >= 0 && (v.Usable < 0 || n < v.Usable) {
			v.Usable, v.Source = n, source
		}
	}
	if j.Last.Available != nil {
		try(*j.Last.Available, "available on the machine")
	}
	if limit, ok := j.Run.Env["os.cgroup_memory_max"].(int64); ok && j.Last.Cgroup != nil && limit > 0 {
		try(max(limit-*j.Last.Cgroup, 0), "left below the limit of its cgroup")
	}
	if v.Usable < 0 || p.Slope <= 0 || float64(v.Usable)/p.Slope > 1e12 {
		return nil
	}
	v.Units = int64(float64(v.Usable) / p.Slope)
	return v
}

func (j *Host) pinned() {
	f, t := j.rise("Pinned memory rises", host.PinnedBytes)
	if f == nil {
		return
	}
	f.ID, f.Severity = "host-pinned", finding.Warning
	f.Say("Pinned host memory grows by %s.", pace(t))
	f.Because("Pinned memory cannot be swapped, and PyTorch keeps its freed blocks for later, in sizes of powers of " +
		"two.")
	f.Do("Look for batches that are kept after pin_memory=True or .pin_memory(), and for varying batch sizes: each "+
		"new size is pinned anew.",
		"Lower prefetch_factor or the number of workers of loaders with pin_memory=True.")
	j.add(f)
}

// workers tells copies of what workers share with their parent from growth of their own.
func (j *Host) workers() {
	children := "child process"
	if j.Children != 1 {
		children = fmt.Sprintf("%d child processes", j.Children)
	}
	f, pss := j.rise("The share of memory (PSS) of the "+children+" rises", host.Workers, host.WorkersRSS)
	if f == nil {
		return
	}
	rss := j.Trends.Of(host.WorkersRSS)
	v := &finding.Workers{Children: j.Children}
	v.StartMethod, _ = j.Run.Env["python.start_method"].(string)
	f.Evidence.Workers = v
	if rss != nil && (!rss.Grows() || rss.Slope < pss.Slope/4) {
		f.ID = "worker-copies"
		f.Say("Worker processes copy memory that they shared with their parent: %s.", more(pss))
		f.Because("Their RSS stays the same (%s at first, %s at the end): nothing is new, but shared pages become "+
			"their own.", units.Bytes(rss.First), units.Bytes(rss.Last))
		f.Because("A forked worker that only reads a Python object still writes to it: the reference count is in the " +
			"object.")
		if v.StartMethod != "" {
			f.Because("The start method of processes is %s.", v.StartMethod)
			if v.StartMethod != "fork" && v.StartMethod != "forkserver" {
				f.Confidence = finding.Low
			}
		}
		f.Do("Keep the dataset in a few large buffers (a tensor, a NumPy array, pyarrow, a memory-mapped file) "+
			"instead of lists and dicts of objects.",
			"The growth ends when everything is copied, at the workers' RSS at most: plan for that much, or use "+
				"fewer workers.")
	} else {
		f.ID = "worker-growth"
		f.Say("Worker processes grow: %s.", more(pss))
		f.Do("Check what the dataset's __getitem__ and the collate function keep: caches, open files, lists on the " +
			"class.")
		if rss == nil {
			f.Confidence = finding.Low
		} else {
			rises(f, "Their RSS rises too,", rss)
		}
	}
	j.add(f)
}
