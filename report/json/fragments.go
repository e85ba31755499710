package json

import (
	"github.com/snapana/snapana/analyze"
	frag "github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// buildFree keeps the groups of samples that have several.
func buildFree(samples []frag.Sample) []freeSample {
	out := []freeSample{}
	for _, x := range samples {
		f := freeSample{Sample: x, Groups: []group{}}
		if len(x.Groups) > 1 {
			f.Groups = buildGroups(x.Groups[:min(len(x.Groups), maxSampled)])
		}
		out = append(out, f)
	}
	return out
}

func buildGroups(groups []frag.Group) []group {
	out := []group{}
	for _, g := range groups[:min(len(groups), maxGroups)] {
		out = append(out, group{g, chart.Pool(snapshot.KindUnknown, g.Pool, 0, false)})
	}
	return out
}

func buildWithout(t *timeline.Timeline, m *analyze.Moment, site func(snapshot.StackID) string) []without {
	out := []without{}
	for _, x := range frag.Rank(t, m.State, &m.Frag, maxWithout) {
		out = append(out, without{site(x.Stack), x.Blocks, x.Bytes, x.Hostage, x.Returned, x.Segments})
	}
	return out
}

// buildKeepers lists the blocks that keep a segment, by address.
func buildKeepers(t *timeline.Timeline, seg *timeline.SegmentState, site func(snapshot.StackID) string) []keeper {
	out := []keeper{}
	for i, row := range seg.Live[:min(len(seg.Live), maxKeepers)] {
		l := &t.Lives[row]
		out = append(out, keeper{int64(l.Addr - seg.Addr), l.Rounded, frag.Hostage(t, seg, i), int(l.Born), site(l.Stack)})
	}
	return out
}

func buildFailure(d *analyze.Device) *failure {
	m := d.Moment("oom")
	if d.OOM == nil || m == nil {
		return nil
	}
	r, p, site := d.OOM, &d.OOM.Plan, chart.SiteOf(m)
	out := &failure{r, plan{p.Blocks, p.Bytes, p.Returned, p.Segments, p.Hole, p.Fewest, []planSite{}}}
	for _, x := range p.Sites[:min(len(p.Sites), maxStacks)] {
		out.Plan.Sites = append(out.Plan.Sites, planSite{site(x.Stack), x.Blocks, x.Bytes})
	}
	return out
}
