package chart

import (
	"cmp"
	"fmt"
	"image/color"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// DeviceName is what a device is called in every report; below 0 its ordinal is unknown.
func DeviceName(ordinal int) string {
	if ordinal < 0 {
		return "GPU unknown"
	}
	return fmt.Sprintf("GPU %d", ordinal)
}

// MomentName is the title of a moment.
func MomentName(name string) string {
	switch name {
	case "peak":
		return "Peak"
	case "oom":
		return "Out of memory"
	case "end":
		return "End"
	}
	return name
}

// Unknown stands for a figure that the file does not give.
const Unknown = "unknown"

// PeakBytes prints a peak, which only a trace can tell, and which may be a bound.
func PeakBytes(t *timeline.Timeline, p timeline.Peak, b timeline.Bound) string {
	if !t.HasHistory() {
		return Unknown
	}
	return b.Short(p.Bytes)
}

// Count prints a number of events, which only a trace can tell.
func Count(t *timeline.Timeline, n int) string {
	if t.Trace.Len() == 0 || n == 0 && !t.HasHistory() {
		return Unknown
	}
	return units.Count(int64(n))
}

// RetryCount prints how many requests made PyTorch give up its cache, with bounds where the trace does not tell.
func RetryCount(t *timeline.Timeline) string {
	sure, unsure := t.CountRetries(t.Trace.Len())
	if told := t.Recording.Told(); told.Retries != timeline.Exact && t.Trace.Len() > 0 {
		if sure == 0 {
			return Unknown
		}
		return "at least " + Count(t, sure)
	}
	if unsure == 0 || t.Trace.Len() == 0 {
		return Count(t, sure)
	}
	return Count(t, sure) + " to " + Count(t, sure+unsure)
}

// Failures prints how many requests failed. A trace without one may have left them out.
func Failures(t *timeline.Timeline) string {
	if told := t.Recording.Told(); told.Failures != timeline.Exact {
		return "none recorded"
	}
	return Count(t, len(t.OOMs))
}

// Pool names the pool, kind and stream of a segment.
func Pool(kind snapshot.SegmentKind, pool snapshot.PoolID, stream snapshot.StreamID, expandable bool) string {
	var w []string
	if kind != snapshot.KindUnknown {
		w = append(w, kind.String()+" pool")
	}
	if pool != (snapshot.PoolID{}) {
		w = append(w, pool.String())
	}
	if stream != 0 {
		w = append(w, fmt.Sprintf("stream %d", stream))
	}
	if expandable {
		w = append(w, "expandable")
	}
	if len(w) == 0 {
		return pool.String()
	}
	return strings.Join(w, ", ")
}

// Line makes a text from the file one plain line of at most n columns.
func Line(s string, n int) string {
	if len(s) > 8*n { // bounds the work on texts that no one will read
		s = strings.ToValidUTF8(s[:8*n], "")
	}
	return Clip(Plain(s), n)
}

// Plain makes a text from the file safe for a terminal and for one line: characters that
// control, or that change how others are read without being seen, become spaces. Joiners, of
// which scripts and emoji are made, stay.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ', r == utf8.RuneError, r == 0x2028, r == 0x2029:
			return ' '
		case r < 0x7f, r == 0x200c, r == 0x200d:
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			return ' '
		}
		return r
	}, s)
}

// Setting names a setting that was replayed.
func Setting(r *whatif.Row) string {
	name := cmp.Or(r.Text, "the defaults")
	switch {
	case r.Recorded:
		name += " (as recorded)"
	case r.Needs != "":
		name += " (torch " + r.Needs + " or later)"
	}
	return name
}

// AnswerNote is the note of an answer, with the flag that would settle it.
func AnswerNote(a *oom.Answer) string {
	if a.Wants == finding.WantCapacity {
		return a.Note + "; pass --capacity 80GiB"
	}
	return a.Note
}

// LedgerWords name the parts of a device's memory.
var LedgerWords = map[oom.Row]string{
	oom.RowFree:          "free on the device",
	device.RowDriver:     "kept by the driver",
	oom.RowOthers:        "other processes",
	oom.RowNonPyTorch:    "this process outside PyTorch's allocator: CUDA context, NCCL",
	oom.RowForeign:       "other processes and this one's non-PyTorch memory, not distinguishable",
	oom.RowProcess:       "this process, PyTorch's memory included",
	oom.RowUsed:          "used by processes, PyTorch's memory included",
	oom.RowAllocated:     "allocated in tensors",
	oom.RowUnallocated:   "reserved by PyTorch but unallocated",
	device.RowReleasable: "cached: whole segments, released by empty_cache()",
	device.RowHard:       "cached: pieces between live blocks",
	device.RowSoft:       "cached: pieces at the ends of adjacent segments",
	device.RowStream:     "cached: for another stream or a private pool",
	device.RowPending:    "freed, but other streams may still use it",
	oom.RowReserved:      "reserved by PyTorch",
	oom.RowResidual:      "residual",
}

// FreeKind is a class of memory that is reserved and not allocated, as every output names and draws it.
type FreeKind struct {
	Name  string
	Means string // in more words
	Class string // of style.css
	Color color.RGBA
	Bytes func(*fragmentation.Classes) int64
}

// Property is the custom property of style.css with the color, without dashes.
func (k *FreeKind) Property() string { return k.Class[strings.IndexByte(k.Class, '-')+1:] }

// FreeKinds are in the order in which they are told and, from below, drawn. Those of a
// fragmentation.Class come first, by class. Free pieces that touch across the border of two segments
// are one piece where segments are expandable.
var FreeKinds = [...]FreeKind{
	{"releasable", "free segments: empty_cache() returns them", "k-releasable", ColorReleasable,
		func(c *fragmentation.Classes) int64 { return c.Releasable }},
	{"between live blocks", "free pieces that live blocks keep in their segment", "k-split", ColorSplit,
		func(c *fragmentation.Classes) int64 { return c.Hard }},
	{"at segment borders", "free pieces that touch across the border of their segments: expandable segments can join " +
		"them", Slot(4).Class(), Slot(4).Color(), func(c *fragmentation.Classes) int64 { return c.Soft }},
	{"other stream or pool", "free, but for another stream or a private pool",
		SlotOther.Class(), SlotOther.Color(), func(c *fragmentation.Classes) int64 { return c.Stream }},
	{"pending", "freed by the program, but another stream may still use it",
		Slot(8).Class(), Slot(8).Color(), func(c *fragmentation.Classes) int64 { return c.Pending }},
}
