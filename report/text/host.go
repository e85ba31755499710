package text

import (
	"fmt"

	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/verdict"
)

var hostNames = []struct{ series, name string }{
	{host.Size, "process, RSS and swap"}, {host.Swap, "swapped out"}, {host.CPUBytes, "CPU tensors"}, {host.CPUTensors, "CPU tensor count"},
	{host.Objects, "Python objects"}, {host.PinnedBytes, "pinned"}, {host.Workers, "workers, PSS"}, {host.WorkersRSS, "workers, RSS"},
	{host.Available, "available (machine)"},
}

// host prints what a process does with the memory of its machine. Its file is named unless that is "".
func (p *printer) host(j *verdict.Host, file string) {
	name := "HOST"
	if j.Rank >= 0 {
		name += fmt.Sprintf(" of rank %d", j.Rank)
	}
	p.outcome(name+" ", j.Status, j.Headline, file, j.Lead(), j.Findings, 8)
	p.line(p.paint(bold, trendHead("Host")))
	for _, n := range hostNames {
		if t := j.Trends.Of(n.series); t != nil && t.High != 0 {
			bytes := n.series != host.CPUTensors && n.series != host.Objects
			p.trendRow(n.name, t, bytes, bytes)
		}
	}
	if len(j.Notes) > 0 {
		p.section("Data", plain(j.Notes), 6)
	}
}
