package analyze

import (
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Alone says who holds the tensors of a recorder's file, on devices and in host memory, without a snapshot. Before is
// as in Options. It fails where the file has no dump of holders.
func Alone(f, before *sidecar.File) (*Result, error) {
	s, lines, held, notes := holder.Alone(f, before)
	if held == nil {
		return nil, &snapshot.NothingError{Msg: notes[len(notes)-1]}
	}
	r := &Result{Snapshot: s, Holders: held, Verdict: verdict.Held(s, held)}
	for i := range lines {
		r.Devices = append(r.Devices, Device{Timeline: lines[i].Timeline})
	}
	return r, nil
}
