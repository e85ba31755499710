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
		Short: "Say which Python objects keep memory alive that should be gone",
		Long: `ghosts looks for ghost tensors in the snapshot in FILE (- for standard input): memory that
only a forgotten reference keeps.

The snapshot alone shows what grows and where it was allocated. Who keeps it is in the
recorder's file (see snapana recorder), which lists the Python objects that lead to each
tensor; it is joined with the snapshot by address. NAME.snapana beside NAME.pickle is used
by itself, another one with --recorder.

For each ghost: the variable, attribute or closure cell that keeps it, how much it keeps and
by how much it grows, the chain of references that leads to it, what letting go of it frees
(nothing else keeps that part), and a fix. Then who holds the rest, as it should be, and what
could not be joined: all add up to the allocated bytes. From a snapshot alone: what grows, and
what large memory stays without growing, which is no ghost by itself.`,
		Example: `  snapana ghosts run.pickle
  snapana ghosts snapshot.pickle --recorder run.snapana
  snapana ghosts run.pickle --before yesterday.snapana
  snapana ghosts --json run.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := rec.analyse(cmd, &in, args[0], analyze.Options{NoReplay: true})
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
	fl.Var(&least, "min", "sum up holders with less than `SIZE`; ghosts are always shown")
	fl.Lookup("min").DefValue = "1MiB"
	out.add(fl, "print JSON instead, with all holders", "")
	return cmd
}
