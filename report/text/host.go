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
	d.outcome("HOST"+when(j.Rank >= 0, " of rank %d", j.Rank)+" ", j.Status, j.Headline, file, j.Lead(), j.Findings, 8)
	row := d.trends("Host", false)
	for _, n := range hostNames {
		if t := j.Trends.Of(n.series); t != nil && t.High != 0 {
			row(n.name, t, n.series != host.CPUTensors && n.series != host.Objects)
		}
	}
	d.list("Data", j.Notes, 6)
}

// trends adds a table of trends, or of single samples, to which the function returned adds one in bytes or counts.
func (d *doc) trends(name string, single bool) func(label string, t *finding.Trend, bytes bool) {
	cols := []column{left(name, 22), num("first", 11).spared(1), num("last", 11), num("lowest", 11).spared(3),
		num("highest", 11).spared(2),
		column{head: "trend", sep: "  ", narrow: 25}}
	if single {
		cols = []column{left(name, 22), num("then", 11)}
	}
	table := d.table(bold, cols...)
	return func(label string, t *finding.Trend, bytes bool) {
		if single {
			table.row(label, amount(t.Last, bytes))
			return
		}
		shape := plain.of(string(t.Shape))
		if t.Shape == counters.Growing {
			shape.attr = yellow
		}
		table.row(label, amount(t.First, bytes), amount(t.Last, bytes), amount(t.Low, bytes), amount(t.High, bytes),
			shape, slopeOf(t, bytes))
	}
}

// slopeOf says how fast a counter grows, if it does.
func slopeOf(t *finding.Trend, bytes bool) string {
	switch {
	case t.Shape != counters.Growing:
		return ""
	case bytes:
		return ", " + units.Bytes(t.PerUnit()) + " per " + t.Unit
	}
	return fmt.Sprintf(", %.3g per %s", t.Slope, t.Unit)
}
