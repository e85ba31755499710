package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// stays says what a device still has after the program gave memory up, and why: after a phase such as sleep or offload,
// or after much went at once. After what was not meant to give memory up, memory that is merely cached is no news.
func (j *judge) stays(e *Facts) {
	if e.Release == nil {
		return
	}
	v := j.leftover(e)
	least := max(v.Before/20, 4<<20)
	if v.Reserved < least || !e.Release.Meant && (v.Live+v.Pieces < least || j.told(e)) {
		return
	}
	f := &finding.Finding{
		ID: "stays", Status: finding.Stays, Severity: finding.Info, Confidence: finding.High, Device: e.Timeline.Device,
		Bytes: int64(v.Reserved), Events: []int{v.Event}, Evidence: finding.Evidence{Stays: v},
	}
	what := fmt.Sprintf("most of %v was freed at once", v.Before)
	if v.Phase != "" {
		what = fmt.Sprintf("phase %q (lap %s)", v.Phase, units.Count(v.Lap))
	}
	f.Say("After %s, %v stays on the device: %v live, %v cached, %v free in pieces.", what, v.Reserved, v.Live, v.Cached,
		v.Pieces)
	f.Because("%v was allocated when it began, and %v when it was over.", v.Before, v.Live)
	keeps(f, v)
	j.add(f)
}

// told reports whether another finding says of a device what stays there.
func (j *judge) told(e *Facts) bool {
	return e.OOM != nil || slices.ContainsFunc(j.findings, func(f finding.Finding) bool {
		return f.Device == e.Timeline.Device && (f.Status == finding.Cached || f.Status == finding.Fragmentation)
	})
}

// keeps says what keeps each part of what stays, and what to do, the largest part first.
func keeps(f *finding.Finding, v *finding.Leftover) {
	type part struct {
		bytes units.Size
		why   []string
		next  string
	}
	live := part{bytes: v.Live}
	for _, h := range v.Holders {
		if h.Bytes*100 >= v.Live {
			live.why = append(live.why, fmt.Sprintf("Live: %v in %s, allocated at %s (%s).", h.Bytes,
				units.Plural(h.Blocks, "block"), attribution.Placed(h.Site), h.Use))
		}
	}
	if len(v.Holders) > 0 && v.Live*20 >= v.Before {
		live.next = "If what is live should not stay, drop it or move it to the host: most of it was allocated at " +
			attribution.Placed(v.Holders[0].Site) + "."
	}
	parts := []part{live,
		{v.Cached, []string{fmt.Sprintf("Cached: no tensor uses %v in whole segments, but PyTorch has not returned it to "+
			"the driver.", v.Cached)}, "Call torch.cuda.empty_cache() after it: that returns " + v.Cached.String() + "."},
		{v.Scratch, []string{fmt.Sprintf("Of the live memory, %v is workspaces of libraries such as cuBLAS, which no Python "+
			"object holds.", v.Scratch)}, "Free the workspaces of cuBLAS with torch._C._cuda_clearCublasWorkspaces()."},
		{v.InPools, []string{fmt.Sprintf("Of the live memory, %v is in private pools, which CUDA graphs and "+
			"torch.cuda.MemPool have; an inference engine that puts its pool to sleep may have returned the memory to the "+
			"driver, which PyTorch's counters do not show.", v.InPools)},
			"Delete CUDA graphs and memory pools that are not needed any more: their memory goes with them."},
		{v.Pieces, []string{fmt.Sprintf("In pieces: %v is free in %s that live blocks keep, most of it beside blocks from "+
			"%s.", v.Pieces, units.Plural(int64(v.Segments), "segment"), attribution.Placed(v.Pin))}, ""},
		{v.Pools, []string{fmt.Sprintf("%v is free in private pools or belongs to another stream.", v.Pools)}, ""},
		{v.Pending, []string{fmt.Sprintf("%v is freed, and waits for another stream that used it.", v.Pending)}, ""},
	}
	sorting.Stable(parts, func(a, b part) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, p := range parts {
		if p.bytes > 0 {
			f.Why = append(f.Why, p.why...)
			if p.next != "" {
				f.Do(p.next)
			}
		}
	}
}

// mostStays is how many sites are named.
const mostStays = 5

// leftover measures what there is right after a release.
func (j *judge) leftover(e *Facts) *finding.Leftover {
	r, fr, t, st := e.Release, &e.After.Frag, e.Timeline, e.After.State
	v := &finding.Leftover{
		Phase: r.Phase, Lap: r.Lap, Event: r.Event, Before: units.Size(r.Before), Reserved: units.Size(fr.Reserved),
		Live: units.Size(st.Totals.Allocated), Pending: units.Size(fr.Classes.Pending),
		Cached: units.Size(fr.Classes.Releasable), Pieces: units.Size(fr.Classes.Hard + fr.Classes.Soft),
		Pools: units.Size(fr.Classes.Stream), Segments: len(fr.Pins), Holders: []finding.Stay{},
	}
	sums, uses := map[string]*finding.Stay{}, map[string]map[string]int64{} // by site
	for seg, row := range st.Rows() {
		l := &t.Lives[row]
		if l.Waits(st.Event) {
			continue
		}
		use := category.Unknown
		if e.Uses != nil {
			use, _ = e.Uses.Of(row)
		}
		if use == category.Workspace {
			v.Scratch += units.Size(l.Rounded)
		}
		if seg >= 0 && st.Segments[seg].Pool != (snapshot.PoolID{}) {
			v.InPools += units.Size(l.Rounded)
		}
		site := j.site(l.Stack)
		if sums[site] == nil {
			sums[site], uses[site] = &finding.Stay{Site: site}, map[string]int64{}
		}
		s := sums[site]
		s.Bytes, s.Blocks = s.Bytes+units.Size(l.Rounded), s.Blocks+1
		uses[site][use.String()] += l.Rounded
	}
	for site, s := range sums {
		s.Use = mostIn(uses[site])
		v.Holders = append(v.Holders, *s)
	}
	sorting.By(v.Holders, func(a, b finding.Stay) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Site, b.Site))
	})
	v.Holders = v.Holders[:min(len(v.Holders), mostStays)]
	free := map[string]int64{} // in segments that a site's blocks keep
	for _, p := range fr.Pins {
		seen := map[string]bool{}
		for _, row := range p.Lives {
			if site := j.site(t.Lives[row].Stack); !seen[site] {
				seen[site] = true
				free[site] += p.Free
			}
		}
	}
	v.Pin = mostIn(free)
	return v
}

// mostIn is the key with the highest sum, of equal ones the first by name.
func mostIn(sums map[string]int64) (best string) {
	first := true
	for key, n := range sums {
		if m := sums[best]; first || n > m || n == m && key < best {
			best, first = key, false
		}
	}
	return best
}
