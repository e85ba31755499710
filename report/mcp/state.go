package mcp

import (
	"context"
	"fmt"
	"regexp"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/text"
)

type stateArgs struct {
	fileArgs
	At      string `json:"at,omitempty" jsonschema:"moment: peak, end (default), oom, start, an event like 1234, +1.5s, or step:3"`
	By      string `json:"by,omitempty" jsonschema:"site (default), stack, file, function, module, category, stream, pool, block"`
	Match   string `json:"match,omitempty" jsonschema:"only blocks with a frame 'file:line function' that matches this pattern"`
	Exclude string `json:"exclude,omitempty" jsonschema:"leave out blocks with a frame that matches this regular expression"`
	Device  *int   `json:"device,omitempty" jsonschema:"number of the GPU (default: the one that reserved most)"`
	First   int    `json:"first,omitempty" jsonschema:"number of the first group to list, from 0: for what an answer left out"`
}

// group is a row of a state.
type group struct {
	Name   string   `json:"name"`
	Size   size     `json:"size"`
	Blocks int64    `json:"blocks"`
	Stack  string   `json:"stack,omitempty"` // of a group by site: the one of them with most
	Frames []string `json:"frames,omitempty"`
}

func (s *server) state(ctx context.Context, in stateArgs, p *page) error {
	if in.At == "" {
		in.At = "end"
	}
	q := attribution.Query{By: attribution.BySite}
	if in.By != "" {
		q.By = attribution.Kind(in.By)
	}
	if !q.By.Known() {
		return oneOf("by", in.By, attribution.Kinds())
	}
	if in.First < 0 {
		return failure.Mark(failure.Usage, fmt.Errorf("invalid first %d; expected 0 or more", in.First))
	}
	var err error
	for _, filter := range []struct {
		text string
		to   **regexp.Regexp
	}{{in.Match, &q.Match}, {in.Exclude, &q.Exclude}} {
		if filter.text == "" {
			continue
		}
		if *filter.to, err = regexp.Compile(filter.text); err != nil {
			return failure.Mark(failure.Usage, fmt.Errorf("invalid regular expression: %w", err))
		}
	}
	r, err := s.analyze(ctx, in.fileArgs, "")
	if err != nil {
		return err
	}
	d, err := r.device(in.Device)
	if err != nil {
		return err
	}
	t := d.Timeline
	if err := q.By.Check(r.snap, t); err != nil {
		return fmt.Errorf("unknown by %q; %w", in.By, err)
	}
	m, err := attribution.Locate(r.snap, t, in.At)
	if err != nil {
		return fmt.Errorf("invalid at %q; %w", clip(in.At, shortText), err)
	}
	q.Category = category.Namer(r.snap, t, nil)
	key := fmt.Sprintf("state %s %d %d %q %q %q", r.key, t.Device, m.Event, in.By, in.Match, in.Exclude)
	v, err := s.shelf.get(ctx, key, r.stamp, func(context.Context) (any, error) {
		return attribution.Ask(r.snap, t, m, q, false), nil
	})
	if err != nil {
		return err
	}
	a := v.(*attribution.Answer)
	rows := a.Holders.Rows
	p.text("verdict", text.StateSaid(a))
	p.set("moment", m.Name)
	p.set("event", m.Event)
	p.set("device", t.Device)
	totals := a.State.Totals
	p.set("totals", map[string]size{"reserved": sized(totals.Reserved), "active": sized(totals.Active),
		"allocated": sized(totals.Allocated)})
	again := r.arguments("at", in.At)
	delete(again, "capacity")
	for name, value := range map[string]string{"by": in.By, "match": in.Match, "exclude": in.Exclude} {
		if value != "" {
			again[name] = value
		}
	}
	if in.Device != nil {
		again["device"] = *in.Device
	}
	first := min(in.First, len(rows))
	rows = rows[first:]
	list := func(shown int) (out []call) {
		if shown < len(rows) {
			on := map[string]any{"first": first + shown}
			for k, v := range again {
				on[k] = v
			}
			out = append(out, call{"state", on, "the groups that come next"})
		}
		if len(rows) > 0 {
			if id := r.rowStack(a, &rows[0]); id != "" {
				out = append(out, r.to("at", "the whole stack of the first, and what it allocated when", "id", id))
			}
		}
		return append(out, r.to("report", "the verdict on the run"))
	}
	reserve := cost(plain(list(0))) + 200
	p.left -= reserve
	shown := p.list("groups", len(rows), 100, func(i int) any {
		row := &rows[i]
		g := group{clip(row.Name, shortText), sized(row.Rounded), row.Count, r.rowStack(a, row), nil}
		for _, f := range row.Frames[:min(len(row.Frames), 4)] {
			g.Frames = append(g.Frames, clip(f, shortText))
		}
		return g
	})
	p.left += reserve
	p.lead(list(shown)...)
	return nil
}

// rowStack is the id of the stack of a row's largest block, "" where it has none.
func (r *run) rowStack(a *attribution.Answer, row *attribution.Row) string {
	if row.Stack != 0 {
		return stackOf(r.snap, row.Stack)
	}
	if row.Unattributed {
		return ""
	}
	for _, life := range a.Timeline.Lives {
		if int(life.Born) == row.Largest.Born && attribution.Hex(life.Addr) == row.Largest.Address {
			return stackOf(r.snap, life.Stack)
		}
	}
	return ""
}
