package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/text"
)

const (
	// silence is how long a command may take before it says what it is at.
	silence = 500 * time.Millisecond
	// again is how often it says so: often enough to be seen to go on, and little over a slow line.
	again = 100 * time.Millisecond
)

// meter shows on a terminal what a command is at, if that takes a while: in one line, which is drawn over itself, and gone
// before anything else is printed. Elsewhere it shows nothing, so that logs have none of it.
type meter struct {
	w       io.Writer // nil where nobody watches
	columns int

	mu    sync.Mutex
	stop  chan struct{} // ends the drawing; nil while nothing is shown
	drawn string        // what the terminal shows
	task
}

// task is what a command is at: of a total in bytes or parts so much is done, or nothing that could be counted.
type task struct {
	what        string
	began       time.Time
	done, total int64
	bytes       bool
}

func newMeter(stderr io.Writer) *meter {
	m := new(meter)
	if isTerminal(stderr) {
		m.w = stderr
		if m.columns = columns(stderr); m.columns == 0 {
			m.columns = 80
		}
	}
	return m
}

type meterKey struct{}

// shown gives a context whose work the meter shows.
func (m *meter) shown(ctx context.Context) context.Context {
	words := map[stage.Stage]string{stage.Rebuilding: "rebuilding memory over time", stage.Analyzing: "analyzing",
		stage.Replaying: "replaying under other settings", stage.Searching: "searching for the smallest device",
		stage.Trying: "trying changes of the program"}
	ctx = context.WithValue(ctx, meterKey{}, m)
	return stage.With(ctx, func(s stage.Stage, done, total int) {
		m.at(task{what: words[s], done: int64(done), total: int64(total)})
	})
}

// meterOf is the meter of a command.
func meterOf(ctx context.Context) *meter {
	if m, ok := ctx.Value(meterKey{}).(*meter); ok {
		return m
	}
	return new(meter)
}

// reading shows how far a file was read.
func (m *meter) reading(name string) func(done, total int64) {
	return func(done, total int64) {
		m.at(task{what: "reading " + failure.Line(name), done: done, total: total, bytes: true})
	}
}

// doing shows a part of the work that has nothing to count.
func (m *meter) doing(what string) { m.at(task{what: what}) }

// at says what the command is at from now on.
func (m *meter) at(t task) {
	if m.w == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.began = m.began; t.what != m.what {
		t.began = time.Now()
	}
	m.task = t
	if m.stop == nil {
		m.stop = make(chan struct{})
		go m.run(m.stop)
	}
}

// run draws until it is stopped, after a while.
func (m *meter) run(stop chan struct{}) {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-timer.C:
			m.draw(stop, now)
			timer.Reset(again)
		}
	}
}

// draw shows the line, unless it was stopped meanwhile.
func (m *meter) draw(stop chan struct{}, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != stop {
		return
	}
	if line := m.line(now, m.columns-1); line != m.drawn {
		io.WriteString(m.w, "\r"+line+"\x1b[K")
		m.drawn = line
	}
}

// line is what is shown, in at most so many columns.
func (t *task) line(now time.Time, columns int) string {
	end := ""
	switch {
	case t.bytes && t.total > 0:
		const bar = 20
		full := int(bar * min(t.done, t.total) / t.total)
		end = fmt.Sprintf("  %s%s %3d%%", strings.Repeat("#", full), strings.Repeat(".", bar-full),
			100*min(t.done, t.total)/t.total)
	case t.bytes:
		end = "  " + units.Bytes(t.done)
	case t.total > 0:
		end = fmt.Sprintf("  %d/%d", t.done, t.total)
	default:
		if s := int(now.Sub(t.began).Seconds()); s > 0 {
			end = fmt.Sprintf("  %d s", s)
		}
	}
	return text.ClipLeft(t.what, columns-len(end)) + end
}

// close takes the line off the terminal. What is begun afterwards is shown again, if it takes long.
func (m *meter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil {
		close(m.stop)
		m.stop = nil
	}
	if m.drawn != "" {
		io.WriteString(m.w, "\r\x1b[K")
		m.drawn = ""
	}
}
