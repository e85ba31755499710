package analyze

import (
	"context"

	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/snapshot"
)

// Join puts a snapshot beside the log of the same failure. Where both are about the last request that
// failed, it is explained from the snapshot, with the device's size of the message. The error is that
// of a canceled ctx.
func Join(ctx context.Context, l *oom.Log, s *snapshot.Snapshot) error {
	l.Join(s.Name, oom.Events(s))
	if l.Match == nil || !l.Match.Same {
		return nil
	}
	r, err := Run(ctx, s, Options{Capacity: l.Groups[l.Main].Total.Bytes})
	if err != nil {
		return err
	}
	for _, d := range r.Devices {
		if d.OOM != nil && d.Timeline.Device == l.Match.Device && d.OOM.Event == l.Match.Index {
			l.Explain(d.OOM)
			break
		}
	}
	return nil
}
