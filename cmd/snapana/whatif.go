package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
)

func newWhatif() *cobra.Command {
	var (
		in       inputFlags
		device   deviceFlag
		confs    []string
		capacity size
		foreign  = size(whatif.ContextBytes)
		sweep    bool
		start    string
		changes  []string
		search   bool
		out      outputFlags
	)
	starts := []string{"keep", "anew"}
	cmd := &cobra.Command{
		Use:   "whatif FILE",
		Short: "Replay the run under other allocator settings, or on another device",
		Long: `Replay the requests of the trace in FILE (- for standard input) on a simulation of PyTorch's
caching allocator, under a set of usual settings: how much memory would have been reserved,
how often would the driver have been called, would a request have failed?

First the run is replayed under its own settings. If fewer than 99% of its requests get their
recorded address, nothing is recommended.`,
		Example: `  snapana whatif snapshot.pickle
  snapana whatif --conf expandable_segments:True --conf max_split_size_mb:128 snapshot.pickle
  snapana whatif --capacity 24GiB snapshot.pickle
  snapana whatif --sweep --json snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			q := whatif.Question{All: sweep, Capacity: int64(capacity), Foreign: int64(foreign)}
			if mode := slices.Index(starts, start); mode >= 0 {
				q.Start = new([]whatif.Start{whatif.Keep, whatif.Anew}[mode])
			} else if start != "" {
				return unknown("--start", start, starts)
			}
			if (search || len(changes) > 0) && (sweep || len(confs) > 0 || start != "") {
				return misuse("--change and --search cannot be used with --conf, --sweep or --start")
			}
			if sweep && len(confs) > 0 {
				return misuse("--sweep and --conf cannot be used together")
			}
			if err := foreignFits(cmd, capacity, foreign); err != nil {
				return err
			}
			asked, err := parseChanges(changes)
			if err != nil {
				return err
			}
			snap, t, why, err := device.open(cmd, &in, args[0])
			if err != nil {
				return err
			}
			if search || len(asked) > 0 {
				return answerChanges(cmd, out, &in, snap, t, asked, search, &q, why)
			}
			p, v, err := whatif.Load(cmd.Context(), snap, t)
			if err != nil {
				return err
			}
			if p.Allocs+p.OOMs == 0 {
				return nothingToReplay(snap, p)
			}
			if q.Settings, err = settings(p, confs, capacity > 0); err != nil {
				return err
			}
			a, err := whatif.Ask(cmd.Context(), snap, p, v, q)
			if err != nil {
				return err
			}
			return show(cmd, out, a, json.WriteWhatif, func(w io.Writer, a *whatif.Answer, o text.Options) error {
				return text.WhatIf(w, a, &p.Recorded, why, o)
			})
		},
	}
	fl := cmd.Flags()
	in.addReading(fl, "file", "input")
	in.addWindow(fl)
	fl.StringArrayVar(&confs, "conf", nil, "try these `SETTINGS`, as in PYTORCH_CUDA_ALLOC_CONF (repeatable)")
	addCapacity(fl, &capacity, ": replay the run on such a GPU")
	addForeign(fl, &foreign)
	fl.BoolVar(&sweep, "sweep", false, "try a wider set of settings")
	fl.StringVar(&start, "start", "", "`MODE` for blocks from before the trace: keep or anew (default: keep, if "+
		"they fit)")
	fl.StringArrayVar(&changes, "change", nil, "replay the run with this `CHANGE` of the program (repeatable): "+
		"checkpoint=blocks.*, foreach=off, accumulate=4 and others")
	fl.BoolVar(&search, "search", false, "search for the cheapest changes of the program with which the run fits; of "+
		"those that --change names, if any")
	device.add(fl)
	out.add(fl, "print JSON", "")
	oneOf(cmd, "start", starts)
	oneOf(cmd, "change", change.Kinds())
	return cmd
}

// settings reads those that --conf gives, nil for none.
func settings(p *whatif.Program, confs []string, capacity bool) (out []whatif.Setting, err error) {
	for _, text := range confs {
		set, err := p.Replayable(text, capacity)
		switch {
		case errors.Is(err, whatif.ErrAsync):
			return nil, fmt.Errorf("--conf %q: %w", text, err)
		case errors.Is(err, whatif.ErrNoSize):
			return nil, misuse("--conf %q: %w; add --capacity", text, err)
		case err != nil:
			return nil, misuse("--conf %q: %w", text, err)
		}
		out = append(out, set)
	}
	return out, nil
}
