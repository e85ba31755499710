package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/source"
)

// sourceFlags say where the program's files are, and what opens them.
type sourceFlags struct {
	dir    string
	editor string
}

func (f *sourceFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.dir, "source", "", "show lines of the program's files below `FOLDER` beside stacks")
	fl.StringVar(&f.editor, "editor", "vscode", "`EDITOR` that opens lines of --source: "+
		strings.Join(source.Editors(), ", ")+", or an address with {path} and {line}")
}

// open opens the folder for an analysis. Call close after the last use of its result.
func (f *sourceFlags) open(opt *analyze.Options) (close func(), err error) {
	editor, err := source.ReadEditor(f.editor)
	if err != nil {
		return nil, misuse("invalid --editor %q; %w", f.editor, err)
	}
	if f.dir == "" {
		return func() {}, nil
	}
	if opt.Source, err = source.Open(f.dir, editor); err != nil {
		return nil, fmt.Errorf("--source: %w", err)
	}
	return func() { opt.Source.Close() }, nil
}
