package whatif

import (
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// reason guesses why the replay and the trace disagree at an operation, from what the file has.
func (v *validator) reason(o *op) string {
	s, p := v.x.s, v.p
	pool := false
	if o.kind == opAlloc || o.kind == opFail {
		pool = p.asks[o.row].pool != 0
	}
	for i := range s.Segments {
		pool = pool || s.Segments[i].Pool != (snapshot.PoolID{})
	}
	c := &p.t.Checks
	released := v.d.kind == otherReleases || v.d.kind == otherFailure
	switch {
	case c.Inconsistent() > 0 || c.Residual != 0:
		return "The trace contradicts itself or the state: it was edited or filtered, or no allocator made it."
	case strings.HasPrefix(s.Writer, "torch_npu"):
		return "torch_npu's allocator rounds requests in its own way."
	case p.Recorded.Conf.GCThreshold > 0 && released:
		return "garbage_collection_threshold is set: it takes effect under a memory fraction, which the file does not record."
	case pool:
		return "There are private pools (CUDA graphs or MemPool): when captures begin and end is not recorded."
	case !p.Recorded.Known:
		return "The file does not record the allocator settings (torch before 2.3): they may not have been the defaults."
	case strings.Contains(p.Recorded.Text, "release_lock_on_cudamalloc:True"), strings.Contains(p.Recorded.Text, "release_lock_on_hipmalloc:True"):
		return "release_lock_on_cudamalloc lets threads change the allocator while another one's request waits for the driver."
	case released:
		return "A memory fraction that the file does not record, or memory that was given back for another reason than the trace shows."
	case p.t.Checks.PreTraceBlocks > 0:
		return "What was there before the trace is rebuilt from what remained of it, and may have lain otherwise."
	}
	return "Settings that were changed while the program ran, or a release of torch with other rules."
}
