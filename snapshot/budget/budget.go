// Package budget says what the work on one input may cost, and is where all of it is counted.
//
// Input is hostile: a few bytes can ask for a lot of work, by sharing what is long or by making each step look at all
// that came before. The promise is one for all commands: an input of N unpacked bytes is answered or refused within
// Memory(N) bytes of resident memory and Time(N) of a processor. Stages whose work can grow faster than their input
// draw Steps from a share of the time and leave out what they cannot afford, which they say; equal inputs leave out
// the same. What still goes over is refused by who runs the whole: a Meter tells what was read, and so the bounds.
package budget

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// The promise.
const (
	BaseMemory    = 256 << 20
	MemoryPerByte = 4
	BaseTime      = 2 * time.Second
	TimePerByte   = 100 * time.Nanosecond // a second for 10 MB
)

// Memory is how many bytes may be resident for an input of n unpacked bytes.
func Memory(n int64) int64 { return BaseMemory + MemoryPerByte*n }

// Time is how long one processor may work on an input of n unpacked bytes.
func Time(n int64) time.Duration { return BaseTime + TimePerByte*time.Duration(n) }

// Steps are what one stage may do, each about as long as it takes to look at a few records. Nil has no end.
type Steps struct{ left int64 }

// StepTime is what one step takes on a machine that is not fast.
const StepTime = 100 * time.Nanosecond

// Share gives so many percent of the time for an input of n unpacked bytes.
func Share(n int64, percent int) *Steps {
	return &Steps{int64(Time(n)/StepTime) / 100 * int64(percent)}
}

// Part divides steps as done to all, for one of several devices.
func (s *Steps) Part(done, all int64) *Steps {
	if s == nil || all <= 0 {
		return s
	}
	return &Steps{int64(float64(s.left) * float64(done) / float64(all))}
}

// Draw takes n steps, false where that are more than are left.
func (s *Steps) Draw(n int) bool {
	if s == nil {
		return true
	}
	s.left -= int64(n)
	return s.left >= 0
}

// Meter counts what was read of all inputs of one command. It may be used from several goroutines; nil counts nothing.
type Meter struct {
	bytes, least atomic.Int64
	finished     atomic.Bool
}

// Read adds n unpacked bytes.
func (m *Meter) Read(n int) {
	if m != nil {
		m.bytes.Add(int64(n))
	}
}

// Reader is r with what is read of it counted.
func (m *Meter) Reader(r io.Reader) io.Reader { return &counted{r, m} }

type counted struct {
	r io.Reader
	m *Meter
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.m.Read(n)
	return n, err
}

// most is the longest input for which bounds are computed.
const most = 1 << 50

// Allow makes the bounds at least those of an input of n bytes.
func (m *Meter) Allow(n int64) {
	if m == nil {
		return
	}
	n = min(n, most)
	for old := m.least.Load(); n > old && !m.least.CompareAndSwap(old, n); old = m.least.Load() {
	}
}

// Bytes is how many unpacked bytes were read so far, or more where more were allowed.
func (m *Meter) Bytes() int64 {
	if m == nil {
		return 0
	}
	return max(m.bytes.Load(), m.least.Load())
}

// Finish says that the work on the input is over, and what follows goes on for as long as its user likes.
func (m *Meter) Finish() {
	if m != nil {
		m.finished.Store(true)
	}
}

// Finished reports whether Finish was called.
func (m *Meter) Finished() bool { return m != nil && m.finished.Load() }

type key struct{}

// With gives a context in which inputs are counted by m.
func With(ctx context.Context, m *Meter) context.Context { return context.WithValue(ctx, key{}, m) }

// From is the meter of a context, nil for none.
func From(ctx context.Context) *Meter {
	m, _ := ctx.Value(key{}).(*Meter)
	return m
}
