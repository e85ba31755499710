package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
	"github.com/snapana/snapana/snapshot/input"
)

// DefaultCache is what all results that are kept may take together.
const DefaultCache = 1 << 30

// patience is how long work that was stopped may go on before others no longer wait for it.
const patience = 5 * time.Second

// shelf keeps results for the calls that come next. One call works at a time: what it takes is then known, and others
// wait for it no longer than for an honest file. Calls that want the same wait for the same work, which is stopped when
// none waits any more.
type shelf struct {
	ctx   context.Context // of the server
	most  int64
	guard Guard
	busy  chan struct{} // has the place of who works

	mu   sync.Mutex
	kept []*result // the one that was asked for last comes last
}

// result is one that is kept or in the making.
type result struct {
	key, stamp string
	done       chan struct{}
	stop       context.CancelCauseFunc
	waiting    int
	value      any
	err        error
	bytes      int64
}

// Guard ends work that takes more than is promised for the input that the meter counts: it calls refuse. stop ends the
// watch.
type Guard func(m *budget.Meter, refuse func(error)) (stop func())

// get gives the result of do for a key, once for all that ask with the same stamp.
func (s *shelf) get(ctx context.Context, key, stamp string, do func(context.Context) (any, error)) (any, error) {
	s.mu.Lock()
	r := s.lookup(key, stamp)
	if r == nil {
		work, stop := context.WithCancelCause(s.ctx)
		r = &result{key: key, stamp: stamp, done: make(chan struct{}), stop: stop}
		s.kept = append(s.kept, r)
		go s.work(work, r, do)
	}
	r.waiting++
	s.mu.Unlock()
	var err error
	select {
	case <-r.done:
		err = r.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.waiting--; r.waiting == 0 {
		select {
		case <-r.done:
		default:
			r.stop(context.Canceled)
			s.drop(r)
		}
	}
	s.trim()
	return r.value, err
}

// lookup finds a result, and forgets one of the same file before it changed.
func (s *shelf) lookup(key, stamp string) *result {
	for i, r := range s.kept {
		if r.key != key {
			continue
		}
		s.kept = slices.Delete(s.kept, i, i+1)
		if r.stamp != stamp {
			return nil
		}
		s.kept = append(s.kept, r)
		return r
	}
	return nil
}

func (s *shelf) drop(r *result) {
	if i := slices.Index(s.kept, r); i >= 0 {
		s.kept = slices.Delete(s.kept, i, i+1)
	}
}

// trim forgets the results that were asked for longest ago until the rest is within the bound. Who has one keeps it.
func (s *shelf) trim() {
	total := int64(0)
	for _, r := range s.kept {
		total += r.bytes
	}
	for i := 0; i < len(s.kept) && total > s.most; {
		if r := s.kept[i]; r.waiting == 0 && r.bytes > 0 {
			total -= r.bytes
			s.kept = slices.Delete(s.kept, i, i+1)
			continue
		}
		i++
	}
}

// work makes a result.
func (s *shelf) work(ctx context.Context, r *result, do func(context.Context) (any, error)) {
	value, took, err := s.alone(ctx, do)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.value, r.err, r.bytes = value, err, max(took, 1); err != nil {
		s.drop(r)
	}
	close(r.done)
	s.trim()
}

// alone runs work that nobody else runs beside, watched, and measures what of it stays in memory. Nothing that it does
// ends the server.
func (s *shelf) alone(ctx context.Context, do func(context.Context) (any, error)) (
	value any, took int64, err error) {
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
	leave := sync.OnceFunc(func() { <-s.busy })
	defer leave()
	meter := new(budget.Meter)
	ctx, refuse := context.WithCancelCause(budget.With(input.With(ctx), meter))
	defer refuse(nil)
	if s.guard != nil {
		stop := s.guard(meter, refuse)
		defer stop()
	}
	type outcome struct {
		value any
		err   error
	}
	before, done := live(), make(chan outcome, 1)
	go func() {
		var out outcome
		defer func() {
			if fault := recover(); fault != nil {
				out = outcome{nil, failure.Mark(failure.Failed, fmt.Errorf("the analysis broke off: %.200v", fault))}
			}
			done <- out
		}()
		out.value, out.err = do(ctx)
	}()
	var out outcome
	select {
	case out = <-done:
	case <-ctx.Done():
		select {
		case out = <-done:
		case <-time.After(patience):
			return nil, 0, reason(ctx, context.Cause(ctx))
		}
	}
	if out.err != nil {
		return nil, 0, reason(ctx, out.err)
	}
	return out.value, live() - before, nil
}

// reason is why work ended with an error: what stopped it, where that did.
func reason(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(err, context.Canceled) && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// live is what is in memory and in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Refused is the error for work that took more than what says it may.
func Refused(what string) error {
	return fmt.Errorf("refused: %s: %w", what, snapshot.ErrLimit)
}
