package main

import (
	"testing"
	"time"
)

// TestWaiting holds that the look at what a process takes is no work of its input, however long a pipe is slow.
func TestWaiting(t *testing.T) {
	var b busy
	var got, cpu time.Duration
	now := time.Unix(0, 0)
	for _, c := range []struct{ lasts, takes, want time.Duration }{ // takes in each look of 5 ms
		{time.Second, 5 * time.Millisecond, time.Second},
		{10 * time.Minute, 250 * time.Microsecond, time.Second},
		{time.Second, 10 * time.Millisecond, 3 * time.Second}, // two processors
		{time.Second, time.Millisecond, 3200 * time.Millisecond},
	} {
		for end := now.Add(c.lasts); now.Before(end); {
			now, cpu = now.Add(often), cpu+c.takes
			got = b.add(cpu, now)
		}
		if got != c.want {
			t.Errorf("after %v at %v: %v, want %v", c.lasts, c.takes, got, c.want)
		}
	}
}
