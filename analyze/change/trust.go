package change

import (
	"context"
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/whatif"
)

// Band is between which values the reserved peak of a changed program is expected.
type Band struct {
	Low  int64 `json:"low"`
	High int64 `json:"high"`
}

// Doubt is a reason why a prediction may be off.
type Doubt struct {
	Kind   DoubtKind `json:"kind"`
	Change string    `json:"change,omitempty"` // that brings it in, "" for all together
	Text   string    `json:"text"`

	below, above float64 // by so much of itself the truth may lie under or over the prediction
}

// DoubtKind is why a prediction may be off.
type DoubtKind string

// The reasons.
const (
	Layout      DoubtKind = "layout"       // where blocks lie decides: small shifts of the requests move the peak
	Kernels     DoubtKind = "kernels"      // kernels may take other temporaries with other sizes
	Types       DoubtKind = "types"        // the file does not record the types of elements
	Temporaries DoubtKind = "temporaries"  // what an optimizer makes for one parameter was not seen
	Strategy    DoubtKind = "strategy"     // there are several ways to do it, of which one was replayed
	Variable    DoubtKind = "variable"     // a variable may keep the last block that leaks until it is assigned anew
	Lists       DoubtKind = "lists"        // other modules may be meant
	NotReplayed DoubtKind = "not_replayed" // the replay does not give recorded addresses
	BeyondCut   DoubtKind = "beyond_cut"   // the recording ends where a request failed
)

// What a change alone was off by in the programs of fixtures/lab/changes and others like them, as parts of the reserved
// peak. One that is not listed was within sure where the layout did not matter.
var doubts = map[Kind]Doubt{
	Accumulate: {Kind: Kernels, below: 0.05, above: 0.04},
	DType:      {Kind: Types, below: 0.06, above: 0.20},
	InBackward: {Kind: Strategy, below: 0.02, above: 0.04},
	Zero:       {Kind: Strategy, below: 0.04, above: 0.04},
	FSDP:       {Kind: Strategy, below: 0.03, above: 0.03},
	EightBit:   {Kind: Strategy, below: 0.03, above: 0.03},
}

// What is within sure of a prediction is of high confidence, and within near of medium.
const (
	sure = 0.02
	near = 0.06
)

// few is what of a reserved peak is off where programs with checkpoints keep small things otherwise than is replayed, in
// bytes: two of the allocator's small segments.
const few = 4 << 20

// shifts are requests that differ a little from those that are predicted: lives that are changed end so many events
// later, or ask for so many bytes more.
var shifts = []struct {
	events int32
	bytes  int64
}{{events: 1}, {events: 3}, {events: -1}, {bytes: 512}, {bytes: -512}}

// bound replays what changes come to with small shifts of the requests, and says how far the prediction can be trusted.
func (in *Input) bound(ctx context.Context, d *draft, a *Answer) error {
	peak := a.After.ReservedPeak
	low, high := peak, peak
	if slices.ContainsFunc(a.Changes, func(c Applied) bool { return c.Blocks > 0 }) {
		for _, by := range shifts {
			p, err := d.p.Edited(d.shifted(by.events, by.bytes))
			if err != nil {
				return err
			}
			o, err := in.replay(ctx, p, &Answer{Anew: a.Anew})
			if err != nil {
				return err
			}
			low, high = min(low, o.ReservedPeak), max(high, o.ReservedPeak)
		}
	}
	// Shifts to one side show how far it may go to the other, but not below what is allocated.
	spread := share(max(peak-low, high-peak), peak)
	layout := Doubt{Kind: Layout, below: min(spread, share(peak-a.After.AllocatedPeak, peak)), above: spread}
	if spread > sure {
		a.Doubts = append(a.Doubts, layout)
	}
	for i := range a.Changes {
		c := &a.Changes[i]
		if v, ok := doubts[c.Kind]; ok && c.Blocks > 0 {
			if v.Change = c.Change; a.Instead == nil && slices.Contains(c.Assumptions, Assumption{Kind: OneUnit}) {
				v.above = 0.2 // frameworks gather ahead, into buffers of their own
			}
			a.Doubts = append(a.Doubts, v)
		}
		for _, k := range c.Assumptions {
			switch k.Kind {
			case SingleTensor:
				a.Doubts = append(a.Doubts, Doubt{Kind: Temporaries, Change: c.Change, below: near, above: near})
			case EndsWithStep, BoundAgain:
				one := share(c.Bytes/max(c.Blocks, 1), peak)
				v := Doubt{Kind: Variable, Change: c.Change}
				if v.above = one; k.Kind == BoundAgain {
					v.below, v.above = one, 0
				}
				a.Doubts = append(a.Doubts, v)
			case SavedOnCPU:
				a.Doubts = append(a.Doubts, Doubt{Kind: Strategy, Change: c.Change, below: 0.03, above: 0.03})
			case OneOfLists:
				// Those that are meant may keep next to nothing.
				above := max(0.3, share(a.Before.ReservedPeak-peak, peak))
				a.Doubts = append(a.Doubts, Doubt{Kind: Lists, Change: c.Change, below: 0.3, above: above})
			}
		}
	}
	if !a.Accuracy.Trusted {
		a.Doubts = append(a.Doubts, Doubt{Kind: NotReplayed, below: 0.2, above: 0.2})
	}
	if a.Cut {
		a.Doubts = append(a.Doubts, Doubt{Kind: BeyondCut, above: 0.2})
	}
	below, above := 0., 0.
	for i := range a.Doubts {
		below, above = below+a.Doubts[i].below, above+a.Doubts[i].above
	}
	if len(a.Doubts) > 0 { // what is a little off may take a segment more or less
		segment := share(20<<20, peak)
		below, above = below+min(segment, share(peak-a.After.AllocatedPeak, peak)), above+segment
	}
	below, above = max(below, layout.below), max(above, layout.above)
	if slices.ContainsFunc(a.Changes, func(c Applied) bool { return c.Kind == Checkpoint && c.Blocks > 0 }) {
		below, above = max(below, share(few, peak)), max(above, share(few, peak))
	}
	a.Band = Band{Low: peak - int64(below*float64(peak)), High: peak + int64(above*float64(peak))}
	if o := a.Instead; o != nil {
		most := float64(o.ReservedPeak)
		low := int64((1 - doubts[FSDP].below) * most)
		a.Band = Band{Low: min(a.Band.Low, low), High: max(a.Band.High, int64((1+doubts[FSDP].above)*most)+few)}
		below, above = max(below, share(peak-a.Band.Low, peak)), max(above, share(a.Band.High-peak, peak))
	}
	switch worst := max(below, above); {
	case worst <= sure:
		a.Confidence = finding.High
	case worst <= near:
		a.Confidence = finding.Medium
	default:
		a.Confidence = finding.Low
	}
	return nil
}

func share(part, of int64) float64 { return float64(part) / float64(max(of, 1)) }

// shifted is what the changes come to, with what they touch shifted by events or bytes.
func (d *draft) shifted(events int32, bytes int64) whatif.Edits {
	e := d.edits()
	e.Ends = slices.Clone(e.Ends)
	last := int32(d.t.Trace.Len()) - 1
	for row, end := range e.Ends {
		if end != whatif.AsRecorded && end <= last {
			e.Ends[row] = max(min(end+events, last), d.t.Lives[row].Born)
		}
	}
	const least = 4096 // smaller requests stay
	recorded := d.p.Unchanged().Sizes
	for row, n := range e.Sizes {
		if n != recorded[row] && n > least {
			e.Sizes[row] += bytes
		}
	}
	for i := range e.Added {
		x := &e.Added[i]
		if x.Bytes > least {
			x.Bytes += bytes
		}
		if x.Until == 0 && x.Freed <= last {
			x.Freed = max(min(x.Freed+events, last), x.Born)
		}
	}
	return e
}
