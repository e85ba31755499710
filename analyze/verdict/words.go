package verdict

import (
	"fmt"

	"snapana/analyze/attribution"
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
