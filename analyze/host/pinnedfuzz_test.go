package host_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
)

// FuzzBuild makes up traces and states that contradict themselves: nothing makes Build fail, and
// every byte that it rebuilds lands in a row.
func FuzzBuild(f *testing.F) {
	f.Add([]byte{4, 1, 2, 1, 1, 2, 2, 1, 2, 3, 1, 2, 5, 1, 2}, []byte{1, 2, 1})
	f.Add([]byte{1, 1, 2, 1, 1, 3, 3, 2, 0, 5, 3, 9}, []byte{1, 2, 2, 1, 3, 0, 9, 0, 1})
	f.Fuzz(func(t *testing.T, trace, state []byte) {
		s := &snapshot.Snapshot{}
		s.Stacks.Intern(nil)
		events := &snapshot.Events{}
		for ; len(trace) > 2; trace = trace[3:] {
			events.Add(snapshot.Event{Action: snapshot.Action(trace[0] % byte(snapshot.NumActions)),
				Addr: uint64(trace[1] % 8 << 4), Size: int64(trace[2]%5) << 9,
				Time: int64(events.Len()), Has: snapshot.EventHasTime, Stack: snapshot.EmptyStack})
		}
		s.HostTraces = []snapshot.Trace{snapshot.NewTrace(events, 0, events.Len())}
		s.HasHostSegments = len(state)%3 > 0
		for ; len(state) > 2; state = state[3:] {
			s.HostSegments = append(s.HostSegments, snapshot.HostSegment{Address: uint64(state[0] % 8 << 4),
				Size: int64(state[1]%5) << 9, State: snapshot.BlockState(state[2] % 4)})
		}
		m := host.BuildPinned(s)
		if m == nil {
			return
		}
		end := m.At(m.Trace.Len() - 1)
		var held, cached int64
		for _, g := range m.Holders {
			held += g.Rounded
		}
		for _, c := range m.Cached {
			cached += c.Bytes
		}
		if held != end.Active || held+cached+m.Unknown != end.Reserved {
			t.Errorf("%d held, %d cached and %d unknown of %+v", held, cached, m.Unknown, end)
		}
		if end.Active > end.Reserved || end.Allocated > end.Active || m.PeakReserved.Bytes < end.Reserved ||
			m.Spare() > cached {
			t.Errorf("%+v, peak %+v", end, m.PeakReserved)
		}
		if end != m.Final {
			t.Errorf("end %+v, final %+v", end, m.Final)
		}
		verdict.JudgePinned(s, m)
	})
}
