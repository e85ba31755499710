package counters

import (
	"github.com/snapana/snapana/snapshot/memstats"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Recording reads the counters in the samples of a recorder's file.
func Recording(f *sidecar.File, opt Options) *File {
	c := NewCollector(opt.Metrics...)
	info := &memstats.Info{Name: f.Name, Container: []string{"recording"}}
	for i := range f.Runs {
		run := &f.Runs[i]
		rank := -1
		if run.Rank != nil {
			rank = int(*run.Rank)
		}
		for k := range run.Samples {
			s := &run.Samples[k]
			info.Samples++
			for _, d := range s.Devices {
				if d.Device == nil {
					continue
				}
				o := memstats.Sample{Device: int(*d.Device), Rank: rank, Step: number(s.Step), Epoch: number(s.Epoch), Time: s.Time / 1000, Label: s.Label}
				for n, name := range d.Stats.Names {
					o.Set(name, d.Stats.Values[n])
				}
				if d.Free != nil && d.Total != nil {
					o.Set(DeviceFree, *d.Free)
					o.Set(DeviceTotal, *d.Total)
				}
				if s.Host != nil && s.Host.Pinned != nil {
					o.Set(Pinned, *s.Host.Pinned)
				}
				o.Complete()
				c.Add(&o)
			}
		}
		info.Readings += int64(len(run.NVML))
	}
	if f.Truncated != nil {
		info.Cut = &memstats.Fault{Offset: f.Truncated.Offset, Msg: f.Truncated.Msg}
	}
	return &File{Info: info, Series: c.Series}
}

func number(v *int64) memstats.Number {
	if v == nil {
		return memstats.Number{}
	}
	return memstats.Number{N: *v, Known: true}
}
