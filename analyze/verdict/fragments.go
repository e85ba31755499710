package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// defragment is the advice against pieces.
func (j *judge) defragment(sc *Scene, e *Evidence) []string {
	next := j.settings(e)
	if len(sc.Frag.Pins) > 0 {
		next = append(next, fmt.Sprintf("Allocate long-lived tensors (%s) before the short-lived ones, or in one piece, so that they do not pin segments.",
			pinSite(j.s, e.Timeline, sc)))
	}
	return next
}

// settledLine names small blocks that stay among large ones that come and go, where the trace
// shows such a thing.
func settledLine(s *snapshot.Snapshot, t *timeline.Timeline, sc *Scene) []string {
	x, ok := fragmentation.FindSettled(t, sc.State, &sc.Frag)
	if !ok {
		return nil
	}
	return []string{fmt.Sprintf("Long-lived small blocks among short-lived large ones: %s of about %s, most from %s, stay in segments through which %s of about %s passed, each freed after about %s.",
		units.Plural(x.Blocks, "block"), units.Bytes(x.Size), attribution.Place(s, x.Stack), units.Plural(x.Passed, "block"), units.Bytes(x.PassedSize), units.Plural(x.PassedLife, "event"))}
}

// rankLine says which stacks to do without.
func rankLine(s *snapshot.Snapshot, t *timeline.Timeline, sc *Scene) []string {
	steps := fragmentation.Rank(t, sc.State, &sc.Frag, 2)
	if len(steps) < 2 || steps[1].Returned == 0 { // the plan says the same of a single stack
		return nil
	}
	if a := &steps[0]; a.Returned*4 >= 3*steps[1].Returned {
		return []string{fmt.Sprintf("All %s of %s (%s) gone would return %s in %s.", units.Plural(a.Blocks, "block"), attribution.Place(s, a.Stack),
			units.Bytes(a.Bytes), units.Bytes(a.Returned), units.Plural(a.Segments, "segment"))}
	}
	a, b := &steps[0], &steps[1]
	return []string{fmt.Sprintf("All %s of %s and %s (%s) gone would return %s in %s.", units.Plural(a.Blocks+b.Blocks, "block"), attribution.Place(s, a.Stack), attribution.Place(s, b.Stack),
		units.Bytes(a.Bytes+b.Bytes), units.Bytes(b.Returned), units.Plural(b.Segments, "segment"))}
}

// settings says which allocator setting helps, as far as a replay of the run proves it.
func (j *judge) settings(e *Evidence) []string {
	a := e.WhatIf
	if a == nil || !a.Licence.Trusted {
		if j.s.Settings.ExpandableSegments {
			return nil
		}
		return []string{"Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. That it helps here is not proven: the run cannot be replayed well enough."}
	}
	if a.Best <= 0 {
		return []string{"Do not count on PYTORCH_CUDA_ALLOC_CONF: " + noSetting(e)}
	}
	best := &a.Rows[a.Best]
	proof := fmt.Sprintf("(Replayed: %s of the run's own requests are reproduced.)", units.Percent(int64(a.Licence.SameRequests), int64(a.Licence.Requests)))
	if best.Needs != "" {
		return []string{
			"Do not count on PYTORCH_CUDA_ALLOC_CONF in this release of torch: " + noSetting(e),
			fmt.Sprintf("With torch %s or later, %s serves every request. %s", best.Needs, best.Text, proof),
		}
	}
	gives := a.Gain.String()
	if best.Text == "" {
		gives = a.Advice
	}
	return []string{fmt.Sprintf("Set PYTORCH_CUDA_ALLOC_CONF=%s before the program starts: %s %s", best.Text, gives, proof)}
}

// noSetting says what was tried in vain.
func noSetting(e *Evidence) string {
	tried, fails := 0, 0
	for i := range e.WhatIf.Rows {
		row := &e.WhatIf.Rows[i]
		if row.Needs != "" {
			continue
		}
		tried++
		if row.Failures > 0 {
			fails++
		}
	}
	if fails == tried {
		return fmt.Sprintf("replayed under %d settings, expandable segments among them, the request fails each time.", tried)
	}
	return fmt.Sprintf("replayed under %d settings, expandable segments among them, none lowers the peak by much.", tried)
}

// pinLine says what keeps the partly used segments.
func pinLine(s *snapshot.Snapshot, t *timeline.Timeline, sc *Scene) string {
	var live, blocks int64
	for _, p := range sc.Frag.Pins {
		live += p.Live
		blocks += int64(len(p.Lives))
	}
	return fmt.Sprintf("%s live blocks (%s) pin %s of free memory in %s; most come from %s.", units.Count(blocks), units.Bytes(live),
		units.Bytes(sc.Frag.Split), units.Plural(sc.Frag.PartlyUsed, "segment"), pinSite(s, t, sc))
}

// pinSite is the site whose blocks pin the most segments.
func pinSite(s *snapshot.Snapshot, t *timeline.Timeline, sc *Scene) string {
	segments := map[snapshot.StackID]int64{}
	var best snapshot.StackID
	for _, p := range sc.Frag.Pins {
		seen := map[snapshot.StackID]bool{}
		for _, row := range p.Lives {
			if st := t.Lives[row].Stack; !seen[st] {
				seen[st] = true
				segments[st] += p.Free
			}
		}
	}
	for st, n := range segments {
		if m := segments[best]; n > m || n == m && st < best {
			best = st
		}
	}
	return attribution.Place(s, best)
}

// fragmented reports pieces that hurt before the program failed: cudaMalloc was refused and
// the cache had to be given up, while much of what stayed reserved lay free in pieces.
func (j *judge) fragmented(e *Evidence) {
	t := e.Timeline
	sc := &e.End
	if e.Peak.Frag.Split > sc.Frag.Split {
		sc = &e.Peak
	}
	share := float64(sc.Frag.Split) / float64(max(sc.Frag.Reserved, 1))
	switch {
	case len(t.Retries) > 0 && share >= 0.15 && sc.Frag.Split >= 64<<20:
		var released int64
		f := finding.Finding{ID: "fragmentation", Status: finding.Fragmentation, Severity: finding.Warning, Confidence: finding.Medium, Device: t.Device, Bytes: sc.Frag.Split}
		for _, r := range t.Retries {
			released += r.Released
			f.Events = append(f.Events, r.FirstEvent)
		}
		f.Events = f.Events[:min(8, len(f.Events))]
		f.Title = fmt.Sprintf("Fragmentation: %s of %s reserved lies free in segments that live blocks pin; the allocator ran into the device's limit %s.",
			units.Bytes(sc.Frag.Split), units.Bytes(sc.Frag.Reserved), units.Times(len(t.Retries)))
		f.Why = []string{
			fmt.Sprintf("cudaMalloc was refused %s: the allocator gave back %s of its cache inside requests and tried again, which costs time.", units.Times(len(t.Retries)), units.Bytes(released)),
			pinLine(j.s, t, sc),
		}
		f.Why = append(append(f.Why, settledLine(j.s, t, sc)...), rankLine(j.s, t, sc)...)
		f.Next = j.defragment(sc, e)
		j.add(f)
	case share >= 0.30 && sc.Frag.Split >= 1<<30:
		j.add(finding.Finding{
			ID: "fragmentation", Status: finding.Fragmentation, Severity: finding.Info, Confidence: finding.Medium, Device: t.Device, Bytes: sc.Frag.Split,
			Title: fmt.Sprintf("%s of %s reserved lies free in partly used segments. It did no harm in this trace.", units.Bytes(sc.Frag.Split), units.Bytes(sc.Frag.Reserved)),
			Why:   []string{pinLine(j.s, t, sc)}, Next: j.defragment(sc, e),
		})
	}
}

// cached reports memory that PyTorch only keeps for later.
func (j *judge) cached(e *Evidence) {
	fr := e.End.Frag
	if fr.Reserved < 64<<20 || fr.Active*5 > fr.Reserved || fr.Releasable*2 < fr.Reserved {
		return
	}
	j.add(finding.Finding{
		ID: "cached", Status: finding.Cached, Severity: finding.Info, Confidence: finding.High, Device: e.Timeline.Device, Bytes: fr.Releasable,
		Title: fmt.Sprintf("Cached, not leaked: only %s of %s reserved is in use; torch.cuda.empty_cache() returns %s.",
			units.Bytes(fr.Active), units.Bytes(fr.Reserved), units.Bytes(fr.Releasable)),
		Why: []string{
			fmt.Sprintf("%s lies in segments with no live block. PyTorch keeps them to serve the next requests without cudaMalloc; nvidia-smi shows them as used.", units.Bytes(fr.Releasable)),
			fmt.Sprintf("Live memory fell from %s at its peak to %s.", units.Bytes(e.Timeline.PeakActive.Bytes), units.Bytes(fr.Active)),
		},
		Next: []string{"Nothing, if this process goes on using the GPU.", "Call torch.cuda.empty_cache() once if another process needs the memory."},
	})
}
