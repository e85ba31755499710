package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/snapshot"
)

func (j *judge) frame(id snapshot.FrameID) string {
	f := j.s.Frames.Get(id)
	return fmt.Sprintf("%s (%s)", j.s.Strings.Get(f.Name), attribution.Base(j.s.Strings.Get(f.File)))
}
