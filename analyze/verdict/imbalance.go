package verdict

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/balance"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// What one device must have more than any other to be called out. Programs that put different models on their devices
// have such differences on purpose: without a reason in the stacks the difference must be larger, and it is only
// mentioned unless several others are far below, or one is next to empty.
const (
	leastSurplus  = 1 << 30
	namedRatio    = 2 // with a reason in the stacks
	unnamedRatio  = 3 // without
	farAbove      = 4
	nextToEmpty   = 10
	largeOnOne    = 8 << 30
	strayOnOthers = 64 << 20 // a few tensors that got there by the way
)

// imbalance reports one device that is much fuller than the others of the program.
func (j *judge) imbalance(devices []Facts) {
	list := make([]balance.Device, len(devices))
	for i := range devices {
		list[i] = balance.Device{Timeline: devices[i].Timeline, Live: devices[i].Peak.Live}
	}
	v := balance.Compare(j.s, list)
	if v == nil {
		j.unused(devices)
		return
	}
	named := v.Placed != ""
	switch {
	case v.Most-v.Others < leastSurplus, named && v.Most < namedRatio*v.Others, !named && v.Most < unnamedRatio*v.Others:
		return
	case !named && (v.Others < strayOnOthers || j.distributed()):
		return // one device on purpose, and something by the way on others
	}
	e := &devices[slices.IndexFunc(devices, func(e Facts) bool { return e.Timeline.Device == v.Fullest })]
	v.Filled = len(e.Timeline.OOMs)+len(e.Timeline.Retries) > 0 ||
		e.Total > 0 && int64(v.Most) >= e.Total/5*4
	f := &finding.Finding{
		ID: "imbalance", Status: finding.Unbalanced, Severity: finding.Info, Confidence: finding.Low, Heuristic: true,
		Device: v.Fullest, Bytes: int64(v.Most - v.Others), Evidence: finding.Evidence{Imbalance: v},
	}
	if named {
		f.Confidence = finding.Medium
	}
	far := v.Most >= nextToEmpty*v.Others || len(v.Devices) > 2 && v.Most >= farAbove*v.Others
	if v.Placed == finding.Gather || v.Placed == finding.DeviceMap || v.Filled || far && (named || v.Most >= largeOnOne) {
		f.Severity = finding.Warning
	}
	unbalanced(f)
	j.add(f)
	for i := range j.findings { // what would make room on a device that ran out of it
		o := &j.findings[i]
		if o.ID == "oom" && o.Device == v.Fullest && o.Status == finding.Capacity {
			o.Because("%s", f.Title)
			o.Next = append(f.Next[:1:1], o.Next...)
		}
	}
}

// unbalanced says which device has most, why, and what to do.
func unbalanced(f *finding.Finding) {
	v := f.Evidence.Imbalance
	peaked := "peaked at"
	if v.Final {
		peaked = "ended with"
	}
	others := "the other GPU"
	if n := len(v.Devices) - 1; n > 1 {
		others = fmt.Sprintf("the %d others", n)
	}
	here := fmt.Sprintf("GPU %d", v.Fullest)
	if v.Final {
		f.Say("Imbalance: %s %s %v in use, %s with %v or less.", here, peaked, v.Most, others, v.Others)
	} else {
		f.Say("Imbalance: %s %s %v, %s at %v or less.", here, peaked, v.Most, others, v.Others)
	}
	from := attribution.Placed(v.Site)
	switch v.Placed {
	case finding.Gather:
		f.Because("torch.nn.DataParallel gathers the outputs of all GPUs on %s (at %s, %v at once); the loss, the "+
			"summed gradients and the optimizer's state are there too.", here, from, v.Evident)
		f.Do("Use torch.nn.parallel.DistributedDataParallel with one process per GPU: then each GPU computes the loss of "+
			"its own outputs.",
			"To stay with DataParallel, compute the loss inside the module's forward, so that it returns a single number "+
				"for each GPU and no outputs are gathered.")
	case finding.DeviceMap:
		f.Because("accelerate spread the model over the GPUs by a device_map (the model runs at %s).", from)
		f.Do(fmt.Sprintf("Load the model with device_map=\"balanced\", or limit %s with max_memory={%d: ...}; "+
			"device_map=\"balanced_low_0\" keeps room on GPU 0 for generation.", here, v.Fullest))
	case finding.DefaultGPU:
		f.Because("Modules were moved by .cuda() at %s: without a device it means the current one, GPU 0 unless "+
			"torch.cuda.set_device was called (%v more on %s).", from, v.Evident, here)
		f.Do("Name the device of each part: .to(device) in place of .cuda() at " + from + ".")
	case finding.LossOnOne:
		f.Because("The loss is computed on %s alone: %v at %s.", here, v.Evident, from)
		f.Do("Compute the loss at "+from+" in chunks of the batch or the sequence, or on the GPU with most room.",
			"Or put fewer layers on "+here+", so that the loss has room.")
	}
	for _, x := range v.Sites {
		if x.Bytes-x.Others < (v.Most-v.Others)/10 {
			continue
		}
		others := "none"
		if x.Others > 0 {
			others = fmt.Sprintf("at most %v", x.Others)
		}
		f.Because("%v on %s came from %s, %s on any other GPU.", x.Bytes, here, attribution.Placed(x.Site), others)
	}
	if v.Filled {
		f.Because("%s is the one that fills up, while the others have room.", here)
	}
	if v.Unused > 0 {
		f.Because("%s of the process had no memory at all.", units.Plural(v.Unused, "more GPU"))
	}
	if v.Placed == "" {
		site := ""
		if len(v.Sites) > 0 && v.Sites[0].Site != "" {
			site = ", starting with " + v.Sites[0].Site
		}
		f.Because("The stacks do not tell whether this is intended, as it is for different models on different GPUs.")
		f.Do("Unless it is intended, check on which device the program places its memory" + site + ".")
	}
}

// unused reports a failure on the only device that the program used of several.
func (j *judge) unused(devices []Facts) {
	v := &finding.Imbalance{Unused: -1, Devices: []finding.Load{}, Sites: []finding.Surplus{}}
	var e *Facts
	for i := range devices {
		v.Unused++
		if devices[i].Timeline.PeakReserved.Bytes > 0 {
			e = &devices[i]
		}
	}
	// A process of several, each with a GPU of its own, sees the others' too.
	if e == nil || e.OOM == nil || v.Unused < 1 || e.Timeline.Device != 0 || j.distributed() {
		return
	}
	v.Fullest, v.Most, v.Filled = e.Timeline.Device, units.Size(e.Timeline.PeakActive.Bytes), true
	v.Devices = append(v.Devices, finding.Load{Device: v.Fullest, Active: v.Most})
	f := &finding.Finding{
		ID: "unused", Status: finding.Unbalanced, Severity: finding.Info, Confidence: finding.High, Device: v.Fullest,
		Evidence: finding.Evidence{Imbalance: v}, Title: fmt.Sprintf("The program used only GPU %d and saw %s.", v.Fullest,
			units.Plural(v.Unused, "more GPU")),
		Next: []string{"Nothing, if each process is to have one GPU.",
			"If one GPU is too small, spread the work: DistributedDataParallel with sharding (FSDP), or parts of the model on " +
				"several GPUs."},
	}
	f.Because("Of %s the file has neither segments nor events.", units.Plural(v.Unused, "other GPU"))
	j.add(f)
}

// distributed reports whether the process is one of several, as the stacks of torch.distributed's memory show.
func (j *judge) distributed() bool {
	for id := range j.s.Stacks.Len() {
		if slices.ContainsFunc(j.s.Stacks.Get(snapshot.StackID(id+1)), func(id snapshot.FrameID) bool {
			return frames.Of(j.s, id).Part() == frames.Distributed
		}) {
			return true
		}
	}
	return false
}
