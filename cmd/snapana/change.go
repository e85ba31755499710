package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
)

// parseChanges reads the values of --change.
func parseChanges(texts []string) ([]change.Change, error) {
	var out []change.Change
	for _, text := range texts {
		c, err := change.Parse(text)
		if err != nil {
			return nil, failure.Mark(failure.Usage, refusedChange(err))
		}
		out = append(out, c)
	}
	return out, nil
}

// answerChanges prints what changes of the program come to.
func answerChanges(cmd *cobra.Command, out outputFlags, in *inputFlags, s *snapshot.Snapshot, t *timeline.Timeline,
	changes []change.Change, search bool, q *whatif.Question, why string) error {
	rules, err := in.readRules(cmd.Context())
	if err != nil {
		return err
	}
	input, err := change.NewInput(cmd.Context(), s, t, rules)
	if err != nil {
		return err
	}
	if input.Program.Allocs+input.Program.OOMs == 0 {
		return nothingToReplay(s, input.Program)
	}
	input.Capacity, input.Foreign = q.Capacity, q.Foreign
	if search {
		return searchChanges(cmd, out, input, changes, why)
	}
	a, err := change.Ask(cmd.Context(), input, changes)
	if err != nil {
		return refusedChange(err)
	}
	verdict.SayChanges(a)
	return show(cmd, out, a, json.WriteChange, func(w io.Writer, a *change.Answer, o text.Options) error {
		return text.Change(w, a, why, o)
	})
}

// searchChanges prints which changes make a run fit.
func searchChanges(cmd *cobra.Command, out outputFlags, in *change.Input, changes []change.Change, why string) error {
	if in.Capacity == 0 && in.Program.Capacity == 0 {
		return misuse("--search needs --capacity: the file does not tell how much memory there was")
	}
	f, err := change.Search(cmd.Context(), in, changes, 0)
	if err != nil {
		return refusedChange(err)
	}
	verdict.SaySearch(f)
	return show(cmd, out, f, json.WriteSearch, func(w io.Writer, f *change.Found, o text.Options) error {
		return text.Search(w, f, why, o)
	})
}

// nothingToReplay says that a trace has no requests.
func nothingToReplay(s *snapshot.Snapshot, p *whatif.Program) error {
	return fail(failure.NoHistory, "%s: GPU %d has no requests in its trace, so there is nothing to replay; %s", s.Name,
		p.Device, p.Platform.Say("call torch.cuda.memory._record_memory_history() when the program starts"))
}

// refusedChange is the error for a change that is not known or cannot be replayed.
func refusedChange(err error) error {
	const most = 8
	var word *change.UnknownError
	var line *change.LineError
	var no *change.RefusedError
	switch {
	case errors.As(err, &word):
		return unknown("--change", word.Word, word.Known)
	case errors.As(err, &line):
		return unknown("line", line.Line, line.Known[:min(len(line.Known), most)])
	case errors.As(err, &no):
		return failure.Mark(failure.CannotReplay, errors.New(verdict.SayRefused(no)))
	}
	return err
}
