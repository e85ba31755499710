package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// newStory chooses the picture by what the verdict rests on, nil where there is nothing to draw. It takes figures from
// the evidence of the first finding alone, and leaves out what that does not know.
func newStory(r *analyze.Result) *story {
	f := r.Verdict.Lead()
	var v finding.Evidence
	d := r.Main()
	if f != nil {
		v = f.Evidence
		for i := range r.Devices {
			if r.Devices[i].Timeline.Device == f.Device {
				d = &r.Devices[i]
			}
		}
	}
	switch {
	case d == nil, v.Faults != nil: // nothing is known, or to be trusted
		return nil
	case v.Imbalance != nil:
		return loads(v.Imbalance)
	case !d.Timeline.HasHistory():
		return composition(d)
	}
	c := &scene{d: d, axis: chart.TellingAxis(d.Timeline, r.Snapshot.HasTimes)}
	s := c.choose(f)
	if s != nil && len(r.Devices) > 1 {
		s.Caption = chart.DeviceName(d.Timeline.Device) + ". " + s.Caption
	}
	return s
}

// choose draws what a finding is about, or the run where there is none.
func (c *scene) choose(f *finding.Finding) *story {
	if f == nil {
		return c.calm()
	}
	v := &f.Evidence
	switch {
	case v.Request != nil && len(f.Events) > 0:
		return c.failure(f)
	case v.Growth != nil && v.Growth.Index >= 0 && v.Growth.Index < len(c.d.Growth):
		return c.growth(v.Growth)
	case v.Fragments != nil && (f.Status == finding.Fragmentation || f.Status == finding.Cached):
		return c.unused(f)
	}
	return c.calm()
}

// failure is a request that was refused: above what was in use, and against what there was.
func (c *scene) failure(f *finding.Finding) *story {
	r := f.Evidence.Request
	c.end, c.moment = f.Events[0], "when the request failed"
	m := c.d.Moment("oom")
	parts := plain("fill-reserved")
	switch known := r.Active >= 0 && m != nil; {
	case !known:
		c.pile("fill-reserved", int64(r.Reserved), fmt.Sprintf("%v reserved", r.Reserved), "")
	case f.Evidence.Growth != nil && r.GhostBytes > 0:
		c.pile("leak", int64(r.GhostBytes), fmt.Sprintf("%v not freed", r.GhostBytes),
			"by "+text(f.Evidence.Growth.Call))
		c.inUse(int64(r.Active-r.GhostBytes), "everything else", "")
		parts = c.staircase(f.Evidence.Growth)
	case oom.Cause(r.Cause) == oom.Capacity && chart.Informed(m.Uses):
		c.uses(m.Uses)
		parts = byUse
	default:
		c.pile("active", int64(r.Active), fmt.Sprintf("%v in use", r.Active), mostly(r.Largest))
	}
	if free := r.Reserved - r.Active; r.Active >= 0 && free > 0 {
		name, note := whyFree(r)
		c.pile("pieces", int64(free), fmt.Sprintf("%v %s", free, name), note).hatched = true
	}
	c.ceiling(r)
	if known := int64(max(r.Active, 0)); r.Requested > 0 {
		asked := layer{class: "refused", from: known, bytes: int64(r.Requested), hatched: true, inset: true,
			name: fmt.Sprintf("%v requested", r.Requested), note: "refused"}
		if r.Active < 0 {
			asked.from = int64(r.Reserved)
		}
		if r.Site != "" {
			asked.note = "refused, at " + line(r.Site)
		}
		if most := 2 * c.most(); asked.bytes > most { // what it does not reach is seen all the same
			asked.bytes, asked.note = most, "far beyond this picture"
		}
		c.layers = append(c.layers, asked)
	}
	return c.draw("failure", parts)
}

// whyFree says why memory that was free did not serve a request.
func whyFree(r *finding.Request) (name, note string) {
	switch oom.Cause(r.Cause) {
	case oom.Fragmentation, oom.Joined:
		if r.LargestPiece > 0 {
			note = fmt.Sprintf("in pieces of %v at most", r.LargestPiece)
		}
		return "free, unusable", note
	case oom.Pools:
		return "free, unusable", "most of it kept for private pools"
	case oom.OtherStream:
		return "free, unusable", "most of it for other streams"
	}
	return "free", "reserved and not in use"
}

// ceiling draws what the process could have, and what others had.
func (c *scene) ceiling(r *finding.Request) {
	if r.DeviceFree < 0 {
		return
	}
	here := r.Reserved + r.DeviceFree
	free := fmt.Sprintf("%v free on the device", r.DeviceFree)
	switch total := r.DeviceTotal; {
	case total > 0 && total < 4*here:
		c.lines = append(c.lines, rule{"limit", int64(total), fmt.Sprintf("%v device", total), free})
		if e := r.Elsewhere; 20*e > total {
			who := "outside PyTorch's allocator"
			if r.Apart {
				who = "of other processes"
			}
			c.layers = append(c.layers, layer{class: "elsewhere", from: int64(here), bytes: int64(e), hatched: true,
				name: fmt.Sprintf("%v elsewhere", e), note: who})
		}
	case r.DeviceFree >= r.Segment:
		c.lines = append(c.lines, rule{"limit", int64(here), free, "and yet it was refused"})
	default:
		c.lines = append(c.lines, rule{"limit", int64(here), fmt.Sprintf("%v could be reserved", here), free})
		if e := r.AtLeast - here; 20*e > here && e == r.Grown { // it was more before
			c.layers = append(c.layers, layer{class: "elsewhere", from: int64(here), bytes: int64(e), hatched: true,
				name: fmt.Sprintf("%v gone since", e), note: "taken by others on the device"})
		}
	}
}

// growth is the staircase of what a loop leaves behind, at the foot of all that is in use.
func (c *scene) growth(v *finding.Growth) *story {
	c.axis = chart.NewAxis(c.d.Timeline, false) // iterations of a loop may be a short part of the time
	c.end, c.moment = c.d.Growth[v.Index].Horizon, "at the end"
	kept := "never freed"
	switch {
	case v.UntilOOM:
		c.moment, kept = "when memory ran out", "not freed by then"
	case v.Released:
		c.moment, kept = "before the model was freed", "not freed by then"
	}
	c.pile("leak", int64(v.Bytes), fmt.Sprintf("%v %s", v.Bytes, kept), fmt.Sprintf("%s of %s",
		units.Plural(v.Blocks, "block"), units.Plural(v.Iterations, v.Unit)))
	c.inUse(int64(v.InUse-v.Bytes), "everything else", "")
	if full := v.Full; full.Bytes > 0 && (full.Ceiling == finding.Reservable || full.Ceiling == finding.DeviceSize) &&
		int64(full.Bytes) < 3*c.most() {
		c.lines = append(c.lines, rule{"limit", int64(full.Bytes), fmt.Sprintf("%v: full", full.Bytes),
			fmt.Sprintf("in %s more", units.Plural(full.Iterations, v.Unit))})
	}
	s := c.draw("growth", c.staircase(v))
	if s != nil && s.Step == nil {
		for i := range s.Labels {
			if l := &s.Labels[i]; l.Class == "leak" {
				l.Detail = fmt.Sprintf("+%v per %s", v.PerUnit, v.Unit)
			}
		}
	}
	return s
}

// staircase is what a growth keeps, in front of all that is in use: with each iteration that ends, what it left. A step
// that can be told from others is marked.
func (c *scene) staircase(v *finding.Growth) drawn {
	return func(s *story, c *scene, at func(int64) float64) []path {
		out := plain("fill-reserved")(s, c, at)
		if v.Index < 0 || v.Index >= len(c.d.Growth) {
			return out
		}
		laps := c.laps(&c.d.Growth[v.Index])
		if n := len(laps); n < ghost.MinLaps || laps[n-1].kept != int64(v.Bytes) {
			return out // one tensor that is made anew, larger each time
		}
		fill, edge := path{class: "leak"}, path{class: "leak-edge"}
		fill.to(0, 1)
		edge.to(c.x(laps[0].end), 1)
		var before int64
		var marked bool
		for i, l := range laps {
			x := c.x(l.end)
			fill.to(x, at(before))
			edge.to(x, at(before))
			fill.to(x, at(l.kept))
			edge.to(x, at(l.kept))
			off, high := l.kept-before-int64(v.PerUnit), (at(before)-at(l.kept))*storyHeight
			if i > 0 && i < len(laps)-1 && max(off, -off)*10 <= int64(v.PerUnit) && high >= 8 && x >= leastNote &&
				(x < 0.9 || !marked) {
				marked = true
				s.Step = &storyNote{Class: "leak", Text: fmt.Sprintf("+%v per %s", v.PerUnit, v.Unit), X: percent(x),
					Y: percent(c.above(x, at, at(l.kept))), Top: percent(at(l.kept)), Height: percent(at(before) - at(l.kept))}
			}
			before = l.kept
		}
		fill.to(1, at(before))
		edge.to(1, at(before))
		fill.to(1, 1)
		fill.cmd("Z")
		return append(out, fill, edge)
	}
}

// above is where a note that ends at x is over what is in use, if that is near y, else y.
func (c *scene) above(x float64, at func(int64) float64, y float64) float64 {
	const line, near = 14.0 / storyHeight, 44.0 / storyHeight
	over := y
	c.curve(chart.Active, func(to float64, bytes int64) {
		if to <= x && to > x-0.05 {
			over = min(over, at(bytes))
		}
	})
	if y-over > near {
		return y
	}
	return over - line
}

// leastNote is where a note that ends there begins within the narrowest plot.
const leastNote = 0.7

// lap is an iteration of a loop: the event at which it ends, and what all up to then have left.
type lap struct {
	end  int
	kept int64
}

// laps are those of a growth that left something.
func (c *scene) laps(g *ghost.Growth) []lap {
	var out []lap
	var sum int64
	for i := range c.d.Timeline.Lives {
		l := &c.d.Timeline.Lives[i]
		gone := l.GivenUp()
		if l.Born < 0 || int(l.Born) > g.Horizon || gone >= 0 && int(gone) <= g.Horizon || !slices.Contains(g.Stacks, l.Stack) {
			continue
		}
		for n := len(out) + 1; n < len(g.Starts) && int(l.Born) >= g.Starts[n]; n++ {
			out = append(out, lap{g.Starts[n], sum})
		}
		sum += l.Rounded
	}
	return append(out, lap{g.Horizon, sum})
}

// unused is reserved memory that no tensor uses.
func (c *scene) unused(f *finding.Finding) *story {
	v := f.Evidence.Fragments
	var m *analyze.Moment
	for i := range c.d.Moments {
		x := &c.d.Moments[i]
		if x.State != nil && x.Frag.Reserved == int64(v.Reserved) && x.Frag.Active == int64(v.Active) {
			m = x
		}
	}
	if m == nil {
		return c.calm()
	}
	c.end, c.moment = c.d.Timeline.Trace.Len()-1, "at the end"
	if m.Name == "peak" {
		c.moment = c.atPeak()
	}
	c.pile("active", int64(v.Active), fmt.Sprintf("%v in use", v.Active), mostly(v.Lasting))
	c.pile("pieces", int64(v.Split), fmt.Sprintf("%v free in pieces", v.Split), "in "+units.Plural(v.Segments,
		"partly used segment")).hatched = true
	c.pile("cached", int64(v.Releasable), fmt.Sprintf("%v cached", v.Releasable), "whole segments without a block")
	between := "fill-pieces"
	if f.Status == finding.Cached {
		between = "fill-reserved"
	}
	c.peak = "peak"
	if m.Name != "peak" {
		c.peak = fmt.Sprintf("peak, %v in use", v.Peak)
	}
	return c.draw("free", plain(between))
}

// atPeak names the moment of the highest active memory that is known: others may have been higher.
func (c *scene) atPeak() string {
	if c.d.Timeline.Recording.Told().Peak.Active != timeline.Exact {
		return "when the recorded part was highest"
	}
	return "at the peak"
}

// calm is what a run without a problem looks like: its steps, and its peak.
func (c *scene) calm() *story {
	t := c.d.Timeline
	m := c.d.Moment("peak")
	if m == nil || t.Recording.BlocksUnknown() {
		return nil
	}
	c.end, c.moment = t.Trace.Len()-1, c.atPeak()
	parts := plain("fill-reserved")
	if chart.Informed(m.Uses) {
		c.uses(m.Uses)
		parts = byUse
	} else {
		c.end = m.State.Event
		c.inUse(m.Frag.Active, "in use", "")
		c.end = t.Trace.Len() - 1
	}
	if free := m.Frag.Reserved - m.Frag.Active; free > 0 {
		c.pile("cached", free, units.Bytes(free)+" free", "of "+units.Bytes(m.Frag.Reserved)+" reserved")
	}
	c.peak = "peak"
	return c.draw("calm", parts)
}

// inUse piles up active memory, what is from before the trace apart from the rest.
func (c *scene) inUse(all int64, name, note string) {
	var before int64
	for i := range c.d.Timeline.Lives {
		l := &c.d.Timeline.Lives[i]
		if l.Born >= 0 {
			break
		}
		if l.Freed < 0 || int(l.Freed) > c.end {
			before += l.Rounded
		}
	}
	if before = min(before, all); 20*before > all {
		c.pile("before", before, units.Bytes(before)+" older", "from before the trace")
		all -= before
	}
	if all > 0 {
		c.pile("active", all, units.Bytes(all)+" "+name, note)
	}
}

// mostUses is how many uses a column names.
const mostUses = 4

// uses piles up what active memory is for, from what stays to what comes and goes.
func (c *scene) uses(sums []category.Sum) {
	for _, use := range chart.UseOrder {
		for rank := range sums { // most bytes first
			if x := &sums[rank]; x.Category == use && x.Rounded > 0 {
				name := ""
				if rank < mostUses {
					name = units.Bytes(x.Rounded) + " " + string(use.String())
				}
				c.pile(chart.UseSlot(use).Class(), x.Rounded, name, "")
			}
		}
	}
}

// mostly names a site, "" where it is not known.
func mostly(x *finding.Share) string {
	if x == nil || x.Site == "" {
		return ""
	}
	return "most at " + line(x.Site)
}

// line is the file and line of a site, without the function.
func line(site string) string {
	place, _, _ := strings.Cut(text(site), " ")
	return chart.ClipLeft(place, 24)
}

// loads are the devices of one program, of which one has more than the others.
func loads(v *finding.Imbalance) *story {
	s := &story{Class: "bars"}
	for _, x := range v.Devices {
		s.Bars = append(s.Bars, storyBar{Name: chart.DeviceName(x.Device), Figure: x.Active.String(),
			Width: width(int64(x.Active), int64(v.Most)), Alarm: x.Device == v.Fullest})
	}
	s.Caption = "Peak of active memory on each GPU."
	if v.Final {
		s.Caption = "Active memory on each GPU at the end."
	}
	return s
}

// composition is what a device had when the snapshot was taken: all that is known without a trace.
func composition(d *analyze.Device) *story {
	m := d.Moment("end")
	if m == nil || m.Frag.Reserved <= 0 || d.Timeline.Recording.BlocksUnknown() {
		return nil
	}
	all := m.Frag.Reserved
	bar := storyBar{Name: chart.DeviceName(d.Timeline.Device), Figure: units.Bytes(all) + " reserved", Width: "100"}
	add := func(class, name string, bytes int64, note string) {
		if bytes > 0 {
			bar.Parts = append(bar.Parts, newPart(class, name, bytes, all, all, note))
		}
	}
	if chart.Informed(m.Uses) {
		for _, use := range chart.UseOrder {
			for i := range m.Uses {
				if x := &m.Uses[i]; x.Category == use {
					add(chart.UseSlot(use).Class(), use.String(), x.Rounded, "in live blocks")
				}
			}
		}
	} else {
		add("k-live", "in use", m.Frag.Active, "in live blocks")
	}
	add("k-split", "free in pieces", m.Frag.Split, "free in segments with live blocks")
	add("k-releasable", "cached", m.Frag.Releasable, "free in segments without a live block")
	return &story{Class: "bars", Bars: []storyBar{bar}, Caption: "All memory that was reserved when the snapshot was taken."}
}
