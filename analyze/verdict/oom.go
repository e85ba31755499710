package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/remedy"
	"github.com/snapana/snapana/analyze/units"
)

// outOfMemory reports the last request that failed.
func (j *judge) outOfMemory(e *Facts) {
	r := e.Failure
	last := &e.Timeline.OOMs[len(e.Timeline.OOMs)-1]
	f := &finding.Finding{
		ID: "oom", Severity: finding.Error, Confidence: finding.High, Device: e.Timeline.Device,
		Bytes: int64(r.Requested), Events: []int{r.Event}, Stack: attribution.Frames(j.s, last.Stack),
	}
	v, seen := &f.Evidence, (*holder.Holder)(nil)
	v.Request = j.request(e)
	v.Request.Site = j.site(last.Stack)
	switch r.Cause {
	case oom.Fragmentation, oom.Joined:
		v.Fragments, v.Setting = j.fragments(e, e.OOM), j.setting(e)
		v.Fragments.Plan = j.removal(e)
		if r.Cause == oom.Fragmentation {
			j.patterns(e, e.OOM, v.Fragments)
		}
	case oom.Growth:
		top := &e.Growth[r.Ghosts.Top]
		v.Growth = j.growthEvidence(e, r.Ghosts.Top, top)
		seen = j.seen.Of(top)[0].Holder
		if seen != nil && seen.Filling() {
			v.Holder = holderEvidence(seen)
		}
	case oom.Capacity:
		if s := j.setting(e); s != nil && s.Proven {
			v.Setting = s
		}
		v.Rescue = e.Rescue
	}
	if r.Cause != oom.TooFew {
		around(f)
	}
	explain(f)
	if r.Cause == oom.Growth && seen == nil {
		probably := causeOf(&e.Growth[r.Ghosts.Top].Cause)
		f.Why, f.Next, f.Fix = append(f.Why, probably.why...), append(probably.next, needLess),
			remedy.Lines(probably.fix...)
	}
	if len(v.Request.Lacks) > 0 && r.Cause != oom.TooFew {
		f.Confidence = finding.Low
		f.Because("The recording left out %s events (skip_actions), so what was reserved and free at the failure is "+
			"partly inferred.", units.List(v.Request.Lacks))
	}
	j.add(f)
}

func (j *judge) request(e *Facts) *finding.Request {
	r, fr := e.Failure, &e.OOM.Frag
	c := &fr.Classes
	v := &finding.Request{
		Cause: string(r.Cause), Refusal: r.Refusal, Failures: len(e.Timeline.OOMs),
		Reserved: units.Size(r.After.Reserved), Active: units.Size(r.After.Active),
		LargestPiece: units.Size(fr.LargestFree), Usable: units.Size(c.Releasable + c.Hard + c.Soft),
		PrivatePools: units.Size(fr.Private), OtherStreams: units.Size(c.Stream - fr.Private),
		Pending: units.Size(c.Pending), Returned: units.Size(r.Released.Bytes), Segments: r.Released.Segments,
		ReservedBefore: units.Size(r.Before.Reserved), Limit: oom.Unknown, Ghosts: r.Ghosts.Blocks,
		GhostBytes: units.Size(r.Ghosts.Bytes),
	}
	before := -1 // the failure before
	if n := len(e.Timeline.OOMs); n > 1 {
		before = e.Timeline.OOMs[n-2].Event
	}
	for i := range e.Timeline.Lives {
		l := &e.Timeline.Lives[i]
		switch {
		case int(l.Born) > r.Event:
			v.Later++
		case l.Born >= 0 && int(l.Born) < before && int(l.Freed) > r.Event:
			v.Survived += units.Size(l.Rounded)
		}
	}
	if lacks := e.Timeline.Recording.LeftOut(); lacks != 0 {
		v.Lacks = lacks.Names()
		if e.Timeline.Recording.BlocksUnknown() {
			v.Active, v.LargestPiece, v.Usable = oom.Unknown, oom.Unknown, oom.Unknown
			v.PrivatePools, v.OtherStreams, v.Pending = oom.Unknown, oom.Unknown, oom.Unknown
		}
	}
	v.Largest = largest(e.OOM.Live)
	return v
}

// largest is the site that allocated most, nil for none.
func largest(live []attribution.Group) *finding.Share {
	rows := map[string]int{}
	var sites []finding.Share
	top := -1
	for i := range live {
		g := &live[i]
		row, ok := rows[g.Site]
		if !ok {
			row = len(sites)
			rows[g.Site] = row
			sites = append(sites, finding.Share{Site: g.Site})
		}
		s := &sites[row]
		s.Blocks, s.Bytes = s.Blocks+g.Count, s.Bytes+units.Size(g.Rounded)
	}
	for row := range sites {
		if top < 0 || sites[row].Bytes > sites[top].Bytes {
			top = row
		}
	}
	if top < 0 {
		return nil
	}
	return &sites[top]
}

// mostSites bounds the sites of a plan.
const mostSites = 8

// removal is the fewest blocks without which the request would have been served, nil for none.
func (j *judge) removal(e *Facts) *finding.Removal {
	p := &e.Failure.Plan
	if p.Blocks == 0 {
		return nil
	}
	v := &finding.Removal{Blocks: p.Blocks, Bytes: units.Size(p.Bytes), Stacks: len(p.Sites),
		Returned: units.Size(p.Returned), Segments: p.Segments, Hole: units.Size(p.Hole), Fewest: p.Fewest}
	for i := range p.Sites[:min(len(p.Sites), mostSites)] {
		v.Sites = append(v.Sites, j.site(p.Sites[i].Stack))
	}
	return v
}

// around says what the memory was like when the request failed.
func around(f *finding.Finding) {
	r := f.Evidence.Request
	if 2*r.Survived >= r.Active && r.Active > 0 {
		f.Because("%v was live when the request before failed, and was freed after this failure: a retry inside "+
			"an except block looks like this, where the exception's traceback keeps the failed attempt's tensors.",
			r.Survived)
		f.Next = append(f.Next, "Retry after the except block, not inside it: leave it first, so that the exception and "+
			"what its frames hold are freed.")
	}
	f.Because("The request for %v came from %s.", r.Requested, attribution.Placed(r.Site))
	pieces := "none of it free."
	if unused := r.Reserved - r.Active; unused != 0 {
		pieces = fmt.Sprintf("%v free, in pieces of at most %v.", unused, r.LargestPiece)
	}
	f.Because("At that moment %v was reserved: %v in live blocks, %s", r.Reserved, r.Active, pieces)
	if g := r.Largest; g != nil && oom.Cause(r.Cause) == oom.Capacity {
		f.Because("The largest share, %v in %s, came from %s.", g.Bytes, units.Plural(g.Blocks, "block"),
			attribution.Placed(g.Site))
	}
	if r.Segments > 0 {
		cached := fmt.Sprintf("%d cached segments", r.Segments)
		if r.Segments == 1 {
			cached = "only cached segment"
		}
		f.Because("PyTorch first released its %s (%v) to the device: %v had been reserved.", cached, r.Returned,
			r.ReservedBefore)
	}
	switch {
	case r.DeviceFree < 0:
	case r.DeviceFree >= r.Segment && (r.Cause == string(oom.Fragmentation) || r.Cause == string(oom.Pools)):
		// their reasons say it
	case r.DeviceFree >= r.Segment:
		f.Because("The device had %v free, enough for the segment of %v that was refused.", r.DeviceFree, r.Segment)
	case r.DeviceFree.String() == r.Servable.String():
		f.Because("The device had %v free, so nothing larger could be allocated.", r.DeviceFree)
	default:
		f.Because("The device had %v free; the largest request that could still succeed was one for %v.", r.DeviceFree,
			r.Servable)
	}
	if cause := oom.Cause(r.Cause); r.DeviceTotal == oom.Unknown && r.DeviceFree >= 0 && r.DeviceFree < r.Segment &&
		(cause == oom.Fragmentation || cause == oom.Joined || cause == oom.Growth || cause == oom.Pools) {
		f.Because("With what was reserved that makes %v. If the device has much more, something else uses the rest: see "+
			"nvidia-smi.", r.Reserved+r.DeviceFree)
	}
	const unserved = "%v of the free memory belongs to %s and cannot serve this request."
	if r.PrivatePools > r.Requested/4 {
		f.Because(unserved, r.PrivatePools, "private pools")
	}
	if r.OtherStreams > r.Requested/4 {
		f.Because(unserved, r.OtherStreams, "other streams")
	}
	if r.Pending > r.Requested/4 {
		f.Because("%v was freed by the program but waits until another stream is done with it (record_stream).",
			r.Pending)
	}
	if r.Failures > 1 {
		f.Because("%d requests failed in the trace; this is the last.", r.Failures)
	}
	if r.Later > 0 {
		f.Because("The program caught the error and went on: %s.", units.Plural(r.Later, "later allocation"))
	}
}
