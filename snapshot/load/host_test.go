package load

import (
	"fmt"
	"strings"
	"testing"

	"github.com/snapana/snapana/snapshot"
)

// Each spelling of host segments gives the same: those that torch's sources suggest, and that of the files of 2.14, a
// segment with one block.
func TestHostSegments(t *testing.T) {
	const frames = `"frames": [{"name": "f", "filename": "x.py", "line": 1}]`
	bools := []string{`"allocated": true, "active": true`, `"allocated": false, "active": true`,
		`"allocated": false, "active": false`}
	words := []string{`"state": "active_allocated"`, `"state": "active_pending_free"`, `"state": "inactive"`}
	sums := []string{`"allocated_size": 4096, "active_size": 4096`, `"allocated_size": 0, "active_size": 4096`,
		`"allocated_size": 0, "active_size": 0`}
	for _, c := range []struct {
		text   string
		states []string
	}{
		{`{"address": %d, "size": 4096, STATE, "owner_private_pool_id": [0, 7], ` + frames + `}`, bools},
		{`{"addr": %d, "size": 4096, STATE, "pool_id": [0, 7], ` + frames + `}`, bools},
		{`{"address": %d, "total_size": 4096, STATE, "segment_pool_id": [0, 7], ` + frames + `}`, bools},
		{`{"address": %d, "total_size": 4096, STATE, "segment_pool_id": [0, 7], ` + frames + `}`, words},
		{`{"addr": %d, "size": 4096, STATE, "segment_pool_id": [0, 7], ` + frames + `}`, words},
		{`{"device": -1, "address": %d, "total_size": 4096, STATE, "segment_pool_id": [0, 7], ` + frames + `}`, sums},
		{`{"address": %d, "total_size": 4096, "segment_pool_id": [0, 7], "blocks": [{"size": 4096, STATE, ` + frames +
			`}]}`, words},
	} {
		var all []string
		for i, state := range c.states {
			all = append(all, strings.Replace(fmt.Sprintf(c.text, 8192*(i+1)), "STATE", state, 1))
		}
		s := fromJSON(t, `{"segments": [], "device_traces": [[]], "host_segments": [`+strings.Join(all, ", ")+`]}`)
		if len(s.Segments) != 0 || !s.HasHostSegments || len(s.HostSegments) != len(all) {
			t.Errorf("%d segments, %d host segments of %s", len(s.Segments), len(s.HostSegments), all)
			continue
		}
		for i, want := range []snapshot.BlockState{snapshot.StateAllocated, snapshot.StatePendingFree,
			snapshot.StateInactive} {
			h := s.HostSegments[i]
			if h.Address != uint64(8192*(i+1)) || h.Size != 4096 || h.State != want ||
				h.Pool != (snapshot.PoolID{A: 0, B: 7}) || h.Stack <= snapshot.EmptyStack {
				t.Errorf("%+v of %s", h, all[i])
			}
		}
	}
	if s := fromJSON(t, `{"segments": [], "device_traces": [[]]}`); s.HasHostSegments {
		t.Error("host segments in a file that has none")
	}
}
