package attach

import (
	"context"
	_ "embed"
	"errors"
	"time"
)

// script is what the interpreter runs.
//
//go:embed script.py
var script string

// A door is a way into a process.
type door interface {
	// knock lets the process know that there is a request in a folder.
	knock(f *folder) error
	// heard reports whether the process has taken notice.
	heard() bool
	// leave takes back what the process has not taken notice of.
	leave() error
}

// Requests.
const (
	dump  = "dump"
	begin = "begin"
	end   = "end"
)

// interval is the time between looks at what the other process has done.
const interval = 10 * time.Millisecond

// grace is how long a process that has heard of a request may take to begin with it.
const grace = 10 * time.Second

// session is a recording that is going on.
type session struct {
	o      Options
	p      *process
	door   door
	folder *folder
}

// do has the process do what it is asked for, and waits for the answer.
func (s *session) do(ctx context.Context, request string) (*reply, error) {
	if err := s.folder.ask(request, toMain, s.o); err != nil {
		return nil, err
	}
	if err := s.door.knock(s.folder); err != nil {
		s.folder.withdraw(request)
		return nil, err
	}
	var heard time.Time
	taken, err := s.wait(ctx, s.o.Patience, func() bool {
		if heard.IsZero() && s.door.heard() {
			heard = time.Now()
		}
		return !s.folder.pending(request) || !heard.IsZero() && time.Since(heard) > grace
	})
	if err != nil || !taken || s.folder.pending(request) {
		if e := s.door.leave(); err == nil {
			err = e
		}
		if s.folder.withdraw(request) {
			switch {
			case err != nil:
				return nil, err
			case !heard.IsZero() && s.listens():
				return nil, &Error{Kind: Unanswered, what: "its recorder heard of the request and did not begin"}
			case !heard.IsZero():
				return nil, &Error{Kind: Refused, what: "its interpreter took the request and did not run the script: an " +
					"audit hook of the program forbids it, or it cannot read " + s.folder.inner}
			}
			return nil, &Error{Kind: Unanswered, what: "it ran no Python code for " + s.o.Patience.String()}
		}
	}
	return s.answer(ctx, request)
}

// listens reports whether the program's own recorder is asked.
func (s *session) listens() bool {
	_, ok := s.door.(*listener)
	return ok
}

// answer waits for an answer, however long that takes.
func (s *session) answer(ctx context.Context, request string) (*reply, error) {
	var r *reply
	var bad error
	_, err := s.wait(context.WithoutCancel(ctx), 0, func() bool {
		r, bad = s.folder.reply(request)
		return r != nil || bad != nil
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, err
	}
	return r, r.err()
}

// wait looks again and again until done says so, for as long as limit allows; 0 is no limit.
func (s *session) wait(ctx context.Context, limit time.Duration, done func() bool) (bool, error) {
	until := time.Now().Add(limit)
	pause := interval
	for {
		alive := s.p.alive()
		switch {
		case done():
			return true, nil
		case !alive:
			return false, &Error{Kind: Ended, what: "it ended before the recording was complete"}
		case ctx.Err() != nil:
			return false, ctx.Err()
		case limit > 0 && time.Now().After(until):
			return false, nil
		}
		time.Sleep(pause)
		pause = min(pause*5/4, 10*interval)
	}
}

// run records.
func (s *session) run(ctx context.Context) (*reply, time.Duration, error) {
	if s.o.Record == 0 {
		r, err := s.do(ctx, dump)
		return r, 0, err
	}
	if r, err := s.do(ctx, begin); err != nil {
		return r, 0, err
	}
	// From here on ctx ends the recording, not the work.
	started := time.Now()
	tick := time.NewTicker(10 * interval)
	defer tick.Stop()
	for time.Since(started) < s.o.Record && ctx.Err() == nil {
		if s.o.Progress != nil {
			s.o.Progress(time.Since(started))
		}
		r, err := s.folder.reply(end) // the program is at its end
		if r != nil {
			return r, time.Since(started), r.err()
		}
		if err != nil {
			return nil, 0, err
		}
		if !s.p.alive() {
			return nil, 0, &Error{Kind: Ended, what: "it ended before the recording was complete"}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	elapsed := time.Since(started)
	r, err := s.do(context.WithoutCancel(ctx), end)
	var e *Error
	if errors.As(err, &e) && (e.Kind == Unanswered || e.Kind == Refused) && s.folder.ask(end, toAny, s.o) == nil {
		r, err = s.answer(ctx, end) // of the recorder's own thread
	}
	if errors.As(err, &e) && e.Kind == Ended { // its last words may have come between two looks
		if last, _ := s.folder.reply(end); last != nil {
			r, err = last, last.err()
		}
	}
	return r, elapsed, err
}
