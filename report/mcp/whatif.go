package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/text"
)

type whatifArgs struct {
	fileArgs
	Conf     []string `json:"conf,omitempty" jsonschema:"allocator settings to try: expandable_segments:True (default: the usual)"`
	Changes  []string `json:"changes,omitempty" jsonschema:"changes: checkpoint=blocks.*, foreach=off, accumulate=4, zero=2,8"`
	Search   bool     `json:"search,omitempty" jsonschema:"search for the cheapest changes with which the run fits"`
	Capacity capacity `json:"capacity,omitempty" jsonschema:"memory of the GPU, like 24GiB (default: as the failure of the run tells)"`
	Foreign  capacity `json:"foreign,omitempty" jsonschema:"part of capacity that PyTorch cannot have (default 512MiB)"`
	Device   *int     `json:"device,omitempty" jsonschema:"number of the GPU (default: the one that reserved most)"`
}

// gpuOf is the size of a device, and what of it is not to be had.
func gpuOf(total, foreign capacity) (n, not int64, err error) {
	if n, err = total.bytes("capacity"); err != nil {
		return 0, 0, err
	}
	not = whatif.ContextBytes
	if foreign == "0" {
		not = 0
	} else if foreign != "" {
		if not, err = foreign.bytes("foreign"); err != nil {
			return 0, 0, err
		}
	}
	if n > 0 && not >= n {
		return 0, 0, failure.Mark(failure.Usage, errors.New("invalid foreign; expected less than capacity"))
	}
	return n, not, nil
}

func (s *server) whatif(ctx context.Context, in whatifArgs, p *page) error {
	total, foreign, err := gpuOf(in.Capacity, in.Foreign)
	if err != nil {
		return err
	}
	var changes []change.Change
	for _, text := range in.Changes {
		c, err := change.Parse(text)
		if err != nil {
			return refused(err)
		}
		changes = append(changes, c)
	}
	altered := in.Search || len(changes) > 0
	if altered && len(in.Conf) > 0 {
		return failure.Mark(failure.Usage, errors.New("changes and search cannot be used with conf"))
	}
	r, err := s.analyze(ctx, in.fileArgs, "")
	if err != nil {
		return err
	}
	d, err := r.device(in.Device)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("whatif %s %d %q %q %v %d %d", r.key, d.Timeline.Device, in.Conf, in.Changes, in.Search, total, foreign)
	v, err := s.shelf.get(ctx, key, r.stamp, func(ctx context.Context) (any, error) {
		if altered {
			return r.altered(ctx, d.Timeline, changes, in.Search, total, foreign)
		}
		return r.settings(ctx, d.Timeline, in.Conf, total, foreign)
	})
	if err != nil {
		return refused(err)
	}
	switch a := v.(type) {
	case *whatif.Answer:
		r.settingsPage(a, in, p)
	case *change.Found:
		r.foundPage(a, in, p)
	case *change.Answer:
		r.changesPage(a, in, p)
	}
	return nil
}

// settings replays a run under other settings.
func (r *run) settings(ctx context.Context, t *timeline.Timeline, confs []string, total, foreign int64) (any, error) {
	program, accuracy, err := whatif.Load(ctx, r.snap, t)
	if err != nil {
		return nil, err
	}
	if program.Allocs+program.OOMs == 0 {
		return nil, r.nothing(program.Device)
	}
	q := whatif.Question{Capacity: total, Foreign: foreign}
	if q.Settings, err = settings(program, confs, total > 0); err != nil {
		return nil, err
	}
	return whatif.Ask(ctx, r.snap, program, accuracy, q)
}

// settings reads settings, nil for none.
func settings(p *whatif.Program, confs []string, sized bool) (out []whatif.Setting, err error) {
	for _, text := range confs {
		set, err := p.Replayable(text, sized)
		if errors.Is(err, whatif.ErrNoSize) {
			err = fmt.Errorf("%w: give capacity", err)
		}
		if err != nil {
			return nil, failure.Mark(failure.Usage, fmt.Errorf("conf %q: %w", clip(text, shortText), err))
		}
		out = append(out, set)
	}
	return out, nil
}

func (r *run) nothing(device int) error {
	return failure.Mark(failure.NoHistory, fmt.Errorf("%s: GPU %d has no requests in its trace, so there is nothing to replay",
		r.name, device))
}

// altered replays a run of a changed program.
func (r *run) altered(ctx context.Context, t *timeline.Timeline, changes []change.Change, search bool,
	total, foreign int64) (any, error) {
	in, err := change.NewInput(ctx, r.snap, t, nil)
	if err != nil {
		return nil, err
	}
	if in.Program.Allocs+in.Program.OOMs == 0 {
		return nil, r.nothing(t.Device)
	}
	in.Capacity, in.Foreign = total, foreign
	if !search {
		a, err := change.Ask(ctx, in, changes)
		if err == nil {
			verdict.SayChanges(a)
		}
		return a, err
	}
	if total == 0 && in.Program.Capacity == 0 {
		return nil, failure.Mark(failure.Usage,
			errors.New("search needs capacity: the file does not tell how much memory there was"))
	}
	f, err := change.Search(ctx, in, changes, 0)
	if err == nil {
		verdict.SaySearch(f)
	}
	return f, err
}

// refused is the error for a change that is not known or cannot be replayed.
func refused(err error) error {
	var word *change.UnknownError
	var no *change.RefusedError
	switch {
	case errors.As(err, &word):
		return failure.Mark(failure.Usage, fmt.Errorf("unknown change %q; choose from %s", clip(word.Word, shortText),
			joined(word.Known)))
	case errors.As(err, &no):
		return failure.Mark(failure.CannotReplay, errors.New(verdict.SayRefused(no)))
	}
	return err
}

func joined[S ~string](list []S) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}

// about are the arguments of a call about the same run and device.
func (in *whatifArgs) about(r *run, more ...any) map[string]any {
	out := r.arguments(more...)
	if in.Capacity != "" {
		out["capacity"] = in.Capacity
	}
	if in.Foreign != "" {
		out["foreign"] = in.Foreign
	}
	if in.Device != nil {
		out["device"] = *in.Device
	}
	return out
}

func (r *run) settingsPage(a *whatif.Answer, in whatifArgs, p *page) {
	p.text("verdict", text.WhatIfAdvice(a))
	p.set("device", a.Device)
	p.set("replay_accuracy", map[string]any{"share": a.Accuracy.Share, "trusted": a.Accuracy.Trusted})
	p.set("capacity", map[string]any{"source": a.Capacity.Source, "reservable": sized(a.Capacity.Reservable)})
	calls := []call{{"whatif", in.about(r, "search", true), "changes of the program with which it fits"}}
	if in.Capacity == "" && a.Capacity.Source == "none" {
		calls = nil
	}
	if a.Best > 0 {
		p.set("best", a.Rows[a.Best].Text)
	}
	p.lead(append(calls, r.to("report", "the verdict on the run"))...)
	p.texts("costs", a.Costs, 30)
	p.list("settings", len(a.Rows), 100, func(i int) any {
		row := &a.Rows[i]
		out := map[string]any{"setting": clip(row.Text, shortText), "peak_reserved": sized(row.ReservedPeak),
			"failed_requests": row.Failures, "retries": row.Retries}
		if row.Recorded {
			out["recorded"] = true
		}
		if row.Smallest > 0 {
			out["smallest_capacity"] = sized(row.Smallest)
		}
		if row.Needs != "" {
			out["needs_torch"] = row.Needs
		}
		if row.Refused != "" {
			out["refused"] = clip(row.Refused, shortText)
		}
		return out
	})
}

// peaks are those of a replay.
func peaks(o *change.Outcome) map[string]any {
	out := map[string]any{"peak_reserved": sized(o.ReservedPeak), "peak_allocated": sized(o.AllocatedPeak)}
	if o.Fits != nil {
		out["fits"], out["spare"] = *o.Fits, sized(o.Spare)
	}
	return out
}

func (r *run) changesPage(a *change.Answer, in whatifArgs, p *page) {
	p.text("verdict", a.Text)
	p.set("device", a.Device)
	p.set("before", peaks(&a.Before))
	p.set("after", peaks(&a.After))
	p.set("replay_accuracy", map[string]any{"share": a.Accuracy.Share, "trusted": a.Accuracy.Trusted})
	calls := []call{{"report", r.arguments(), "the verdict on the run"}}
	if in.Capacity != "" || a.Capacity.Source != "none" {
		calls = append(calls, call{"whatif", in.about(r, "search", true), "the cheapest changes with which it fits"})
	}
	p.lead(calls...)
	p.list("changes", len(a.Changes), 100, func(i int) any {
		c := &a.Changes[i]
		var assumed []string
		for k := range c.Assumptions {
			assumed = append(assumed, clip(c.Assumptions[k].Text, shortText))
		}
		return map[string]any{"change": clip(c.Change, shortText), "text": clip(c.Text, longText),
			"cost": clip(verdict.SayCost(&c.Cost), shortText), "assumes": assumed}
	})
}

func (r *run) foundPage(f *change.Found, in whatifArgs, p *page) {
	p.text("verdict", f.Text)
	p.set("device", f.Device)
	p.set("before", peaks(&f.Before))
	var calls []call
	if len(f.Tried) > 0 {
		calls = append(calls, call{"whatif", in.about(r, "changes", f.Tried[0].Changes),
			"the first of these alone, with what it assumes"})
	}
	p.lead(append(calls, r.to("report", "the verdict on the run"))...)
	p.list("tried", len(f.Tried), 80, func(i int) any {
		t := &f.Tried[i]
		return map[string]any{"changes": clean(t.Changes), "after": peaks(&t.After), "slower_share": t.Time,
			"text": clip(t.Text, longText)}
	})
	p.set("all_tried", f.All)
}
