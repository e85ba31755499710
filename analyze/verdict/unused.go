package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// idling is a note on a device that filled up without harm, and on memory that stays reserved at the end without use,
// where no other finding says so.
func (j *judge) idling(e *Facts) {
	t := e.Timeline
	if !t.HasHistory() || t.Recording.LeftOut() != 0 {
		return
	}
	for i := range j.findings {
		f := &j.findings[i]
		if f.Device == t.Device && (f.Status == finding.Cached || f.Status == finding.Fragmentation) {
			return
		}
	}
	fr := &e.End.Frag
	v := j.fragments(e, &e.End)
	f := &finding.Finding{
		ID: "unused", Status: finding.Cached, Severity: finding.Info, Confidence: finding.High, Device: t.Device,
		Evidence: finding.Evidence{Fragments: v},
	}
	free := fr.Reserved - fr.Active
	switch {
	case v.Retries > 0:
		f.Bytes, v.Pins = int64(v.Returned), nil
		for _, r := range t.Retries[:min(8, len(t.Retries))] {
			f.Events = append(f.Events, r.FirstEvent)
		}
		f.Say("The device filled up %s: PyTorch freed %v of its cache and retried, which costs time.",
			units.Times(v.Retries), v.Returned)
		f.Because("Memory in use peaked at %v, reserved memory at %v: a little more, and a request fails.", v.Peak,
			units.Size(t.PeakReserved.Bytes))
		if s := j.setting(e); s != nil && s.Proven && s.Kind != "" {
			f.Next = settings(s)
		}
		f.Do("Lower the peak, as below, or leave the process more of the device.")
	case free >= 1<<30 && 3*free >= fr.Reserved && 2*fr.Releasable >= free:
		f.Bytes = free
		f.Say("%v of the %v reserved at the end is not in use: PyTorch keeps it for later.", units.Size(free), v.Reserved)
		peak := fmt.Sprintf("Memory in use peaked at %v (event %s of %s)", v.Peak, units.Count(t.PeakActive.Event),
			units.Count(t.Trace.Len()))
		if int64(v.Peak)*5 >= fr.Reserved*4 {
			f.Because("%s: that peak needed it.", peak)
		} else {
			f.Because("%s: never was so much in use at once. Parts of the program that use other sizes, one after the other, "+
				"reserve memory beside what the earlier left in the cache.", peak)
		}
		f.Do(fmt.Sprintf("If this process goes on, and nothing else needs the memory: nothing. torch.cuda.empty_cache() "+
			"returns %v of it.", v.Releasable))
	default:
		return
	}
	j.add(f)
}
