package verdict

import (
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

func (j *judge) frame(id snapshot.FrameID) string { return frames.Function(j.s, id) }
