package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/failure"
)

type fitArgs struct {
	Files    []string           `json:"files" jsonschema:"recordings of one program at different values, one or more"`
	At       []map[string]int64 `json:"at" jsonschema:"what each file was recorded with: [{\"batch\":2},{\"batch\":4}]; one or two names"`
	To       []map[string]int64 `json:"to,omitempty" jsonschema:"values to predict, written alike (default: 2, 4 and 8 times the highest)"`
	Capacity capacity           `json:"capacity,omitempty" jsonschema:"memory of the GPU, like 80GiB: search the largest value that fits"`
	Foreign  capacity           `json:"foreign,omitempty" jsonschema:"part of capacity that PyTorch cannot have (default 512MiB)"`
	Conf     string             `json:"conf,omitempty" jsonschema:"allocator settings of the predicted runs: expandable_segments:True"`
	bound
}

// mostValue is the highest value that can be asked for.
const mostValue = 1 << 24

// points are values in the order of their names.
func points(what string, list []map[string]int64) (names []string, out []fit.Point, err error) {
	for i, values := range list {
		of := slices.Sorted(maps.Keys(values))
		switch {
		case len(of) < 1 || len(of) > 2:
			err = fmt.Errorf("%s has %d names; expected one or two", what, len(of))
		case i > 0 && !slices.Equal(of, names):
			err = fmt.Errorf("%s has different names in its items", what)
		}
		names = of
		var p fit.Point
		for _, name := range of {
			if n := values[name]; n < 1 || n > mostValue {
				err = fmt.Errorf("invalid %s %d; expected 1 to %d", clip(name, shortText), n, mostValue)
			}
			p = append(p, values[name])
		}
		if err != nil {
			return nil, nil, failure.Mark(failure.Usage, err)
		}
		out = append(out, p)
	}
	return names, out, nil
}

func (s *server) fit(ctx context.Context, in fitArgs, p *page) error {
	names, at, err := points("at", in.At)
	if err != nil {
		return err
	}
	of, to, err := points("to", in.To)
	switch {
	case err != nil:
	case len(at) != len(in.Files) || len(at) == 0:
		err = fmt.Errorf("at has %d items for %d files", len(at), len(in.Files))
	case len(to) > 0 && !slices.Equal(of, names):
		err = errors.New("at and to have different names")
	}
	if err != nil {
		return failure.Mark(failure.Usage, err)
	}
	q := fit.Question{Names: names, To: to}
	if q.Capacity, q.Foreign, err = gpuOf(in.Capacity, in.Foreign); err != nil {
		return err
	}
	runs, key, stamp, err := s.all(ctx, in.Files)
	if err != nil {
		return err
	}
	var inputs []*fit.Input
	for i, r := range runs {
		d, err := r.device(nil)
		if err != nil {
			return err
		}
		inputs = append(inputs, &fit.Input{Snapshot: r.snap, Timeline: d.Timeline, At: at[i]})
	}
	key = fmt.Sprintf("fit %s %v %v %d %d %q", key, at, to, q.Capacity, q.Foreign, in.Conf)
	v, err := s.shelf.get(ctx, key, stamp, func(ctx context.Context) (any, error) {
		if in.Conf != "" {
			set, err := confOf(ctx, runs[0], in.Conf, q.Capacity > 0)
			if err != nil {
				return nil, err
			}
			q.Settings = set
		}
		return fit.Ask(ctx, inputs, q)
	})
	if err != nil {
		return err
	}
	a := v.(*fit.Result)
	p.text("verdict", verdict.Fit(a))
	p.set("names", clean(a.Names))
	if a.Largest != nil {
		p.set("largest", *a.Largest)
	}
	p.text("limit", verdict.FitLimit(a))
	p.text("law", a.Law)
	p.set("proven_share", a.ProvenShare)
	p.set("largest_error", a.Error)
	var calls []call
	if in.Capacity == "" && len(to) == 0 {
		calls = append(calls, call{"fit", map[string]any{"files": in.Files, "at": in.At, "capacity": "80GiB"},
			"the largest value that fits on a GPU of this size"})
	}
	largest := runs[len(runs)-1]
	calls = append(calls, largest.to("state", "what the memory of a recording is for", "at", "peak", "by", "category"))
	p.lead(calls...)
	p.list("predictions", len(a.Predictions), 70, func(i int) any {
		x := &a.Predictions[i]
		values := map[string]int64{}
		for k, name := range a.Names {
			values[clip(name, shortText)] = x.Values[k]
		}
		out := map[string]any{"at": values, "peak_reserved": sized(x.ReservedPeak), "peak_reserved_low": x.ReservedLow,
			"peak_reserved_high": x.ReservedHigh, "peak_allocated": sized(x.AllocatedPeak),
			"peak_is": clip(verdict.FitPlace(&x.Peak), shortText)}
		if x.Fits != nil {
			out["fits"], out["sure"] = *x.Fits, x.Sure
		}
		return out
	})
	p.list("settings", len(a.Tried), 50, func(i int) any { return clean(a.Tried[i]) })
	p.texts("proof", verdict.FitProof(a), 60)
	p.texts("notes", a.Notes, 60)
	p.list("unproven", len(a.Unproven), 100, func(i int) any { return clip(verdict.FitUnproven(&a.Unproven[i]), longText) })
	return nil
}

// confOf reads the settings of predicted runs.
func confOf(ctx context.Context, r *run, conf string, sized bool) ([]whatif.Setting, error) {
	d, err := r.device(nil)
	if err != nil {
		return nil, err
	}
	return settings(whatif.NewProgram(r.snap, d.Timeline), []string{conf}, sized)
}
