package oom

import (
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// Fits answers whether a request would have been served.
type Fits string

const (
	Yes      Fits = "yes"
	No       Fits = "no"
	NotKnown Fits = "unknown"
	None     Fits = "none" // there is nothing of the kind in this run
)

// ownOutside is more than a process's memory outside PyTorch usually is: the CUDA context and
// what libraries take.
const ownOutside = 1 << 30

// silent is why an answer is not known.
const silent = "the event does not record how much was free"

// Answer is one circumstance in which the request would have been served, or not.
type Answer struct {
	ID    string `json:"id"` // "piece", "segment", "stream", "all", "device", "alone", "ghosts", "setting"
	What  string `json:"what"`
	Fits  Fits   `json:"fits"`
	Bytes int64  `json:"bytes"` // that there would have been, Unknown or that of Requested to compare with
	Note  string `json:"note"`
	// Wants is what would settle an answer that is not known.
	Wants finding.Want `json:"wants,omitempty"`
	// Conf is the allocator setting of a "setting", "" for the default one; Needs is the release of
	// torch that knows it, where that is newer than the snapshot's.
	Conf  string `json:"-"`
	Needs string `json:"-"`
}

func yes(b bool) Fits {
	if b {
		return Yes
	}
	return No
}

// answer fills in Answers, from what was to what might have been.
func (r *Report) answer(e *Evidence) {
	add := func(id, what string, fits Fits, bytes int64, note string) {
		r.Answers = append(r.Answers, Answer{ID: id, What: what, Fits: fits, Bytes: bytes, Note: note})
	}
	c := &e.Free.Classes
	own, all, free := c.Releasable+c.Hard+c.Soft, c.Sum(), r.DeviceFree
	const segment = "in a new segment from free device memory"
	add("piece", "in the largest free piece of its stream", yes(r.Largest >= r.Requested), r.Largest, "")
	if free < 0 {
		add("segment", segment, NotKnown, Unknown, silent)
	} else {
		add("segment", segment, yes(free >= r.Segment), free, "")
	}
	add("stream", "if all free memory of its stream were contiguous", yes(own >= r.Requested), own, "")
	if all != own {
		add("all", "if all free memory, other streams' and pools' too, were contiguous",
			yes(all >= r.Requested), all, "")
	}
	if free >= 0 {
		add("device", "if that and the free device memory were contiguous", yes(all+free >= r.Requested), all+free, "")
	}
	r.alone(add)
	const ghosts = "after freeing ghost tensors"
	switch g := &r.Ghosts; {
	case g.Blocks == 0:
		add("ghosts", ghosts, None, 0, "none were found")
	case free < 0 && g.Largest < r.Requested:
		add("ghosts", ghosts, NotKnown, g.Bytes, silent)
	default:
		note := fmt.Sprintf("heuristic; %s of segments would be returned", units.Bytes(g.Returned))
		add("ghosts", ghosts, yes(r.withoutGhosts()), g.Bytes, note)
	}
	if a := e.WhatIf; a != nil && a.Accuracy.Trusted {
		for i := range a.Rows {
			row := &a.Rows[i]
			name := row.Text
			switch {
			case name == "":
				name = "the default settings"
			case row.Needs != "":
				name += " (torch " + row.Needs + " or later)"
			}
			note := "replayed"
			fits := yes(!row.StartFailed && row.Outcome.Serves(r.Event))
			if row.New > 0 {
				note = fmt.Sprintf("replayed: fails %s that the run served", units.Plural(row.New, "request"))
				fits = No
			}
			r.Answers = append(r.Answers, Answer{
				ID: "setting", What: "with " + name, Fits: fits, Bytes: row.ReservedPeak, Note: note,
				Conf: row.Text, Needs: row.Needs,
			})
		}
	}
}

// withoutGhosts reports whether the request would have been served without them.
func (r *Report) withoutGhosts() bool {
	g := &r.Ghosts
	return g.Largest >= r.Requested || r.DeviceFree >= 0 && g.Returned+r.DeviceFree >= r.Segment
}

// alone answers for a device that nobody shares, on which this process's own memory outside of
// PyTorch would still be.
func (r *Report) alone(add func(id, what string, fits Fits, bytes int64, note string)) {
	const what = "on an otherwise idle GPU"
	short, alone := r.Segment-r.DeviceFree, r.DeviceFree+r.Elsewhere
	elsewhere := units.Bytes(r.Elsewhere) + " is neither free nor PyTorch's"
	switch {
	case r.DeviceFree < 0:
		add("alone", what, NotKnown, Unknown, silent)
	case r.Lost >= short && r.Lost > 0 && short > 0:
		note := fmt.Sprintf("memory outside PyTorch has grown by %s or more since", units.Bytes(r.Lost))
		add("alone", what, Yes, r.DeviceFree+r.Lost, note)
	case r.Total == Unknown:
		add("alone", what, NotKnown, Unknown, "its size is not recorded")
		r.Answers[len(r.Answers)-1].Wants = finding.WantCapacity
	case r.Elsewhere < short:
		add("alone", what, No, alone, elsewhere)
	case r.Elsewhere < short+ownOutside:
		add("alone", what, NotKnown, alone, "depends on this process's own memory outside PyTorch")
	default:
		add("alone", what, Yes, alone, elsewhere)
	}
}
