package text

import (
	"fmt"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
)

var hostNames = []struct{ series, name string }{
	{host.Size, "process, RSS and swap"}, {host.Swap, "swapped out"}, {host.CPUBytes, "CPU tensors"},
	{host.CPUTensors, "CPU tensor count"}, {host.Objects, "Python objects"}, {host.PinnedBytes, "pinned"},
	{host.Workers, "workers, PSS"}, {host.WorkersRSS, "workers, RSS"}, {host.Available, "available (machine)"},
}

// host adds what a process does with the memory of its machine. Its file is named unless that is "".
func (d *doc) host(j *verdict.Host, file string) {
	name := "HOST"
	if j.Rank >= 0 {
		name += fmt.Sprintf(" of rank %d", j.Rank)
	}
	d.outcome(name+" ", j.Status, j.Headline, file, j.Lead(), j.Findings, 8)
	row := d.trends("Host")
	for _, n := range hostNames {
		if t := j.Trends.Of(n.series); t != nil && t.High != 0 {
			bytes := n.series != host.CPUTensors && n.series != host.Objects
			row(n.name, t, bytes, bytes)
		}
	}
	d.list("Data", j.Notes, 6)
}

// trends adds a table of trends. The function that it returns gives it a row: the values as bytes or
// counts, and so the slope.
func (d *doc) trends(name string) func(label string, t *finding.Trend, bytes, slopeBytes bool) {
	table := d.table(bold, left(name, 22), num("first", 11), num("last", 11),
		num("lowest", 11), num("highest", 11), rest("trend"))
	return func(label string, t *finding.Trend, bytes, slopeBytes bool) {
		v := units.Count
		if bytes {
			v = units.Bytes
		}
		shape, slope := plain.of(string(t.Shape)), ""
		if t.Shape == counters.Growing {
			shape, slope = yellow.of(shape.text), ", "+slopeOf(t, slopeBytes)
		}
		table.row(label, v(t.First), v(t.Last), v(t.Low), v(t.High), shape, slope)
	}
}

// slopeOf says how fast a counter grows.
func slopeOf(t *finding.Trend, bytes bool) string {
	if bytes {
		return units.Bytes(t.PerUnit()) + " per " + t.Unit
	}
	return fmt.Sprintf("%.3g per %s", t.Slope, t.Unit)
}
