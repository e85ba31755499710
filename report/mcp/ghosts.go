package mcp

import (
	"context"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

type ghostsArgs struct{ fileArgs }

// held is a reference that keeps memory.
type held struct {
	Standing holder.Standing `json:"standing"`
	Words    string          `json:"reference"`
	Keeps    size            `json:"keeps"`
	Frees    size            `json:"frees"`
	PerLap   size            `json:"per_iteration"`
	Chain    string          `json:"chain,omitempty"`
	Site     string          `json:"allocated_at,omitempty"`
	Fix      []string        `json:"fix,omitempty"`
}

func (s *server) ghosts(ctx context.Context, in ghostsArgs, p *page) error {
	if recorded(in.File) {
		return s.dumps(ctx, in, p)
	}
	r, err := s.analyze(ctx, in.fileArgs, "")
	if err != nil {
		return err
	}
	traced := false
	for i := range r.Devices {
		traced = traced || r.Devices[i].Timeline.HasHistory()
	}
	r.ghosts(traced, p)
	return nil
}

// recorded reports whether a file is the recorder's, by its name.
func recorded(name string) bool { return strings.HasSuffix(snapshot.PlainName(name), ".snapana") }

// dumps is ghosts for the recorder's file alone.
func (s *server) dumps(ctx context.Context, in ghostsArgs, p *page) error {
	at, err := s.roots.find(ctx, in.File)
	if err == nil {
		err = at.regular()
	}
	if err != nil {
		return err
	}
	stamp, err := at.stamp(ctx)
	if err != nil {
		return err
	}
	f := &file{place: at, from: in.fileArgs}
	v, err := s.shelf.get(ctx, "dumps "+at.path, stamp, func(ctx context.Context) (any, error) {
		rec, err := at.open(ctx)
		if err != nil {
			return nil, err
		}
		defer rec.Close()
		if f.rec, err = sidecar.Read(ctx, rec, at.name, sidecar.Options{Partial: in.Partial}); err != nil {
			return nil, err
		}
		out, err := analyze.Alone(f.rec, nil)
		return &run{f, out, ""}, err
	})
	if err != nil {
		return err
	}
	v.(*run).ghosts(false, p)
	return nil
}

func (r *run) ghosts(traced bool, p *page) {
	answer := r.Verdict.Ghosts(r.Holders, verdict.Unseen(r.Snapshot, traced))
	ids := findingIDs(r.Verdict.Findings)
	var leaks []int
	for i := range r.Verdict.Findings {
		if r.Verdict.Findings[i].Status == finding.Ghost {
			leaks = append(leaks, i)
		}
	}
	headline := answer.Headline
	if answer.Status == finding.Healthy {
		headline = "No leak found: " + headline
	}
	if len(leaks) > 0 {
		headline = r.Verdict.Findings[leaks[0]].Title
	}
	p.text("verdict", headline)
	p.set("status", answer.Status)
	p.text("trust", answer.Trust)
	p.set("recorder", r.Holders != nil)
	var calls []call
	if traced {
		for _, i := range leaks[:min(len(leaks), 2)] {
			calls = append(calls, r.to("report", "reasons and steps of this leak", "id", ids[i]))
		}
		calls = append(calls, r.to("state", "all that was live at the end", "at", "end"))
	}
	if r.snap == nil {
		calls = append(calls, r.beside())
	} else if len(calls) == 0 {
		calls = append(calls, r.to("report", "the verdict on the run"))
	}
	p.lead(calls...)
	p.list("leaks", len(leaks), 60, func(i int) any {
		f := &r.Verdict.Findings[leaks[i]]
		out := struct {
			brief
			PerLap size     `json:"per_iteration"`
			Loop   string   `json:"loop,omitempty"`
			Cause  string   `json:"cause,omitempty"`
			Holder string   `json:"holder,omitempty"`
			Fix    []string `json:"fix,omitempty"`
		}{brief: briefly(f, ids[leaks[i]]), Cause: clip(f.Cause, shortText)}
		if g := f.Evidence.Growth; g != nil {
			out.PerLap, out.Loop = sized(g.PerUnit), clip(g.Loop, shortText)
		}
		if h := f.Evidence.Holder; h != nil {
			out.Holder = clip(h.Reference, shortText)
		}
		for _, l := range f.Fix[:min(len(f.Fix), 6)] {
			out.Fix = append(out.Fix, clip(l, shortText))
		}
		return out
	})
	if r.Holders == nil {
		return
	}
	list := r.Holders.Holders
	p.list("holders", len(list), 100, func(i int) any {
		h := &list[i]
		out := held{h.Standing, clip(h.Reference.String(), shortText), sized(h.Bytes), sized(h.Frees), sized(h.PerLap),
			clip(h.Chain, shortText), "", nil}
		if len(h.Sites) > 0 {
			out.Site = clip(h.Sites[0].Name, shortText)
		}
		if h.Standing == holder.Ghost || h.Standing == holder.Other {
			for _, l := range h.Fix() {
				out.Fix = append(out.Fix, clip(l, shortText))
			}
		}
		return out
	})
}
