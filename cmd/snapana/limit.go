package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot/budget"
)

// often is how long a command may be over its bounds unseen: at a gigabyte a second, 5 MB.
const often = 5 * time.Millisecond

const (
	// notHeap is what a process has in memory beside what the collector counts: its code, and libraries.
	notHeap = 64 << 20
	// ahead is how much memory may come between two looks, and a sixteenth: tables grow by copying.
	ahead = 24 << 20
	// inTime is how much time a process may take between two looks, and to end.
	inTime = 50 * time.Millisecond
)

// watch ends the process when it takes more memory or time than package budget promises for the input that m counted.
// The stages of the analysis keep within it by themselves; this is for what they overlook. The collector is told the
// bound, so that garbage does not reach it.
func watch(m *budget.Meter, out *results, stderr io.Writer) {
	u := openUsage()
	known := int64(-1)
	var work busy
	for range time.Tick(often) {
		n := m.Bytes()
		if m.Finished() {
			return
		}
		if n != known {
			debug.SetMemoryLimit((budget.Memory(n)-ahead)*16/17 - notHeap) // garbage alone is never refused
			known = n
		}
		if n == 0 {
			continue
		}
		memory, cpu := u.now()
		if over := excess(n, memory+memory/16+ahead, work.add(cpu, time.Now())); over != "" {
			err := refusal(over)
			fmt.Fprintf(stderr, "snapana: %s\n", err)
			out.die(err)
			os.Exit(failure.KindOf(err).Exit)
		}
	}
}

// busy counts the processor time of a process. To look at it takes some, too: minutes of waiting for a slow pipe would be
// taken for work.
type busy struct {
	cpu, work time.Duration
	at        time.Time
}

// add tells what the process has taken by now, less what it took while it waited.
func (b *busy) add(cpu time.Duration, now time.Time) time.Duration {
	const waiting = 10 // it waits where it takes less than a tenth of a processor
	if part := cpu - b.cpu; b.at.IsZero() || part*waiting >= now.Sub(b.at) {
		b.work += part
	}
	b.cpu, b.at = cpu, now
	return b.work
}

// refusal is the error of what takes too much.
func refusal(over string) error {
	const hint = "if you trust the input, allow more with --max-bytes"
	return failure.Advise(hint, fail(failure.Limit, "refused: %s; %s", over, hint))
}

// excess says what an input of n bytes takes too much of, "" for nothing.
func excess(n, memory int64, cpu time.Duration) string {
	switch {
	case memory > budget.Memory(n):
		return fmt.Sprintf("%s of input take more than %s of memory, as no honest file does", units.Bytes(n),
			units.Bytes(budget.Memory(n)))
	case cpu+inTime > budget.Time(n):
		return fmt.Sprintf("%s of input take more than %.1f seconds of processor time, as no honest file does",
			units.Bytes(n), budget.Time(n).Seconds())
	}
	return ""
}
