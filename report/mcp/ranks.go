package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/text"
)

type ranksArgs struct {
	Files     []string `json:"files" jsonschema:"snapshots or digests of a run, or folders of them"`
	Mesh      string   `json:"mesh,omitempty" jsonschema:"how the ranks are laid out, like dp=8,tp=8,pp=4; the last is counted fastest"`
	WorldSize int      `json:"world_size,omitempty" jsonschema:"how many ranks there should be"`
	bound
}

func (s *server) ranks(ctx context.Context, in ranksArgs, p *page) error {
	q := ranks.Question{Expected: in.WorldSize}
	var err error
	switch {
	case in.WorldSize < 0 || in.WorldSize > 1e7:
		err = fmt.Errorf("invalid world_size %d", in.WorldSize)
	case in.Mesh != "" && in.WorldSize > 0:
		err = errors.New("world_size cannot be used with mesh, which says how many ranks there are")
	case in.Mesh != "":
		q.Mesh, err = ranks.ParseMesh(in.Mesh)
	}
	if err != nil {
		return failure.Mark(failure.Usage, err)
	}
	names, stamp, places := []string{}, "", map[string]place{}
	for _, name := range in.Files {
		at, err := s.roots.find(ctx, name)
		if err != nil {
			return err
		}
		list := []string{at.name}
		if at.info.IsDir() {
			if list, err = s.listed(ctx, &at); err != nil {
				return err
			}
		}
		for _, name := range list {
			if recorded(name) {
				continue
			}
			at, err := s.roots.find(ctx, name)
			if err != nil {
				continue // gone, or a link that leads elsewhere
			}
			mark, err := at.stamp(ctx)
			if err != nil {
				return err
			}
			names, stamp, places[name] = append(names, name), stamp+" "+mark, at
		}
	}
	if len(names) == 0 {
		return failure.Mark(failure.NoData, errors.New("there are no snapshots and no digests in files"))
	}
	key := fmt.Sprintf("ranks %q %q %d", names, in.Mesh, in.WorldSize)
	v, err := s.shelf.get(ctx, key, stamp, func(ctx context.Context) (any, error) {
		return ranks.Read(ctx, names, func(name string) (ranks.Rank, error) {
			at := places[name]
			return s.rank(ctx, &at)
		}, q)
	})
	if err != nil {
		return err
	}
	c := v.(*ranks.Comparison)
	said := text.RanksSaid(c)
	p.text("verdict", cmp.Or(said.Verdict, said.Counts))
	p.text("counts", said.Counts)
	if c.First != nil {
		k := &c.Ranks[c.First.Row]
		p.set("first_failure", map[string]any{"rank": k.Number, "file": clip(k.File, shortText), "certain": c.First.Certain,
			"requested": sized(k.Failure.Requested), "site": clip(k.Failure.Site, shortText)})
	}
	var calls []call
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Fault == "" && (len(calls) == 0 || k.Stands) && len(calls) < 3 {
			calls = append(calls, call{"report", map[string]any{"file": k.File}, "the verdict on this rank alone"})
		}
	}
	if len(calls) == 0 {
		at := places[names[0]]
		calls = append(calls, at.beside())
	}
	p.lead(calls...)
	p.texts("differences", said.Differences, 50)
	p.list("missing", len(c.Missing), 20, func(i int) any { return c.Missing[i] })
	p.list("ranks", len(c.Ranks), 100, func(i int) any {
		k := &c.Ranks[i]
		if k.Fault != "" {
			out := map[string]any{"file": clip(k.File, shortText), "fault": clip(k.Fault, shortText)}
			if k.Number >= 0 {
				out["rank"] = k.Number
			}
			if k.Err != nil {
				out["code"] = failure.KindOf(k.Err).Code
			}
			return out
		}
		out := struct {
			Rank     int            `json:"rank"`
			File     string         `json:"file"`
			Status   finding.Status `json:"status"`
			Reserved *size          `json:"peak_reserved,omitempty"`
			Active   *size          `json:"peak_active,omitempty"`
			Stands   bool           `json:"stands_out,omitempty"`
		}{k.Number, clip(k.File, shortText), k.Status, known(k.Reserved), known(k.Active), k.Stands}
		return out
	})
	return nil
}

// rank reads a snapshot or a digest of one.
func (s *server) rank(ctx context.Context, at *place) (ranks.Rank, error) {
	if strings.HasSuffix(at.name, digest.Ending) {
		f, err := at.open(ctx)
		if err != nil {
			return ranks.Rank{}, err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, digest.MaxBytes+1))
		if err != nil {
			return ranks.Rank{}, err
		}
		d, err := digest.Decode(data)
		if err != nil {
			return ranks.Rank{}, err
		}
		return ranks.Of(at.name, d), nil
	}
	f, err := open(ctx, &file{place: *at}, s.roots.beside(ctx, at))
	if err != nil {
		return ranks.Rank{}, err
	}
	r, err := analyze.Run(ctx, f.snap, analyze.Options{NoReplay: true, Recorder: f.rec, Unread: f.unread})
	if err != nil {
		return ranks.Rank{}, err
	}
	return ranks.Of(at.name, digest.Of(digest.Source{Path: at.path}, r, f.rec)), nil
}
