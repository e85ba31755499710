package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// silence is how long reading may take before it is worth a progress bar.
const silence = time.Second

// meter shows how far reading has come, on a terminal and only when it takes a while.
type meter struct {
	w     io.Writer // nil when nobody watches
	start time.Time
	bar   *progressbar.ProgressBar
}

func newMeter(stderr io.Writer) *meter {
	m := &meter{start: time.Now()}
	if isTerminal(stderr) {
		m.w = stderr
	}
	return m
}

func (m *meter) progress(done, total int64) {
	if m.w == nil || time.Since(m.start) < silence {
		return
	}
	if m.bar == nil {
		if total == 0 {
			total = -1 // not known: a spinner
		}
		m.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(m.w),
			progressbar.OptionSetDescription("reading"),
			// Rates and predictions would count from here on and be far off.
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetSpinnerChangeInterval(0), // else it draws on after close
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
	}
	m.bar.Set64(done)
}

// close takes the bar off the screen.
func (m *meter) close() {
	if m.bar != nil {
		m.bar.Clear()
	}
}

// isTerminal reports whether w is a terminal that a person looks at.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
