package html

import (
	"html/template"

	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// freeView draws what is reserved and not allocated over the trace, by what keeps it from use.
type freeView struct {
	Plot template.HTML
	Keys []freeKey
	Most string
}

type freeKey struct{ Class, Name string }

// newFree is nil where nothing was ever free.
func newFree(samples []fragmentation.Sample) *freeView {
	var most int64
	for i := range samples {
		most = max(most, samples[i].Classes.Sum())
	}
	if most == 0 {
		return nil
	}
	v := &freeView{Most: units.Bytes(most)}
	parts := []struct {
		class, name string
		bytes       func(c *fragmentation.Classes) int64
	}{
		{"k-releasable", "releasable", func(c *fragmentation.Classes) int64 { return c.Releasable }},
		{"k-split", chart.FreeHard, func(c *fragmentation.Classes) int64 { return c.Hard }},
		{"s4", chart.FreeSoft, func(c *fragmentation.Classes) int64 { return c.Soft }},
		{"s-other", "other stream or pool", func(c *fragmentation.Classes) int64 { return c.Stream }},
		{"s8", "pending", func(c *fragmentation.Classes) int64 { return c.Pending }},
	}
	paths := make([]path, len(parts))
	used := make([]bool, len(parts))
	n := float64(len(samples))
	for i := range samples {
		top := 0.0
		for k := range parts {
			h := share(parts[k].bytes(&samples[i].Classes), most)
			if h == 0 {
				continue
			}
			used[k] = true
			paths[k].box(float64(i)/n, 1-top-h, 1/n, h)
			top += h
		}
	}
	var d drawing
	d.open("plot areas", "reserved and not allocated bytes over the trace")
	for k := range parts {
		paths[k].class = parts[k].class
		if used[k] {
			v.Keys = append(v.Keys, freeKey{parts[k].class, parts[k].name})
		}
	}
	d.paths(paths...)
	d.close()
	v.Plot = d.html()
	return v
}
