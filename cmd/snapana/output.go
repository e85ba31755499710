package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

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

// results is standard output. Before anything is written to it, the line that shows the progress goes from the terminal.
type results struct {
	io.Writer
	meter *meter
}

func (s *results) Write(p []byte) (int, error) {
	s.meter.close()
	return s.Writer.Write(p)
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
func draw(ctx context.Context, called string, p plot.Plot, path string, m plot.Medium) error {
	meterOf(ctx).doing("drawing")
	var b bytes.Buffer
	err := p.Write(&b, m)
	if err == nil {
		err = place.Write(ctx, path, b.Bytes())
	}
	if err != nil {
		return written(fmt.Errorf("write the %s: %w", called, err))
	}
	return nil
}
