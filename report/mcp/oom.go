package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot"
)

type oomArgs struct {
	File     string   `json:"file" jsonschema:"path of a training log, or of a snapshot"`
	Snapshot string   `json:"snapshot,omitempty" jsonschema:"path of the snapshot of the same failure, beside a log"`
	Capacity capacity `json:"capacity,omitempty" jsonschema:"memory of each GPU, like 80GiB (default: as the message says)"`
	bound
}

func (s *server) oom(ctx context.Context, in oomArgs, p *page) error {
	total, err := in.Capacity.bytes("capacity")
	if err != nil {
		return err
	}
	at, err := s.roots.find(ctx, in.File)
	if err == nil {
		err = at.regular()
	}
	if err != nil {
		return err
	}
	if in.Snapshot == "" {
		r, err := s.analyze(ctx, fileArgs{File: in.File}, in.Capacity)
		var is snapshot.Stranger
		switch {
		case err == nil:
			return r.oom(p)
		case !errors.As(err, &is) && !errors.Is(err, snapshot.ErrCorrupt) && !errors.Is(err, snapshot.ErrNotSnapshot):
			return err
		}
	}
	stamp, err := at.stamp(ctx)
	if err != nil {
		return err
	}
	var r *run
	key := fmt.Sprintf("oom %s %d", at.path, total)
	if in.Snapshot != "" {
		if r, err = s.analyze(ctx, fileArgs{File: in.Snapshot}, ""); err != nil {
			return err
		}
		key, stamp = key+" "+r.key, stamp+" "+r.stamp
	}
	v, err := s.shelf.get(ctx, key, stamp, func(ctx context.Context) (any, error) {
		f, err := at.open(ctx)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		log, err := oom.ReadLog(at.name, f)
		if err == nil && log.Messages == 0 {
			err = failure.Mark(failure.NoData, fmt.Errorf("%s: no out-of-memory message found", at.name))
		}
		if err == nil && r != nil {
			err = analyze.Join(ctx, log, r.snap, total)
		}
		return log, err
	})
	if err != nil {
		return err
	}
	log := v.(*oom.Log)
	g := &log.Groups[log.Main]
	f := verdict.Message(log, g)
	p.text("verdict", f.Title)
	p.set("cause", cmp.Or(log.Cause, g.Cause))
	p.set("messages", log.Messages)
	p.set("line", g.Line)
	if g.Tried.Known() {
		p.set("requested", sized(g.Tried.Bytes))
	}
	var calls []call
	if r != nil {
		calls = append(calls, r.to("oom", "the same failure by the snapshot alone"),
			r.to("state", "what was live when it failed", "at", "oom"))
	}
	p.lead(calls...)
	p.set("ranks", g.Ranks)
	p.texts("why", f.Why, 40)
	p.texts("next", f.Next, 60)
	p.texts("fix", f.Fix, 60)
	p.set("figures", clean(g.Body))
	p.list("would_fit", len(log.Answers), 60, func(i int) any { return clean(log.Answers[i]) })
	if m := log.Match; m != nil {
		p.set("same_failure", m.Same)
	}
	p.list("others", len(log.Groups)-1, 100, func(i int) any {
		if i >= log.Main {
			i++
		}
		o := &log.Groups[i]
		m := verdict.Message(log, o)
		return map[string]any{"line": o.Line, "count": o.Count, "cause": o.Cause, "text": clip(m.Title, longText)}
	})
	return nil
}

// oom explains the last request of a run that failed.
func (r *run) oom(p *page) error {
	var d *analyze.Device
	for i := range r.Devices {
		if o := &r.Devices[i]; o.OOM != nil && (d == nil || o == r.Main()) {
			d = o
		}
	}
	if d == nil {
		return failure.Mark(failure.NoData, fmt.Errorf("%s has no out-of-memory event", r.name))
	}
	o, headline, finds := d.OOM, r.Verdict.Headline, -1
	for i := range r.Verdict.Findings {
		f := &r.Verdict.Findings[i]
		if f.Evidence.Request != nil && f.Device == d.Timeline.Device {
			headline, finds = f.Title, i
			break
		}
	}
	p.text("verdict", headline)
	p.set("cause", o.Cause)
	p.set("status", r.Verdict.Status)
	p.set("device", d.Timeline.Device)
	p.set("event", o.Event)
	p.set("requested", known(o.Requested))
	var calls []call
	if finds >= 0 {
		calls = append(calls, r.to("report", "reasons and steps", "id", findingIDs(r.Verdict.Findings)[finds]))
	}
	p.lead(append(calls, r.to("state", "what was live when it failed", "at", "oom"),
		r.to("whatif", "changes of the program with which it fits", "search", true))...)
	p.set("reserved", sized(o.After.Reserved))
	p.set("active", sized(o.After.Active))
	p.set("device_free", known(o.DeviceFree))
	p.set("device_total", known(o.DeviceTotal))
	p.set("largest_usable_piece", known(o.LargestUsable))
	p.set("largest_request_that_would_have_succeeded", known(o.Servable))
	if finds >= 0 {
		f := &r.Verdict.Findings[finds]
		p.set("site", clip(siteOf(f), shortText))
		p.texts("why", f.Why, 50)
		p.texts("next", f.Next, 60)
	}
	p.list("would_fit", len(o.Answers), 100, func(i int) any { return clean(o.Answers[i]) })
	return nil
}
