package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/report/failure"
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

// written marks an error as one of the output side.
func written(err error) error { return failure.Mark(failure.WriteFailed, err) }

// misuse is the error of a command line that is wrong.
func misuse(format string, a ...any) error { return fail(failure.Usage, format, a...) }

// fail is an error with a code.
func fail(code failure.Code, format string, a ...any) error {
	return failure.Mark(code, fmt.Errorf(format, a...))
}

// read are the files that a command line names to be read.
func read(cmd *cobra.Command, args []string) []string {
	files := slices.Clone(args)
	for _, name := range []string{"recorder", "before", "snapshot", "baseline", "limits", "rules"} {
		if fl := cmd.Flags().Lookup(name); fl != nil {
			files = append(files, fl.Value.String())
		}
	}
	return files
}

// once fails where standard input is named twice: it has one file.
func once(cmd *cobra.Command, args []string) error {
	stdin := 0
	for _, file := range read(cmd, args) {
		if file == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return misuse("- is named %d times, but standard input has one file; save it, and name the file", stdin)
	}
	return nil
}

// spare fails where a flag has a file written that is also read: what is written would take its place.
func spare(cmd *cobra.Command, args []string) error {
	files := read(cmd, args)
	for _, flag := range []string{"--output", "--map", "--plot"} {
		fl := cmd.Flags().Lookup(flag[2:])
		if fl == nil || !fl.Changed {
			continue
		}
		at, err := os.Stat(fl.Value.String())
		if err != nil || at.IsDir() {
			continue
		}
		for _, file := range files {
			if other, err := os.Stat(file); err == nil && os.SameFile(at, other) {
				return misuse("%s %s is what is read; name another file", flag, fl.Value)
			}
		}
	}
	return nil
}

// pictures are the endings of files with pictures, in messages and help.
const pictures = ".png or .svg"

// medium is what a picture in the file is that a flag names.
func medium(flag, path string) (plot.Medium, error) {
	if path == "" {
		return plot.Medium{}, misuse("missing %s; expected a name that ends in "+pictures, flag)
	}
	ext := strings.ToLower(filepath.Ext(path))
	if ext != ".png" && ext != ".svg" {
		return plot.Medium{}, misuse("invalid %s %q; expected a name that ends in "+pictures, flag, path)
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
