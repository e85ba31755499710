package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
)

func newGhosts() *cobra.Command {
	var (
		in    inputFlags
		rec   recorderFlags
		least = size(1 << 20)
		out   outputFlags
	)
	cmd := &cobra.Command{
		Use:   "ghosts FILE",
		Short: "Find the Python objects that keep leaked memory alive",
		Long: `Find leaked memory in the snapshot in FILE (- for standard input) and the Python objects
that keep it alive: the variable, attribute, closure cell or reference cycle, how much it
keeps, what releasing it frees, and a fix. The recorder's file names these objects; without
it, only what grows is shown, and where it was allocated.`,
		Example: `  snapana ghosts run.pickle
  snapana ghosts snapshot.pickle --recorder run.snapana
  snapana ghosts run.pickle --before yesterday.snapana
  snapana ghosts --json run.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := rec.analyze(cmd, &in, args[0], analyze.Options{NoReplay: true})
			if err != nil {
				return err
			}
			return show(cmd, out, result, json.WriteGhosts, func(w io.Writer, r *analyze.Result, o text.Options) error {
				return text.Ghosts(w, r, text.GhostOptions{Options: o, Min: int64(least)})
			})
		},
	}
	fl := cmd.Flags()
	in.add(fl)
	rec.add(fl)
	fl.Var(&least, "min", "sum up holders of less than `SIZE`; leaks are always shown")
	fl.Lookup("min").DefValue = "1MiB"
	out.add(fl, "print JSON, with all holders", "")
	return cmd
}
