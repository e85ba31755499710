package whatif

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/stage"
)

// Setting is a settings string with what it means.
type Setting struct {
	Text string // as in PYTORCH_CUDA_ALLOC_CONF
	allocator.Reading
}

// usual are the settings that are tried when nobody asks for others: each is a remedy that
// torch's documentation or its users recommend.
var usual = []string{
	"",
	"expandable_segments:True",
	"max_split_size_mb:32",
	"max_split_size_mb:128",
	"max_split_size_mb:512",
	"roundup_power2_divisions:4",
	"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
	"max_split_size_mb:128,roundup_power2_divisions:8",
	"expandable_segments:True,roundup_power2_divisions:4",
}

// grid are further settings for a search.
var grid = []string{
	"max_split_size_mb:21",
	"max_split_size_mb:64",
	"max_split_size_mb:256",
	"max_split_size_mb:1024",
	"max_split_size_mb:64,max_non_split_rounding_mb:64",
	"max_split_size_mb:256,max_non_split_rounding_mb:256",
	"roundup_power2_divisions:1",
	"roundup_power2_divisions:2",
	"roundup_power2_divisions:8",
	"roundup_power2_divisions:16",
	"roundup_power2_divisions:[64:16,>:4]",
	"max_split_size_mb:64,roundup_power2_divisions:8",
	"max_split_size_mb:256,roundup_power2_divisions:4",
	"max_split_size_mb:256,roundup_power2_divisions:16",
	"large_segment_size_mb:12",
	"large_segment_size_mb:40",
	"large_segment_size_mb:64",
	"expandable_segments:True,large_segment_size_mb:12",
	"expandable_segments:True,large_segment_size_mb:64",
	"expandable_segments:True,roundup_power2_divisions:8",
	"expandable_segments:True,roundup_power2_divisions:16",
}

// Settings lists what to try by default: the recorded settings first, then the usual ones, and
// with all those of a wider grid too. None means the same as another.
func (p *Program) Settings(all bool) []Setting {
	out := []Setting{p.asRecorded()}
	texts := usual
	if all {
		texts = append(texts[:len(texts):len(texts)], grid...)
	}
	for _, text := range texts {
		s, err := p.Setting(text)
		if err != nil || s.Unknown != nil || !p.Platform.Reads(text) {
			continue // the release, or the kind of device, does not know it
		}
		if !known(out, &s) {
			out = append(out, s)
		}
	}
	return out
}

// known reports whether a setting means the same as one of a list.
func known(list []Setting, s *Setting) bool {
	return slices.ContainsFunc(list, func(o Setting) bool { return same(&o.Conf, &s.Conf) })
}

// same reports whether two settings do the same.
func same(a, b *allocator.Conf) bool {
	x, y := *a, *b
	x.Needs, y.Needs = 0, 0
	for i := range x.Roundup {
		x.Roundup[i], y.Roundup[i] = max(x.Roundup[i], 1), max(y.Roundup[i], 1)
	}
	return x == y
}

// Setting reads a settings string as the release does that wrote the file.
func (p *Program) Setting(text string) (Setting, error) {
	read, err := p.Recorded.Release.Read(text)
	read.Conf.Padding = p.Recorded.Conf.Padding
	return Setting{text, read}, err
}

func (p *Program) asRecorded() Setting {
	s, err := p.Setting(p.Recorded.Text)
	if err != nil || !same(&s.Conf, &p.Recorded.Conf) {
		s = Setting{Text: p.Recorded.Conf.String()} // the values say something else than the string
	}
	s.Conf = p.Recorded.Conf
	return s
}

// Sweep replays a program under many settings, on as many cores as there are. The outcomes are
// in the order of the settings; o.Conf is not used.
func (p *Program) Sweep(ctx context.Context, settings []Setting, o Options) ([]*Outcome, error) {
	outs := make([]*Outcome, len(settings))
	return outs, p.share(ctx, stage.Replaying, settings, func(i int) (int64, error) {
		o, err := o, error(nil)
		o.Conf = settings[i].Conf
		if outs[i], err = p.Run(ctx, o); err != nil {
			return 0, err
		}
		return outs[i].largest, nil
	}, func(from, to int) {
		out := *outs[from]
		if !out.StartFailed { // else there are no figures
			out.Stats.MaxSplitSize = settings[to].Conf.MaxSplit
		}
		outs[to] = &out
	})
}

// share runs settings of which none is known to do to this program what another does, and copies the results to the
// others. To run gives the largest block of its replays, 0 or more: what max_split_size would do to larger ones is
// nothing. Who watches is told how many settings are done.
func (p *Program) share(ctx context.Context, what stage.Stage, settings []Setting,
	run func(i int) (largest int64, err error), copy func(from, to int)) error {
	var done atomic.Int32
	stage.At(ctx, what, 0, len(settings))
	next := func() { stage.At(ctx, what, int(done.Add(1)), len(settings)) }
	limit := func(i int) uint64 { return uint64(settings[i].Conf.MaxSplit) } // -1 is above all others
	groups := [][]int{}                                                      // alike but for max_split_size, the highest first
	for i := range settings {
		at := slices.IndexFunc(groups, func(g []int) bool { return p.alike(settings[g[0]].Conf, settings[i].Conf) })
		if at < 0 {
			groups = append(groups, []int{i})
			continue
		}
		g := append(groups[at], i)
		if limit(i) > limit(g[0]) {
			g[0], g[len(g)-1] = i, g[0]
		}
		groups[at] = g
	}
	largest := make([]int64, len(groups))
	if err := each(len(groups), func(k int) (err error) {
		largest[k], err = run(groups[k][0])
		next()
		return err
	}); err != nil {
		return err
	}
	var rest []int
	for k, g := range groups {
		first := &settings[g[0]].Conf
		for _, i := range g[1:] {
			c := &settings[i].Conf
			if limit(i) > uint64(largest[k]) ||
				c.MaxSplit == first.MaxSplit && c.MaxNonSplitRounding == first.MaxNonSplitRounding {
				copy(g[0], i)
				next()
			} else {
				rest = append(rest, i)
			}
		}
	}
	return each(len(rest), func(k int) error {
		_, err := run(rest[k])
		next()
		return err
	})
}

// alike reports whether two settings do the same to this program as long as no block is as large as max_split_size.
func (p *Program) alike(a, b allocator.Conf) bool {
	x, y := a, b
	x.Needs, y.Needs, x.MaxSplit, y.MaxSplit = 0, 0, 0, 0
	x.MaxNonSplitRounding, y.MaxNonSplitRounding = 0, 0
	x.Roundup, x.Exact, x.Padding = y.Roundup, y.Exact, y.Padding // how sizes are rounded is compared below
	if x != y {
		return false
	}
	for i := range p.start {
		for k := range p.start[i].Pieces {
			if n := p.start[i].Pieces[k].Requested; a.Round(n) != b.Round(n) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(p.asks, func(k ask) bool { return a.Round(k.bytes) != b.Round(k.bytes) })
}

// each calls f with the numbers below n, some at a time, and gives the first error by number.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	return cmp.Or(errs...)
}
