package json

import (
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/snapshot"
)

// Bounds on lists; totals tell of the rest.
const (
	maxSteps      = 1000
	maxChurnSites = 50
)

func buildSteps(r *steps.Result) stepList {
	out := stepList{Unit: r.Unit, Source: r.Source, Confidence: string(r.Confidence), Total: len(r.Steps), Steps: []step{}}
	for _, s := range r.Steps[:min(len(r.Steps), maxSteps)] {
		out.Steps = append(out.Steps, step{s.First, s.Last, s.Name, s.Peak, s.Start, s.End, s.Survivors, s.WarmUp})
	}
	return out
}

func buildTurnover(s *snapshot.Snapshot, r *attribution.Turnover) churnSum {
	out := churnSum{Within: attribution.ShortLife, Allocs: r.Allocs, Short: r.Short, Bytes: r.Bytes, Span: r.Micros, Sites: []churnSite{}}
	for _, x := range r.Sites[:min(len(r.Sites), maxChurnSites)] {
		out.Sites = append(out.Sites, churnSite{attribution.Site(s, x.Stack), x.Allocs, x.Short, x.Bytes, x.Held})
	}
	return out
}
