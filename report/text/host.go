package text

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
)

var hostNames = []struct{ series, name string }{
	{host.Size, "process, RSS and swap"}, {host.Swap, "swapped out"}, {host.CPUBytes, "CPU tensors"}, {host.CPUTensors, "their number"},
	{host.Objects, "Python objects"}, {host.PinnedBytes, "pinned"}, {host.Workers, "workers, PSS"}, {host.WorkersRSS, "workers, RSS"},
	{host.Available, "available in all"},
}

// host prints what a process does with the memory of its machine.
func (p *printer) host(j *verdict.Host, named bool) {
	name := "HOST"
	if j.Rank >= 0 {
		name += fmt.Sprintf(" of rank %d", j.Rank)
	}
	badge, title := strings.ToUpper(string(j.Status)), chart.Plain(j.Headline)
	rest := j.Findings
	lead := len(rest) > 0 && rest[0].Title == j.Headline
	if lead {
		title += " (" + rest[0].Trust() + ")"
	}
	if named {
		title = chart.ClipLeft(chart.Plain(j.File), 40) + ": " + title
	}
	badge = name + " " + badge
	for i, l := range wrap(title, p.width-len(badge)-2) {
		head := strings.Repeat(" ", len(badge))
		if i == 0 {
			head = p.paint(bold+";"+tones[j.Status.Tone()], badge)
		}
		p.line(head + "  " + p.paint(bold, l))
	}
	if lead {
		p.line("")
		p.section("Why", plain(rest[0].Why), 12)
		p.section("Next", plain(numbered(rest[0].Next)), 8)
		rest = rest[1:]
	}
	p.others(rest)
	p.line("")
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
