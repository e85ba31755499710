package verdict

import (
	"fmt"

	"snapana/analyze/attribution"
	"snapana/analyze/units"
	"snapana/snapshot"
)

// siteOr is the site of a stack, in words where it has none.
func siteOr(s *snapshot.Snapshot, stack snapshot.StackID) string {
	if site := attribution.Site(s, stack); site != "" {
		return site
	}
	return "a place that was not recorded"
}

func (j *judge) frame(id snapshot.FrameID) string {
	f := j.s.Frames.Get(id)
	return fmt.Sprintf("%s (%s)", j.s.Strings.Get(f.Name), attribution.Base(j.s.Strings.Get(f.File)))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return units.Count(int64(n)) + " " + what + "s"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
