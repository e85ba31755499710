package whatif

// retry sorts out the completed frees in front of a request that made the allocator give memory
// back: those for which it waited belong behind the request, which had found nothing without
// them. Frees that are found complete when a request begins come first in the trace, those that
// are waited for after what garbage collection and max_split_size give back, and before all
// else. Where nothing parts the two, all are taken to be waited for: the request has found
// nothing with them either.
type retry struct {
	begun        bool
	first, later int // completed frees before the first release and after it
}

// trailing counts the completed frees at the end.
func trailing(ops []op) int {
	n := 0
	for n < len(ops) && ops[len(ops)-1-n].kind == opComplete {
		n++
	}
	return n
}

// release is told of a release inside a request.
func (r *retry) release(ops []op) {
	if n := trailing(ops); !r.begun {
		*r = retry{begun: true, first: n}
	} else {
		r.later = n - r.first
	}
}

// end moves the last operation, which is the request, in front of what it waited for.
func (r *retry) end(ops []op) {
	n := r.later
	if n == 0 {
		n = r.first
	}
	if r.begun && n > 0 {
		at := len(ops) - 1 - n
		request := ops[len(ops)-1]
		copy(ops[at+1:], ops[at:])
		ops[at] = request
		for i := range ops[at+1:] {
			ops[at+1+i].event = request.event
		}
	}
	*r = retry{}
}
