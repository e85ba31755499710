package json

import (
	"github.com/snapana/snapana/analyze"
	frag "github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// buildFree keeps the groups of samples that have several.
func buildFree(samples []frag.Sample) []frag.Sample {
	out := []frag.Sample{}
	for _, x := range samples {
		if x.Groups = cut(x.Groups, maxSampled); len(x.Groups) == 1 {
			x.Groups = x.Groups[:0]
		}
		out = append(out, x)
	}
	return out
}

func buildWithout(t *timeline.Timeline, m *analyze.Moment, site func(snapshot.StackID) string) []without {
	out := []without{}
	for _, x := range frag.Rank(t, m.State, &m.Frag, maxWithout) {
		out = append(out, without{site(x.Stack), x})
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

func buildFailure(r *oom.Report) *oom.Report {
	if r == nil {
		return nil
	}
	out := *r
	out.Plan.Sites = cut(r.Plan.Sites, maxStacks)
	return &out
}
