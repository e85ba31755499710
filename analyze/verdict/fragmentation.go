package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// fragmented reports pieces that hurt before the program failed: cudaMalloc was refused and the cache had to
// be given up, while much of what stayed reserved was free in pieces. Other pieces are only mentioned.
func (j *judge) fragmented(e *Facts) {
	t := e.Timeline
	sc := &e.End
	if e.Peak.Frag.Split > sc.Frag.Split && t.Recording.LeftOut() == 0 {
		sc = &e.Peak
	}
	split, share := sc.Frag.Split, float64(sc.Frag.Split)/float64(max(sc.Frag.Reserved, 1))
	hurt := len(t.Retries) > 0 && share >= 0.15 && split >= 64<<20
	if !hurt && (share < 0.30 || split < 1<<30) {
		return
	}
	v := j.fragments(e, sc)
	f := &finding.Finding{
		ID: "fragmentation", Status: finding.Fragmentation, Severity: finding.Info, Confidence: finding.Medium,
		Device: t.Device, Bytes: split, Evidence: finding.Evidence{Fragments: v, Setting: j.setting(e)},
	}
	if hurt {
		j.patterns(e, sc, v)
		f.Severity = finding.Warning
		for _, r := range t.Retries[:min(8, len(t.Retries))] {
			f.Events = append(f.Events, r.FirstEvent)
		}
		f.Say("Fragmentation: %v of %v reserved is free in segments that live blocks pin; the device filled up %s.",
			v.Split, v.Reserved, units.Times(v.Retries))
		f.Because("cudaMalloc failed %s; PyTorch freed %v of its cache and retried, which costs time.",
			units.Times(v.Retries), v.Returned)
	} else {
		f.Say("%v of %v reserved is free in partly used segments; it did no harm in this trace.", v.Split, v.Reserved)
	}
	pieces(f)
	j.add(f)
}

// cached reports memory that PyTorch only keeps for later. That leads only where next to nothing is live: with
// the weights still there the program goes on, and its owner wants to know of the peak.
func (j *judge) cached(e *Facts) {
	fr := &e.End.Frag
	if fr.Releasable < 256<<20 || fr.Active*5 > fr.Reserved || fr.Releasable*2 < fr.Reserved {
		return
	}
	j.idle = j.idle || fr.Active*25 <= fr.Reserved && e.Timeline.HasHistory()
	v := j.fragments(e, &e.End)
	f := &finding.Finding{
		ID: "cached", Status: finding.Cached, Severity: finding.Info, Confidence: finding.High,
		Device: e.Timeline.Device, Bytes: fr.Releasable, Evidence: finding.Evidence{Fragments: v},
		Next: []string{"Nothing, if this process keeps using the GPU.",
			"Call torch.cuda.empty_cache() once if another process needs the memory."},
	}
	if e.Timeline.HasHistory() {
		f.Say("Memory in use peaked at %v and fell to %v; %v of the %v still reserved is cached, not leaked.", v.Peak,
			v.Active, v.Releasable, v.Reserved)
	} else {
		f.Say("%v of %v reserved is cached, not leaked.", v.Releasable, v.Reserved)
	}
	f.Because("No tensor uses %v of it. PyTorch keeps that to serve the next requests without cudaMalloc; nvidia-smi "+
		"shows it as used.", v.Releasable)
	j.add(f)
}

// fragments measures what is reserved and not used.
func (j *judge) fragments(e *Facts, sc *Scene) *finding.Fragments {
	fr := &sc.Frag
	v := &finding.Fragments{
		Reserved: units.Size(fr.Reserved), Active: units.Size(fr.Active), Peak: units.Size(e.Timeline.PeakActive.Bytes),
		Releasable: units.Size(fr.Releasable), Split: units.Size(fr.Split), Segments: fr.PartlyUsed,
		Retries: len(e.Timeline.Retries), Pins: &finding.Share{},
	}
	for _, r := range e.Timeline.Retries {
		v.Returned += units.Size(r.Released)
	}
	free := map[snapshot.StackID]int64{} // in the segments that a stack pins
	for _, p := range fr.Pins {
		v.Pins.Bytes += units.Size(p.Live)
		v.Pins.Blocks += int64(len(p.Lives))
		seen := map[snapshot.StackID]bool{}
		for _, row := range p.Lives {
			if st := e.Timeline.Lives[row].Stack; !seen[st] {
				seen[st] = true
				free[st] += p.Free
			}
		}
	}
	var most snapshot.StackID
	for st, n := range free {
		if m := free[most]; n > m || n == m && st < most {
			most = st
		}
	}
	v.Pins.Site = j.site(most)
	lasts := map[snapshot.StackID]int64{} // what a stack has that stays, less what it has that does not
	trains := false
	for i := range sc.State.Segments {
		for _, row := range sc.State.Segments[i].Live {
			l := &e.Timeline.Lives[row]
			trains = trains || e.is(row, category.Gradient) || e.is(row, category.OptimizerState)
			if stays(e.Uses, row) {
				lasts[l.Stack] += l.Rounded
			} else {
				lasts[l.Stack] -= l.Rounded
			}
		}
	}
	if sum, stack := fragmentation.Lasting(e.Timeline, sc.State, fr, func(row int32) bool {
		return stays(e.Uses, row) && lasts[e.Timeline.Lives[row].Stack] > 0 && !(trains && e.is(row, category.KVCache))
	}); sum.Blocks > 0 {
		sum.Site = j.site(stack)
		v.Lasting, v.LastingUse = &sum, use(e, sc, stack)
	}
	return v
}

// is reports whether a block is of a category.
func (e *Facts) is(row int32, c category.Category) bool {
	if e.Uses == nil {
		return false
	}
	of, _ := e.Uses.Of(row)
	return of == c
}

// use is what most of the live memory of a stack is for, "" unknown.
func use(e *Facts, sc *Scene, stack snapshot.StackID) string {
	if e.Uses == nil {
		return ""
	}
	bytes := make([]int64, len(category.All()))
	for i := range sc.State.Segments {
		for _, row := range sc.State.Segments[i].Live {
			if l := &e.Timeline.Lives[row]; l.Stack == stack {
				c, _ := e.Uses.Of(row)
				bytes[c] += l.Rounded
			}
		}
	}
	most := category.Category(slices.Index(bytes, slices.Max(bytes)))
	if most == category.Unknown || most == category.Other {
		return ""
	}
	return most.String()
}

// stays reports whether what a block is for lasts longer than a step.
func stays(uses *category.Table, row int32) bool {
	if uses == nil {
		return true
	}
	switch c, _ := uses.Of(row); c {
	case category.Temporary, category.Activation, category.AutogradSaved, category.Gradient, category.Input,
		category.Workspace:
		return false
	}
	return true
}

// patterns looks for what makes the pieces, and for which stacks to do without.
func (j *judge) patterns(e *Facts, sc *Scene, v *finding.Fragments) {
	if x, stack := fragmentation.FindSettled(e.Timeline, sc.State, &sc.Frag); x != nil {
		x.Site = j.site(stack)
		v.Settled = x
	}
	steps := fragmentation.Rank(e.Timeline, sc.State, &sc.Frag, 2)
	if len(steps) < 2 || steps[1].Returned == 0 { // the plan says the same of a single stack
		return
	}
	if steps[0].Returned*4 >= 3*steps[1].Returned {
		steps = steps[:1]
	}
	v.Without = &finding.Removal{Stacks: len(steps)}
	for _, s := range steps {
		v.Without.Blocks += s.Blocks
		v.Without.Bytes += units.Size(s.Bytes)
		v.Without.Sites = append(v.Without.Sites, j.site(s.Stack))
		v.Without.Returned, v.Without.Segments = units.Size(s.Returned), s.Segments
	}
}

// pieces says what keeps free memory in pieces, and what helps.
func pieces(f *finding.Finding) {
	v := f.Evidence.Fragments
	f.Because("%s live blocks (%v) pin %v of free memory in %s; most come from %s.", units.Count(v.Pins.Blocks),
		v.Pins.Bytes, v.Split, units.Plural(v.Segments, "segment"), attribution.Placed(v.Pins.Site))
	if x := v.Settled; x != nil {
		f.Because("Small long-lived blocks sit among large short-lived ones: %s of about %v, most from %s, stay in "+
			"segments where %s of about %v came and went, each freed after about %s.", units.Plural(x.Blocks, "block"),
			x.Size, attribution.Placed(x.Site), units.Plural(x.Passed, "block"), x.PassedSize,
			units.Plural(x.PassedLife, "event"))
	}
	if x := v.Without; x != nil {
		f.Because("Freeing all %s from %s (%v) would return %v in %s.", units.Plural(x.Blocks, "block"),
			places(x.Sites), x.Bytes, x.Returned, units.Plural(x.Segments, "segment"))
	}
	f.Next = append(f.Next, settings(f.Evidence.Setting)...)
	if x := v.Lasting; x != nil {
		what := attribution.Placed(x.Site)
		if v.LastingUse != "" {
			what = cmp.Or(plurals[v.LastingUse], v.LastingUse) + ", " + what
		}
		f.Next = append(f.Next, fmt.Sprintf("Allocate long-lived tensors (%s) before the short-lived ones, or in one "+
			"piece, so that they do not pin segments.", what))
	}
	if p := v.Plan; p != nil {
		f.Next = append(f.Next, plan(p))
	}
}

func places(sites []string) string {
	var out []string
	for _, s := range sites {
		out = append(out, attribution.Placed(s))
	}
	return strings.Join(slices.Compact(out), " and ") // stacks may differ behind one line
}

// plan says which blocks to free so that the request could have been served.
func plan(p *finding.Removal) string {
	from := attribution.Placed(p.Sites[0])
	if more := p.Stacks - 1; more > 0 {
		from += " and " + units.Plural(more, "other stack")
	}
	gives := fmt.Sprintf("that returns %v in %s", p.Returned, units.Plural(p.Segments, "segment"))
	if p.Hole > 0 {
		gives = fmt.Sprintf("that leaves one free piece of %v", p.Hole)
	}
	enough := "enough for the request."
	if p.Fewest {
		enough = "enough for the request; no smaller set is."
	}
	return fmt.Sprintf("Or free %s (%v, from %s): %s, %s", units.Plural(p.Blocks, "live block"), p.Bytes, from, gives,
		enough)
}

// setting is what a replay of the run proves of allocator settings, or the one that is worth a try without
// proof; nil where it is set already.
func (j *judge) setting(e *Facts) *finding.Setting {
	a := e.WhatIf
	if a == nil || !a.Accuracy.Trusted {
		if e.Timeline.Conf.Expandable {
			return nil
		}
		return &finding.Setting{Conf: "expandable_segments:True"}
	}
	v := &finding.Setting{Proven: true, Same: a.Accuracy.SameRequests, Requests: a.Accuracy.Requests}
	for i := range a.Rows {
		if row := &a.Rows[i]; row.Needs == "" {
			v.Tried++
			if row.Fails() {
				v.Failed++
			}
		}
	}
	if a.Best > 0 {
		best := &a.Rows[a.Best]
		v.Conf, v.Needs, v.Gain = best.Text, best.Needs, a.Gain
	}
	return v
}

// settings says which allocator setting helps, as far as a replay of the run proves it.
func settings(v *finding.Setting) []string {
	switch {
	case v == nil:
		return nil
	case !v.Proven:
		return []string{"Try PYTORCH_CUDA_ALLOC_CONF=" + v.Conf + ". It is not proven to help here: the run cannot " +
			"be replayed accurately enough."}
	}
	none := fmt.Sprintf("No allocator setting fixes this in your torch version (%d replayed, including "+
		"expandable_segments): %s.", v.Tried, inVain(v))
	if v.Kind == "" {
		return []string{none}
	}
	proof := fmt.Sprintf("(Replay accuracy: %s.)", units.Percent(int64(v.Same), int64(v.Requests)))
	if v.Needs != "" && v.Kind != finding.ServesAll {
		return []string{none, fmt.Sprintf("With torch %s or later and %s, %s %s", v.Needs, v.Conf, v.Gain.String(), proof)}
	}
	if v.Needs != "" {
		return []string{none, fmt.Sprintf("With torch %s or later, %s serves every recorded request. %s", v.Needs,
			v.Conf, proof)}
	}
	change := "Set PYTORCH_CUDA_ALLOC_CONF=" + v.Conf + " before the program starts"
	if v.Conf == "" {
		change = "Unset PYTORCH_CUDA_ALLOC_CONF (the defaults do better)"
	}
	return []string{fmt.Sprintf("%s: %s %s", change, v.Gain.String(), proof)}
}

// inVain says what came of the settings that were tried in vain.
func inVain(v *finding.Setting) string {
	if v.Failed == v.Tried {
		return "the request fails under all of them"
	}
	return "none lowers the peak by much"
}
