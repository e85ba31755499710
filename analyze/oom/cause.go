package oom

import (
	"fmt"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// Cause is why a request failed, as far as the figures say.
type Cause string

const (
	Absurd        Cause = "absurd"          // no device has so much, or this one has not
	TooLarge      Cause = "too-large"       // more than the process could have with every tensor freed
	Limit         Cause = "limit"           // the memory fraction or watermark is used up
	Fragmentation Cause = "fragmentation"   // enough of its stream's memory is free, in pieces
	Pools         Cause = "private-pools"   // what is free is kept for CUDA graphs and other private pools
	OtherStream   Cause = "other-stream"    // what is free is another stream's, or waits for one
	Unsplit       Cause = "unsplit"         // one piece is large enough, and max_split_size_mb kept it
	Fraction      Cause = "fraction"        // a memory fraction is set, and the device had room
	Room          Cause = "room"            // the device had room, and no fraction is recorded
	Others        Cause = "other-processes" // memory outside of PyTorch's took what was missing
	Growth        Cause = "growth"          // without what a loop leaves behind, it would have been served
	Joined        Cause = "joined"          // free pieces and the device's rest would do together
	Capacity      Cause = "capacity"        // live tensors fill the device
	Outside       Cause = "outside"         // the caching allocator did not fail, CUDA did
	Host          Cause = "host"            // the machine's memory, not a device's
	TooFew        Cause = "unknown"         // too few figures
)

// Figures are what is known of a request that failed, from a snapshot or from a message. What a source
// does not tell is unknown, and no cause is judged by it: a message knows no single piece, no stream and no
// growth, a snapshot seldom the device's size.
type Figures struct {
	Stated    Cause       // what the source says by itself, "" for nothing: then arithmetic decides
	Requested oomlog.Size // in a message, what the device was asked for
	Segment   oomlog.Size // what the device was asked for
	Absurd    int64       // sizes from here on are mistakes
	Most      oomlog.Size // what this process could have with every tensor freed
	Total     oomlog.Size // memory of the device
	Free      oomlog.Size // on the device
	Reserved  oomlog.Size // by the allocator

	Left     oomlog.Size // what a limit in bytes leaves to the process
	Fraction float64     // of the device that the process may reserve, 1 for all or unknown
	Spilled  bool        // the driver moved a part to the machine's memory, so that Free is no limit
	NoCache  bool        // the allocator keeps no free blocks

	Pieces  oomlog.Size // free blocks that the request may use, together
	Largest oomlog.Size // of them
	Private oomlog.Size // free blocks of private pools
	Streams oomlog.Size // free blocks of other streams, and blocks that wait for one
	// Pools is Private where it is a part of what counts as allocated, as in messages: these
	// name it before the device's room, and only where it is enough by itself.
	Pools oomlog.Size

	Lost      oomlog.Size // by how much Elsewhere is known to have grown
	Elsewhere oomlog.Size // outside of PyTorch's allocator, this process's included
	// Foreign is Elsewhere by a message, without this process's where that is told apart. Free pieces
	// and free device memory joined come before it, and count with it.
	Foreign oomlog.Size
	Apart   bool // Foreign is other processes' alone
	Growth  bool // without what a loop leaves behind, a large part, the request would have been served
	// Flooded is a Growth beside which the free pieces are nothing: had they been one, it would have failed soon after,
	// in the next lap at the latest or nearly so.
	Flooded bool
}

// absurd is beyond what any device has: sizes from there on are mistakes.
const absurd = 1 << 40

// slight is the share of what is reserved, as a divisor, below which memory in pieces is what every program has: of a
// message, which tells neither how large they are nor how many.
const slight = 20

// slightPools is such a share for free memory of private pools.
const slightPools = 40

// driverKeeps is the share of a device, as a divisor, that drivers are seen to keep free when they refuse memory.
const driverKeeps = 512

// Slight reports whether so much memory in pieces explains no failure by itself.
func Slight(pieces, reserved int64) bool { return pieces < reserved/slight }

// Rest is the most that can have been free on the device where that is not told: what PyTorch had not reserved.
func (f *Figures) Rest() int64 {
	return max(f.Total.Bytes-f.Reserved.Bytes, 0) + f.Total.Step + f.Reserved.Step
}

// exact is a figure that is not rounded.
func exact(n int64) oomlog.Size { return oomlog.Size{Bytes: n, Step: 1} }

// Cause judges by arithmetic, the surest first.
func (f *Figures) Cause() Cause {
	asked, free, pieces := f.Requested.Bytes, f.Free.Bytes, f.Pieces.Bytes
	device := f.Free.Known()
	short := f.Segment.Bytes - free // what the device lacked
	room := device && free >= f.Segment.Bytes+allocator.RoundLarge
	message := !f.Largest.Known()
	if message && free < f.Total.Bytes/driverKeeps {
		room = false
	}
	shared := f.Apart && f.Foreign.Bytes >= f.Total.Bytes/4
	few := message && f.Pieces.Known() && (Slight(pieces, f.Reserved.Bytes) || shared && f.Foreign.Bytes > 4*pieces)
	enough := func(s oomlog.Size) bool { return s.Known() && s.Bytes >= asked }
	switch {
	case f.Requested.Known() && (asked < 0 || asked >= f.Absurd):
		return Absurd
	case f.Stated != "":
		return f.Stated
	case !f.Requested.Known():
		return TooFew
	case f.Most.Known() && asked > f.Most.Bytes:
		return TooLarge
	case f.Left.Known() && asked > f.Left.Bytes && free >= asked:
		return Limit
	case f.Spilled:
		return Capacity
	case enough(f.Largest):
		return Unsplit
	case room && message: // whatever lies in pieces, memory of the device was refused
		return Room
	case f.Growth && f.Flooded:
		return Growth
	case enough(f.Pieces) && !few:
		return Fragmentation
	case enough(f.Pools) && f.Pools.Bytes >= f.Reserved.Bytes/slightPools:
		return Pools
	case room && f.Fraction < 1:
		return Fraction
	case room:
		return Room
	case f.NoCache && device:
		return Capacity
	case enough(f.Private) || f.Private.Bytes > 0 && device && f.Private.Bytes >= max(short, f.Reserved.Bytes/10):
		return Pools
	case enough(f.Streams):
		return OtherStream
	case f.Streams.Known() && pieces+f.Private.Bytes+f.Streams.Bytes >= asked: // all of them together
		return largest(pieces, f.Private.Bytes, f.Streams.Bytes)
	case shared && !f.Pieces.Known() && free+f.Foreign.Bytes >= asked:
		return Others
	case !device && f.Pieces.Known() && f.Total.Known() && asked > pieces+f.Rest():
		return Capacity
	case !f.Pieces.Known() || message && !device:
		return TooFew
	case f.Lost.Known() && f.Lost.Bytes >= max(short, f.Most.Bytes/10):
		return Others
	case f.Elsewhere.Known() && f.Elsewhere.Bytes >= max(short+ownOutside, f.Total.Bytes/4):
		return Others
	case f.Growth:
		return Growth
	case device && free >= asked && pieces == 0:
		return Room // barely
	case device && pieces+free >= asked && !few:
		return Joined
	case f.Foreign.Known() && f.Foreign.Bytes >= f.Total.Bytes/4 && free+pieces+f.Foreign.Bytes >= asked:
		return Others
	}
	return Capacity
}

func largest(own, private, foreign int64) Cause {
	switch max(own, private, foreign) {
	case own:
		return Fragmentation
	case private:
		return Pools
	}
	return OtherStream
}

// figures are those of a report, with which cause is judged.
func (r *Report) figures(e *Evidence) *Figures {
	c := &e.Free.Classes
	private := e.Free.Private
	grown := max(r.Ghosts.Bytes, r.Ghosts.Models)
	pieces := e.pieces()
	f := &Figures{
		Requested: exact(int64(r.Requested)), Segment: exact(int64(r.Segment)), Absurd: absurd,
		Reserved: exact(r.After.Reserved), Fraction: r.Fraction,
		Pieces: exact(pieces), Largest: exact(int64(r.LargestUsable)),
		Private: exact(private), Streams: exact(c.Stream - private + c.Pending),
		Growth: r.Ghosts.Blocks > 0 && r.Ghosts.Bytes*4 >= r.After.Active && r.withoutGhosts(),
		Flooded: grown*2 >= r.After.Active && (grown >= 8*pieces || r.Ghosts.PerLap >= pieces ||
			r.Ghosts.Remade),
	}
	if e.Timeline.Recording.BlocksUnknown() {
		f.Stated = TooFew
	}
	if r.DeviceFree >= 0 {
		f.Free, f.Most, f.Lost = exact(int64(r.DeviceFree)), exact(int64(r.AtLeast)), exact(int64(r.Grown))
	}
	if total := int64(r.DeviceTotal); total != Unknown {
		f.Total, f.Elsewhere = exact(total), exact(int64(r.Elsewhere))
		f.Absurd = min(f.Absurd, total+1) // no setting helps either
	}
	return f
}

// pieces are the free bytes that the request may use.
func (e *Evidence) pieces() int64 {
	c := &e.Free.Classes
	return c.Releasable + c.Hard + c.Soft
}

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

// refusedSo is why what was free on the device is no answer.
const refusedSo = "a limit refused it all the same"

// unless is an answer that rests on free device memory: not known where the request was refused although there was some.
func (r *Report) unless(fits bool) Fits {
	if fits && r.limited() {
		return NotKnown
	}
	return yes(fits)
}

// doubt is why such an answer is not known, "" where it is.
func (r *Report) doubt(fits bool, why string) string {
	if fits && r.limited() {
		return why
	}
	return ""
}

// answer fills in Answers, from what was to what might have been.
func (r *Report) answer(e *Evidence) {
	add := func(id, what string, fits Fits, bytes units.Size, note string) {
		r.Answers = append(r.Answers, Answer{ID: id, What: what, Fits: fits, Bytes: int64(bytes), Note: note})
	}
	c := &e.Free.Classes
	own, all, free := units.Size(c.Releasable+c.Hard+c.Soft), units.Size(c.Sum()), r.DeviceFree
	const segment = "in a new segment from free device memory"
	add("piece", "in the largest free piece of its stream", yes(r.LargestUsable >= r.Requested), r.LargestUsable, "")
	if free < 0 {
		add("segment", segment, NotKnown, Unknown, silent)
	} else {
		add("segment", segment, r.unless(free >= r.Segment), free, r.doubt(free >= r.Segment, refusedSo))
	}
	add("stream", "if all free memory of its stream were contiguous", yes(own >= r.Requested), own, "")
	if all != own {
		add("all", "if all free memory, other streams' and pools' too, were contiguous",
			yes(all >= r.Requested), all, "")
	}
	if free >= 0 {
		fits := all+free >= r.Requested
		add("device", "if that and the free device memory were contiguous", r.unless(fits), all+free,
			r.doubt(fits, refusedSo))
	}
	r.alone(add)
	const ghosts = "after freeing ghost tensors"
	switch g := &r.Ghosts; {
	case g.Blocks == 0:
		add("ghosts", ghosts, None, 0, "none were found")
	case free < 0 && g.Largest < int64(r.Requested):
		add("ghosts", ghosts, NotKnown, units.Size(g.Bytes), silent)
	default:
		note := fmt.Sprintf("heuristic; %s of segments would be returned", units.Bytes(g.Returned))
		add("ghosts", ghosts, yes(r.withoutGhosts()), units.Size(g.Bytes), note)
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
			serves := !row.StartFailed && row.Outcome.Serves(r.Event)
			fits := r.unless(serves)
			if s := r.doubt(serves, "the limit that refused it is not recorded"); s != "" {
				note = s
			}
			if row.New > 0 {
				note = fmt.Sprintf("replayed: fails %s that the run served", units.Plural(row.New, "request"))
				fits = No
			} else if !row.Proves(r.Event) {
				note = fmt.Sprintf("not known after event %s: a request that failed there is served, and nothing records "+
					"when its memory would be freed", units.Count(*row.Assumed))
				fits = NotKnown
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
	return units.Size(g.Largest) >= r.Requested || r.DeviceFree >= 0 && units.Size(g.Returned)+r.DeviceFree >= r.Segment
}

// alone answers for a device that nobody shares, on which this process's own memory outside of
// PyTorch would still be.
func (r *Report) alone(add func(id, what string, fits Fits, bytes units.Size, note string)) {
	const what = "on an otherwise idle GPU"
	short, alone := r.Segment-r.DeviceFree, r.DeviceFree+r.Elsewhere
	elsewhere := r.Elsewhere.String() + " is neither free nor PyTorch's"
	switch {
	case r.DeviceFree < 0:
		add("alone", what, NotKnown, Unknown, silent)
	case r.Grown >= short && r.Grown > 0 && short > 0:
		note := fmt.Sprintf("memory outside PyTorch has grown by %s or more since", r.Grown.String())
		add("alone", what, Yes, r.DeviceFree+r.Grown, note)
	case r.DeviceTotal == Unknown:
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
