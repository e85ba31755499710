package json

import (
	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/verdict"
)

type statsHost struct {
	File     string            `json:"file"`
	Rank     int               `json:"rank"`
	Samples  int               `json:"samples"`
	Counted  int               `json:"counted"`
	Status   finding.Status    `json:"status"`
	Headline string            `json:"headline"`
	Trends   []statsShape      `json:"trends"`
	Findings []finding.Finding `json:"findings"`
	Notes    []string          `json:"notes"`
}

func buildHosts(hosts []*verdict.Host) []statsHost {
	out := []statsHost{}
	for _, j := range hosts {
		o := statsHost{j.File, j.Rank, j.Samples, j.Counted, j.Status, j.Headline, []statsShape{}, append([]finding.Finding{}, j.Findings...), append([]string{}, j.Notes...)}
		for i := range j.Trends {
			o.Trends = append(o.Trends, shapeOf(&j.Trends[i]))
		}
		out = append(out, o)
	}
	return out
}

func shapeOf(t *counters.Trend) statsShape {
	s := statsShape{Name: t.Name, Shape: t.Shape, First: t.First, Last: t.Last, Low: t.Low, High: t.High, Precision: t.Precision}
	if t.Shape == counters.Growing {
		s.Growth = &statsGrowth{t.Unit, t.Slope, t.From95, t.To95, t.P, t.Kept, t.From, t.To, t.Windows, t.Late, t.GivenBack, t.PerEpoch}
	}
	return s
}
