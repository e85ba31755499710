package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/plot"
	"github.com/snapana/snapana/report/text"
)

// show prints a result on standard output, for programs or for people.
func show[T any](cmd *cobra.Command, f outputFlags, v T, asJSON func(io.Writer, T) error,
	asText func(io.Writer, T, text.Options) error) error {
	w := cmd.OutOrStdout()
	if f.json {
		return written(asJSON(w, v))
	}
	o := look(cmd)
	o.All = f.all
	return written(asText(w, v, o))
}

// outputError is a failure to write results.
type outputError struct{ err error }

func (e *outputError) Error() string { return e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// written marks an error as one of the output side.
func written(err error) error {
	if err == nil {
		return nil
	}
	return &outputError{err}
}

// pictures are the endings of files with pictures, in messages and help.
const pictures = ".png or .svg"

// medium is what a picture in the file is that a flag names.
func medium(flag, path string) (plot.Medium, error) {
	if path == "" {
		return plot.Medium{}, fmt.Errorf("missing %s; expected a name that ends in "+pictures, flag)
	}
	ext := strings.ToLower(filepath.Ext(path))
	if ext != ".png" && ext != ".svg" {
		return plot.Medium{}, fmt.Errorf("invalid %s %q; expected a name that ends in "+pictures, flag, path)
	}
	return plot.Medium{SVG: ext == ".svg"}, nil
}

// draw writes a picture, which errors call so, to a file. Nothing is written unless all is.
func draw(called string, p plot.Plot, path string, m plot.Medium) error {
	var b bytes.Buffer
	err := p.Write(&b, m)
	if err == nil {
		err = place.Write(path, b.Bytes())
	}
	if err != nil {
		return written(fmt.Errorf("write the %s: %w", called, err))
	}
	return nil
}

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
