package chart

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
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

// PeakBytes prints a peak, which only a trace can tell.
func PeakBytes(t *timeline.Timeline, p timeline.Peak) string {
	if t.Trace.Len() == 0 {
		return Unknown
	}
	return units.Bytes(p.Bytes)
}

// Count prints a number of events, which only a trace can tell.
func Count(t *timeline.Timeline, n int) string {
	if t.Trace.Len() == 0 {
		return Unknown
	}
	return units.Count(int64(n))
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

// ClipLeft shortens a path-like text to n runes by cutting its start, where the least
// telling part of a path is.
func ClipLeft(s string, n int) string {
	have := utf8.RuneCountInString(s)
	if have <= n {
		return s
	}
	r := []rune(s)
	return "…" + string(r[have-n+1:])
}

// Clip shortens a text to n runes by cutting its end.
func Clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
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
