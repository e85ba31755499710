package json

import (
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/snapshot"
)

// maxGrowthStacks bounds the stacks of a growth; their number is told.
const maxGrowthStacks = 50

type growth struct {
	Cause      string     `json:"cause"`
	Loop       string     `json:"loop"`
	Sites      []string   `json:"sites"`
	StacksN    int        `json:"stacks_total"`
	Laps       int        `json:"laps"`
	Count      int64      `json:"count"`
	Bytes      int64      `json:"bytes"`
	PerLap     int64      `json:"bytes_per_lap"`
	Slope      float64    `json:"slope"`
	Chance     float64    `json:"chance"`
	LapTime    int64      `json:"lap_us"`
	Every      int        `json:"every_steps"`
	First      int        `json:"first_event"`
	Last       int        `json:"last_event"`
	Horizon    int        `json:"horizon_event"`
	Over       bool       `json:"loop_over"`
	OlderCount int64      `json:"older_count"`
	OlderBytes int64      `json:"older_bytes"`
	Hints      []string   `json:"hints"`
	Lifetimes  []lifetime `json:"lifetimes"`
}

type lifetime struct {
	Laps  int   `json:"laps"`
	Of    int64 `json:"of"`
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

type oneOff struct {
	Site  string `json:"site"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
	First int    `json:"first_event"`
}

func buildGrowth(s *snapshot.Snapshot, all []ghost.Growth) []growth {
	out := []growth{}
	for i := range all[:min(len(all), maxFindings)] {
		g := &all[i]
		v := growth{
			Cause: string(g.Cause.Kind), Loop: attribution.FrameText(s, g.Loop), Sites: []string{}, StacksN: len(g.Stacks), Laps: g.Laps,
			Count: g.Count, Bytes: g.Bytes, PerLap: g.PerLap, Slope: g.Slope, Chance: g.Chance, LapTime: g.LapTime, Every: g.Every,
			First: g.First, Last: g.Last, Horizon: g.Horizon, Over: g.Over, OlderCount: g.OlderCount, OlderBytes: g.OlderBytes,
			Hints: list(g.Cause.Hints), Lifetimes: []lifetime{},
		}
		for _, stack := range g.Stacks[:min(len(g.Stacks), maxGrowthStacks)] {
			v.Sites = append(v.Sites, attribution.Site(s, stack))
		}
		for _, l := range g.Lifetimes {
			v.Lifetimes = append(v.Lifetimes, lifetime(l))
		}
		out = append(out, v)
	}
	return out
}

func buildOneOffs(s *snapshot.Snapshot, all []ghost.OneOff) []oneOff {
	out := []oneOff{}
	for _, o := range all {
		out = append(out, oneOff{attribution.Site(s, o.Stack), o.Count, o.Bytes, o.First})
	}
	return out
}
