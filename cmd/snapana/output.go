package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

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
	o := look(w)
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

// medium is what a picture in the file is that a flag names.
func medium(flag, path string) (plot.Medium, error) {
	ext := strings.ToLower(filepath.Ext(path))
	if ext != ".png" && ext != ".svg" {
		return plot.Medium{}, fmt.Errorf("invalid %s %q; expected a name that ends in .png or .svg", flag, path)
	}
	return plot.Medium{SVG: ext == ".svg"}, nil
}

// draw writes a picture, which errors call so, to a file. Nothing is written unless all is.
func draw(called string, p plot.Plot, path string, m plot.Medium) error {
	var b bytes.Buffer
	err := p.Write(&b, m)
	if err == nil {
		err = replaceFile(path, b.Bytes())
	}
	if err != nil {
		return written(fmt.Errorf("write the %s: %w", called, err))
	}
	return nil
}

// replaceFile writes a file as a whole: what was there before stays until all is written.
func replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".snapana-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
