package fragmentation

import (
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Sample is the free memory of a device right after one event.
type Sample struct {
	Event         int     `json:"event"`
	Time          int64   `json:"time_us"`
	Reserved      int64   `json:"reserved"`
	Allocated     int64   `json:"allocated"`
	LargestUsable int64   `json:"largest_usable"`
	Classes       Classes `json:"classes"`
	Groups        []Group `json:"groups"` // streams and pools, most reserved bytes first
}

// Over measures a device at up to n events, evenly spread over its trace, the last one
// included.
func Over(s *snapshot.Snapshot, t *timeline.Timeline, n int) []Sample {
	last := t.Trace.Len() - 1
	n = min(n, last+1)
	var out []Sample
	for i := 1; i <= n; i++ {
		st := t.StateAt(last * i / n)
		r := Measure(s, t, st)
		out = append(out, Sample{st.Event, st.Time, st.Totals.Reserved, st.Totals.Allocated, r.LargestUsable, r.Classes, r.Groups})
	}
	return out
}
