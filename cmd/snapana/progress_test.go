package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/snapana/snapana/analyze/stage"
)

// TestMeter holds what a terminal gets: one line, drawn over itself, and nothing of it left before anything else comes.
func TestMeter(t *testing.T) {
	var terminal bytes.Buffer
	m := &meter{w: &terminal, columns: 50}
	ctx := m.shown(t.Context())
	now := time.Now()
	// drawn is what the terminal gets so long after the stage began.
	drawn := func(after time.Duration) string {
		terminal.Reset()
		m.draw(m.stop, now.Add(after))
		m.draw(m.stop, now.Add(after)) // the same is not drawn again
		return terminal.String()
	}
	began := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.began = now
	}
	m.stop = make(chan struct{}) // draws by itself no more
	meterOf(ctx).reading("run.pickle")(1<<20, 4<<20)
	if got := drawn(0); got != "\rreading run.pickle  #####...............  25%\x1b[K" {
		t.Errorf("reading: %q", got)
	}
	m.reading(strings.Repeat("long/", 20)+"a\x1b[2Jb.pickle")(5<<20, 4<<20)
	if got := drawn(0); got != "\r…ng/long/a [2Jb.pickle  #################### 100%\x1b[K" {
		t.Errorf("a long name: %q", got)
	}
	m.reading("stdin")(3<<20, 0)
	if got := drawn(0); got != "\rreading stdin  3.00 MiB\x1b[K" {
		t.Errorf("standard input: %q", got)
	}
	stage.At(ctx, stage.Rebuilding, 0, 0)
	began()
	if got := drawn(2 * time.Second); got != "\rrebuilding memory over time  2 s\x1b[K" {
		t.Errorf("what is not counted: %q", got)
	}
	stage.At(ctx, stage.Replaying, 3, 9)
	if got := drawn(0); got != "\rreplaying under other settings  3/9\x1b[K" {
		t.Errorf("replaying: %q", got)
	}
	stop := m.stop
	terminal.Reset()
	out := &results{Writer: &terminal, meter: m}
	out.Write([]byte("verdict\n"))
	m.draw(stop, now)
	m.close()
	if got := terminal.String(); got != "\r\x1b[Kverdict\n" {
		t.Errorf("before a result: %q", got)
	}
}

// TestNoMeter holds that nobody who is no terminal gets any of it.
func TestNoMeter(t *testing.T) {
	var stderr bytes.Buffer
	m := newMeter(&stderr)
	stage.At(m.shown(t.Context()), stage.Analyzing, 0, 0)
	m.reading("x")(1, 2)
	if m.stop != nil {
		t.Error("something would be drawn")
	}
	m.close()
	meterOf(t.Context()).doing("nothing")
	if stderr.Len() > 0 {
		t.Errorf("%q", &stderr)
	}
}
