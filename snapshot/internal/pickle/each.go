package pickle

import "github.com/snapana/snapana/snapshot"

// each hands events on as they are read (Options.Each), and keeps those that are wanted.
type each struct {
	kept    *snapshot.Events // by itself, so that traces do not keep the machine alive
	runs    []eachRun        // by start
	run     int              // of the next row, -1 before the first
	next    int              // first row that was not handed on
	scanned int              // lists that were looked at
}

// eachRun is a list of events, or what is read of it so far.
type eachRun struct {
	start, n, kept, first int // the row it begins with, its length, the events kept of it and where they are
}

// drain hands on the events that are complete, which are all that have a row, and forgets them.
func (d *machine) drain() {
	if d.opt.Each == nil {
		return
	}
	x := &d.each
	for ; x.scanned < len(d.lists); x.scanned++ {
		if l := &d.lists[x.scanned]; l.elem == kEvent {
			x.begin(int(l.start))
		}
	}
	// A list whose first events still wait on the stack.
	for i := 1; i < len(d.stack); i++ {
		if v := d.stack[i]; v.kind == kEvent && d.stack[i-1].kind != kList {
			x.begin(int(v.start()))
		}
	}
	var e snapshot.Event
	for ; x.next < d.events.Len(); x.next++ {
		for x.run+1 < len(x.runs) && x.runs[x.run+1].start <= x.next {
			x.run++
			x.runs[x.run].first = x.kept.Len()
		}
		if x.run < 0 {
			continue // in no list
		}
		r := &x.runs[x.run]
		e = d.events.At(x.next)
		if d.opt.Each(d.out, x.run, r.n, &e) {
			x.kept.Add(e)
			r.kept++
		}
		r.n++
	}
	d.events.Forget(x.next)
	d.packMemo()
}

// begin notes that a list begins with a row.
func (x *each) begin(row int) {
	if n := len(x.runs); row >= x.next && (n == 0 || x.runs[n-1].start < row) {
		x.runs = append(x.runs, eachRun{start: row})
	}
}

// keptOf is the trace of a list's events that were kept, and the list's number.
func (d *machine) keptOf(list snapshot.Range) (snapshot.Trace, int, error) {
	if list.Len == 0 {
		return snapshot.Trace{}, -1, nil
	}
	x := &d.each
	for i, r := range x.runs {
		if r.start == int(list.Start) && r.n == int(list.Len) {
			return snapshot.NewTrace(x.kept, r.first, r.kept), i, nil
		}
	}
	return snapshot.Trace{}, -1, errScattered
}
