package json

import (
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/snapshot"
)

// growth is a growth with its loop and its stacks by their names.
type growth struct {
	Cause   ghost.Kind `json:"cause"`
	Loop    string     `json:"loop"`
	Sites   []string   `json:"sites"`
	StacksN int        `json:"stacks_total"`
	ghost.Growth
	Hints []string `json:"hints"`
}

func buildGrowth(s *snapshot.Snapshot, all []ghost.Growth) []growth {
	out := []growth{}
	for _, g := range cut(all, maxFindings) {
		v := growth{
			Cause: g.Cause.Kind, Loop: attribution.FrameText(s, g.Loop), Sites: []string{}, StacksN: len(g.Stacks),
			Growth: g, Hints: list(g.Cause.Hints),
		}
		v.Lifetimes = list(g.Lifetimes)
		for _, stack := range cut(g.Stacks, maxGrowthStacks) {
			v.Sites = append(v.Sites, attribution.Site(s, stack))
		}
		out = append(out, v)
	}
	return out
}
