package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/address"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot"
)

type atArgs struct {
	fileArgs
	Address string `json:"address,omitempty" jsonschema:"0x7f064c00000, a name of memory_viz like b7f064c00000_2, or a decimal number"`
	ID      string `json:"id,omitempty" jsonschema:"in place of an address, the id of a stack or a finding"`
	At      string `json:"at,omitempty" jsonschema:"moment: end (default), peak, oom, start, an event, a time, step:3"`
	Device  *int   `json:"device,omitempty" jsonschema:"number of the GPU (default: the one that knows the address)"`
}

// owner is a block that lived at an address.
type owner struct {
	Name      timeline.Name `json:"name"`
	When      string        `json:"when"`
	Address   string        `json:"address"`
	Size      size          `json:"size"`
	Requested size          `json:"requested"`
	Born      int           `json:"born"`
	Freed     *int          `json:"freed"`
	Category  string        `json:"category,omitempty"`
	Site      string        `json:"site"`
	Stack     string        `json:"stack,omitempty"`
	FreeSite  string        `json:"freed_at,omitempty"`
}

func (s *server) at(ctx context.Context, in atArgs, p *page) error {
	if (in.Address == "") == (in.ID == "") {
		return failure.Mark(failure.Usage, errors.New("give either an address or an id"))
	}
	q, err := address.Parse(in.Address)
	if err != nil && in.ID == "" {
		return failure.Mark(failure.Usage, err)
	}
	r, err := s.analyze(ctx, in.fileArgs, "")
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(in.ID, "finding:"):
		return r.findingPage(in.ID, p)
	case in.ID != "":
		return r.stackPage(in.ID, p)
	}
	if in.At == "" {
		in.At = "end"
	}
	d, err := r.device(in.Device)
	if err != nil {
		return err
	}
	t := d.Timeline
	if in.Device == nil {
		all := []*timeline.Timeline{t}
		for i := range r.Devices {
			if o := r.Devices[i].Timeline; o != t {
				all = append(all, o)
			}
		}
		t, _ = address.Device(all, q)
	}
	_, addr := address.Device([]*timeline.Timeline{t}, q)
	m, err := attribution.Locate(r.snap, t, in.At)
	if err != nil {
		return fmt.Errorf("invalid at %q; %w", clip(in.At, shortText), err)
	}
	const most = 20
	a := address.Ask(r.snap, t, m, addr, q.Generation, most, category.Namer(r.snap, t, nil))
	if q.Generation >= 0 && !a.Asked() {
		return failure.Mark(failure.NotInFile, fmt.Errorf("GPU %d of %s has no block %s; %s", t.Device, r.name,
			clip(in.Address, shortText), a.Others()))
	}
	p.text("verdict", a.Headline)
	p.set("status", a.Status)
	p.set("device", a.Device)
	p.set("address", a.Address)
	p.set("moment", a.Moment)
	p.set("event", a.Event)
	var calls []call
	for i := range a.Owners {
		if id := stackID(a.Owners[i].Frames); id != "" && len(calls) < 2 {
			calls = append(calls, r.to("at", "what the stack of "+fmt.Sprint(a.Owners[i].Name)+" allocated", "id", id))
		}
	}
	p.lead(append(calls, r.to("report", "the verdict on the run"))...)
	p.texts("why", a.Reasons, 40)
	p.list("owners", len(a.Owners), 80, func(i int) any {
		o := &a.Owners[i]
		return owner{o.Name, o.When, o.Address, sized(o.Rounded), sized(o.Requested), o.Born, o.Freed, clip(o.Category, shortText),
			clip(o.Site, shortText), stackID(o.Frames), clip(o.FreeSite, shortText)}
	})
	for i, n := range []*address.Neighbor{a.Below, a.Above} {
		if n != nil {
			p.set([]string{"below", "above"}[i], map[string]any{"name": n.Name, "distance": sized(n.Distance), "size": sized(n.Rounded),
				"site": clip(n.Site, shortText)})
		}
	}
	return nil
}

// stackPage is what a stack allocated, and when that was live.
func (r *run) stackPage(id string, p *page) error {
	ids, err := r.stacksOf(id)
	if err != nil {
		return err
	}
	of := map[snapshot.StackID]bool{}
	for _, s := range ids {
		of[s] = true
	}
	frames := attribution.Frames(r.snap, ids[0])
	site := attribution.Site(r.snap, ids[0])
	type moment struct {
		Device int    `json:"device"`
		Moment string `json:"moment"`
		Size   size   `json:"live"`
		Blocks int64  `json:"blocks"`
	}
	var moments []moment
	var allocated, never int64
	var bytes, leastSize, mostSize int64
	uses := map[string]int64{}
	for i := range r.Devices {
		d := &r.Devices[i]
		name := category.Namer(r.snap, d.Timeline, nil)
		for row, l := range d.Timeline.Lives {
			if !of[l.Stack] {
				continue
			}
			allocated, bytes = allocated+1, bytes+l.Rounded
			mostSize = max(mostSize, l.Rounded)
			if leastSize == 0 || l.Rounded < leastSize {
				leastSize = l.Rounded
			}
			if l.Freed < 0 && l.FreeRequested < 0 {
				never++
			}
			uses[name(int32(row))] += l.Rounded
		}
		for k := range d.Moments {
			m := &d.Moments[k]
			if m.State == nil {
				continue
			}
			var sum attribution.Sum
			for _, row := range m.State.Rows() {
				if l := &d.Timeline.Lives[row]; of[l.Stack] {
					sum.Add(attribution.SumOf(l))
				}
			}
			moments = append(moments, moment{d.Timeline.Device, m.Name, sized(sum.Rounded), sum.Count})
		}
	}
	use, most := "", int64(0)
	for name, n := range uses {
		if n > most || n == most && name < use {
			use, most = name, n
		}
	}
	at := site
	if at == "" {
		at = attribution.NoStack
	}
	said := fmt.Sprintf("%s allocated %s in %s, of which %s not freed.", clip(at, shortText), units.Bytes(bytes),
		units.Plural(allocated, "block"), are(never))
	if allocated == 0 {
		said = fmt.Sprintf("No block of the file was allocated at %s: its requests failed, or it only freed memory.",
			clip(at, shortText))
	}
	p.text("verdict", said)
	p.set("id", id)
	p.set("site", clip(site, shortText))
	if use != "" {
		p.set("category", clip(use, shortText))
	}
	var related []string
	for i, fid := range findingIDs(r.Verdict.Findings) {
		if stackID(r.Verdict.Findings[i].Stack) == id {
			related = append(related, fid)
		}
	}
	var calls []call
	for _, fid := range related[:min(len(related), 2)] {
		calls = append(calls, r.to("report", "a finding about this stack", "id", fid))
	}
	p.lead(append(calls, r.to("report", "the verdict on the run"))...)
	p.set("allocated", map[string]any{"blocks": allocated, "size": sized(bytes), "never_freed": never,
		"smallest": sized(leastSize), "largest": sized(mostSize)})
	p.list("live", len(moments), 40, func(i int) any { return moments[i] })
	p.list("frames", len(frames), 90, func(i int) any { return clip(frames[i], shortText) })
	p.set("resource", r.uri("stack", strings.TrimPrefix(id, "stack:")))
	return nil
}

func are(n int64) string {
	if n == 1 {
		return "1 was"
	}
	return units.Count(n) + " were"
}
