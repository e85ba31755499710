package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/failure"
)

type diffArgs struct {
	A       string `json:"a" jsonschema:"path of the snapshot before"`
	B       string `json:"b" jsonschema:"path of the snapshot after; may be the same with two moments"`
	AtA     string `json:"at_a,omitempty" jsonschema:"moment of a: peak (default), end, oom, an event, step:3"`
	AtB     string `json:"at_b,omitempty" jsonschema:"moment of b, as at_a"`
	By      string `json:"by,omitempty" jsonschema:"group by: site (default), stack, module, category, category-site"`
	DeviceA *int   `json:"device_a,omitempty" jsonschema:"number of the GPU of a (default: the one that reserved most)"`
	DeviceB *int   `json:"device_b,omitempty" jsonschema:"number of the GPU of b"`
	bound
}

func (s *server) diff(ctx context.Context, in diffArgs, p *page) error {
	by := attribution.BySite
	if in.By != "" {
		by = attribution.Kind(in.By)
	}
	if err := oneOf("by", string(by), diff.Kinds()); err != nil {
		return err
	}
	if in.A == in.B && in.AtA == in.AtB && in.DeviceA == nil && in.DeviceB == nil {
		return failure.Mark(failure.Usage, errors.New("a and b are the same: give two files, or two moments or GPUs of one"))
	}
	runs, key, stamp, err := s.all(ctx, []string{in.A, in.B})
	if err != nil {
		return err
	}
	var q [2]footprint.Subject
	var at [2]string
	for i, r := range runs {
		d, err := r.device([]*int{in.DeviceA, in.DeviceB}[i])
		if err != nil {
			return err
		}
		if at[i] = []string{in.AtA, in.AtB}[i]; at[i] == "" {
			at[i] = footprint.Usual(d.Timeline.HasHistory())
		}
		q[i] = footprint.Subject{Name: r.snap.Name, Snapshot: r.snap, Timeline: d.Timeline, Uses: d.Categories, Steps: &d.Steps}
		key += fmt.Sprintf(" %d %q", d.Timeline.Device, at[i])
	}
	v, err := s.shelf.get(ctx, "diff "+key, stamp, func(context.Context) (any, error) {
		var sides [2]*footprint.Footprint
		for i := range q {
			var err error
			if sides[i], err = footprint.Take(&q[i], at[i]); err != nil {
				return nil, fmt.Errorf("invalid moment %q; %w", clip(at[i], shortText), err)
			}
		}
		return diff.Compare(sides[0], sides[1]), nil
	})
	if err != nil {
		return err
	}
	r := v.(*diff.Result)
	p.text("verdict", verdict.Difference(r))
	p.set("delta", signed(r.Delta()))
	for i, f := range []*footprint.Footprint{r.A, r.B} {
		p.set([]string{"a", "b"}[i], map[string]any{"file": clip(runs[i].name, shortText), "at": clip(f.When, shortText),
			"device": f.Device, "active": sized(f.Totals.Active), "peak_reserved": known(f.Peaks.PeakReserved.Bytes),
			"peak_active": known(f.Peaks.PeakActive.Bytes)})
	}
	calls := []call{{"report", runs[1].arguments(), "the verdict on b alone"}}
	if by != attribution.ByCategory {
		again := map[string]any{"a": in.A, "b": in.B, "by": string(attribution.ByCategory)}
		for name, value := range map[string]string{"at_a": in.AtA, "at_b": in.AtB} {
			if value != "" {
				again[name] = value
			}
		}
		calls = append(calls, call{"diff", again, "the same by what memory is for"})
	}
	p.lead(calls...)
	p.list("causes", len(r.Causes), 60, func(i int) any {
		c := &r.Causes[i]
		out := map[string]any{"kind": c.Kind, "bytes": signed(c.Bytes), "text": clip(verdict.CauseOf(c), longText)}
		if len(c.Sites) > 0 {
			out["site"] = clip(c.Sites[0].Site, shortText)
		}
		return out
	})
	p.list("guards", len(r.Guards), 40, func(i int) any { return clip(verdict.GuardOf(&r.Guards[i]), longText) })
	rows := slices.DeleteFunc(r.Table(by), func(row diff.Row) bool { return row.Delta == 0 })
	p.list("groups", len(rows), 100, func(i int) any {
		row := &rows[i]
		return map[string]any{"name": clip(row.Name, shortText), "a": row.A, "b": row.B, "delta": signed(row.Delta),
			"state": row.State}
	})
	return nil
}

// signed is a difference in bytes.
func signed(n int64) size {
	s := sized(max(n, -n))
	if s.Bytes = n; n < 0 {
		s.Human = "-" + s.Human
	}
	return s
}
