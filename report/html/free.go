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
	Keys []*chart.FreeKind
	Most string
}

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
	var paths [len(chart.FreeKinds)]path
	n := float64(len(samples))
	for i := range samples {
		top := 0.0
		for k := range paths {
			if h := chart.Share(chart.FreeKinds[k].Bytes(&samples[i].Classes), most); h > 0 {
				paths[k].box(float64(i)/n, 1-top-h, 1/n, h)
				top += h
			}
		}
	}
	for k := range paths {
		paths[k].class = chart.FreeKinds[k].Class
		if paths[k].b.Len() > 0 {
			v.Keys = append(v.Keys, &chart.FreeKinds[k])
		}
	}
	var d drawing
	d.open("plot areas", "reserved and not allocated bytes over the trace")
	d.paths(paths[:]...)
	d.close()
	v.Plot = d.html()
	return v
}
