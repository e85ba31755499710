package change_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/change"
)

// TestTwins holds that an answer covers what no recording tells. Each two programs of fixtures/lab/twins are recorded event by event alike,
// and with the change need memory that is too far apart for one figure to be within 6% of both.
func TestTwins(t *testing.T) {
	const lab, most = "../../fixtures/lab/twins/", 1.06
	for pair := range slices.Chunk(changed(t, lab), 2) {
		var events, truths []string
		var peaks []int64
		for i := range pair {
			p := &pair[i]
			in := input(t, filepath.Join(lab, p.Runs[0].File))
			events = append(events, lives(in))
			a := ask(t, in, p.Change)
			peak := p.Runs[1].Stats["reserved_bytes.all.peak"]
			peaks, truths = append(peaks, peak), append(truths, fmt.Sprint(a.After, a.Band))
			if peak < a.Band.Low || peak > a.Band.High {
				t.Errorf("%s, %s: reserved peak %d, expected between %d and %d", p.Family, p.Change, peak, a.Band.Low, a.Band.High)
			}
		}
		if events[0] != events[1] || truths[0] != truths[1] {
			t.Errorf("%s and %s are recorded in other ways, or answered: %s", pair[0].Family, pair[1].Family, truths)
		}
		if float64(slices.Max(peaks)) < float64(slices.Min(peaks))*most/(2-most) {
			t.Errorf("%s and %s need the same: %d", pair[0].Family, pair[1].Family, peaks)
		}
	}
}

// lives tells what a recording has, without addresses and times.
func lives(in *change.Input) string {
	var out strings.Builder
	s := in.Snapshot
	for i := range in.Timeline.Lives {
		l := &in.Timeline.Lives[i]
		fmt.Fprint(&out, l.Born, l.GivenUp(), l.Requested)
		for _, id := range s.Stacks.Get(l.Stack) {
			f := s.Frames.Get(id)
			fmt.Fprint(&out, " ", s.Strings.Get(f.File), s.Strings.Get(f.Name), f.Line)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
