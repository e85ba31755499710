package main

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
)

// results is standard output. Before anything is written to it, the line of the progress goes from the terminal.
//
// Where JSON is asked for, all of it is held until the command ends, so that it is one object whatever happens, with
// the error in it if there is one. Lines that come one by one flow.
type results struct {
	io.Writer
	meter *meter

	mu    sync.Mutex
	json  bool // JSON is asked for
	flows bool
	held  bytes.Buffer
	ended bool
}

func (s *results) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.json && !s.flows {
		return s.held.Write(p)
	}
	s.meter.close()
	return s.Writer.Write(p)
}

// expect makes what follows JSON, if the flags of the command say so.
func (s *results) expect(cmd *cobra.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.json = s.json || wantsJSON(cmd)
}

// flow lets lines go at once from now on.
func flow(cmd *cobra.Command) {
	if s, ok := cmd.OutOrStdout().(*results); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flows = true
	}
}

// end writes what is held, with the error that the command ends with, if any.
func (s *results) end(failed error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finish(failed)
}

// die is end for a process that exits at once: nothing is written behind it, nor where the end was written already.
func (s *results) die(failed error) {
	s.mu.Lock() // for good
	s.finish(failed)
}

func (s *results) finish(failed error) error {
	if s.ended || !s.json {
		return nil
	}
	s.ended = true
	doc := s.held.Bytes()
	if failed != nil {
		doc = json.WithError(doc, failure.Of(failed))
	}
	if s.meter != nil {
		s.meter.close()
	}
	_, err := s.Writer.Write(doc)
	return written(err)
}

// wantsJSON reports whether the flags of a command ask for JSON.
func wantsJSON(cmd *cobra.Command) bool {
	is := func(flag, value string) bool {
		f := cmd.Flags().Lookup(flag)
		return f != nil && f.Value.String() == value
	}
	return is("json", "true") || is("format", "json")
}

// asksJSON reports whether a command line asks for JSON, whatever is wrong with it.
func asksJSON(args []string) (asks bool) {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i, arg := range args {
		flag, value, given := strings.Cut(arg, "=")
		switch {
		case flag == "--json":
			on, err := strconv.ParseBool(value)
			asks = !given || on || err != nil
		case flag == "--format" && (value == "json" || !given && i+1 < len(args) && args[i+1] == "json"):
			asks = true
		}
	}
	return asks
}
