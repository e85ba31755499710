package html

import (
	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
)

// place is an entry of the page's contents.
type place struct {
	ID, Name string
	Of       string  // the device that it is, of several: the contents show the parts of one
	Parts    []place // of a device
}

// addContents lists the parts of the page, in their order.
func (p *document) addContents() {
	p.Contents = []place{{ID: "verdict", Name: "Verdict"}}
	add := func(there bool, id, name string) {
		if there {
			p.Contents = append(p.Contents, place{ID: id, Name: name})
		}
	}
	add(p.Holders != nil && len(p.Holders.Proven) > 0, "holders", "Holders")
	add(p.Overview != nil, "overview", "All devices")
	for i := range p.Devices {
		d := &p.Devices[i]
		if len(p.Devices) == 1 {
			p.Contents = append(p.Contents, d.parts()...)
			continue
		}
		p.Contents = append(p.Contents, place{ID: d.ID, Name: d.Name, Of: d.ID, Parts: d.parts()})
	}
	add(p.Holders != nil && len(p.Holders.Proven) == 0, "holders", "Holders")
	add(p.Pinned != nil, "pinned", "Pinned memory")
	add(true, "data", "About the data")
}

// parts lists those of a device's section that are there.
func (d *device) parts() []place {
	var out []place
	add := func(there bool, part, name string) {
		if there {
			out = append(out, place{ID: d.ID + "-" + part, Name: name})
		}
	}
	add(d.Traced, "timeline", "Timeline")
	add(!d.Traced, "timeline", "Live memory")
	add(d.Failure != nil, "failure", "Would it fit?")
	add(d.Account != nil, "account", "Device memory")
	add(d.Steps != nil, "steps", "Steps")
	add(d.Phases != nil, "phases", "Phases")
	add(len(d.Uses) > 0, "uses", "Uses")
	add(len(d.Stacks) > 0, "holders", "Allocated by")
	add(len(d.Maps) > 0, "segments", "Segments")
	add(len(d.Frag.Ledgers) > 0, "free", "Unused memory")
	add(d.WhatIf != nil, "whatif", "Other settings")
	return out
}

// opens are the parts that are not folded though they are details: those that the verdict is about.
type opens struct{ Steps, Segments, Free bool }

func newOpens(r *analyze.Result, device int) opens {
	f := r.Verdict.Lead()
	if f == nil || f.Device != device {
		return opens{}
	}
	pieces := f.Evidence.Fragments != nil
	return opens{Steps: f.Status == finding.Ghost, Segments: pieces && f.Status != finding.Cached, Free: pieces}
}
