package pickle

import (
	"slices"

	"github.com/snapana/snapana/snapshot"
)

// join merges a row on top of the stack with the run of its predecessors right below it.
func (d *machine) join() {
	n := len(d.stack)
	if n-2 < d.floor() {
		return
	}
	v, below := d.stack[n-1], &d.stack[n-2]
	if v.kind == below.kind && v.isRow() && below.start()+below.count() == v.start() {
		*below = run(v.kind, below.start(), below.count()+v.count())
		d.stack = d.stack[:n-1]
	}
}

// appends adds the values on the stack from row from on to the list below them.
func (d *machine) appends(from int) error {
	if from == 0 || from <= d.floor() {
		return errUnderflow
	}
	items := d.stack[from:]
	if err := d.settleAll(items); err != nil {
		return err
	}
	target := &d.stack[from-1]
	if len(items) > 0 {
		v, err := d.extend(*target, items)
		if err != nil {
			return err
		}
		if v != *target {
			if err := d.update(target, v); err != nil {
				return err
			}
		}
	}
	d.stack = d.stack[:from]
	return nil
}

// extend returns list with items added.
func (d *machine) extend(list value, items []value) (value, error) {
	switch list.kind {
	case kEmptyList:
		return d.newList(items)
	case kList:
		return list, d.extendList(&d.lists[list.u], items)
	case kStack:
		frames := d.out.Stacks.Get(snapshot.StackID(list.u))
		list = run(kOpenFrames, uint32(len(d.vals)), uint32(len(frames)))
		for _, f := range frames {
			d.vals = append(d.vals, value{u: uint64(f), kind: kFrame})
		}
		d.copied += int64(len(frames))
		return d.extendFrames(list, items)
	case kOpenFrames:
		return d.extendFrames(list, items)
	case kPair:
		// A list of two small numbers that goes on.
		vals := []value{{u: uint64(int64(int32(list.u))), kind: kInt}, {u: uint64(int64(list.u) >> 32), kind: kInt}}
		return d.newList(append(vals, items...))
	case kOpaque:
		return list, nil
	}
	return list, corrupt("adds items to something that is not a list")
}

func (d *machine) newList(items []value) (value, error) {
	if len(items) == 0 {
		return value{kind: kEmptyList}, nil
	}
	first := items[0].kind
	if first == kFrame && allFrames(items) {
		if len(items) == 1 { // others may follow one by one
			return d.extendFrames(run(kOpenFrames, 0, 0), items)
		}
		return d.stackOf(items), nil
	}
	if len(items) == 2 && smallInt(items[0]) && smallInt(items[1]) {
		return pair(items[0], items[1]), nil
	}
	rec := listRec{start: uint32(len(d.vals))}
	if items[0].isRow() {
		rec = listRec{elem: first, start: items[0].start()}
	}
	d.lists = append(d.lists, rec)
	v := value{u: uint64(len(d.lists) - 1), kind: kList}
	return v, d.extendList(&d.lists[v.u], items)
}

func allFrames(items []value) bool {
	return !slices.ContainsFunc(items, func(v value) bool { return v.kind != kFrame })
}

// stackOf is the stack of frames.
func (d *machine) stackOf(frames []value) value {
	d.scratch = d.scratch[:0]
	for _, v := range frames {
		d.scratch = append(d.scratch, snapshot.FrameID(v.u))
	}
	return value{u: uint64(d.out.Stacks.Intern(d.scratch)), kind: kStack}
}

func (d *machine) extendFrames(list value, items []value) (value, error) {
	if !allFrames(items) {
		// Not a stack after all: whatever this is, it is not part of a snapshot.
		return value{kind: kOpaque}, nil
	}
	return d.appendVals(kOpenFrames, list.start(), list.count(), items)
}

func (d *machine) extendList(l *listRec, items []value) error {
	if l.elem != kNone {
		for i, v := range items {
			if v.kind != l.elem {
				if err := d.loosen(l); err != nil {
					return err
				}
				return d.extendList(l, items[i:])
			}
			if v.start() != l.start+l.n {
				if err := d.moveRows(l, v); err != nil {
					return err
				}
			}
			l.n += v.count()
		}
		return nil
	}
	v, err := d.appendVals(kList, l.start, l.n, items)
	l.start, l.n = v.start(), v.count()
	return err
}

// loosen turns a list of rows into a list of values, for lists of mixed things.
func (d *machine) loosen(l *listRec) error {
	rows := run(l.elem, l.start, l.n)
	if err := d.copies(l.n); err != nil {
		return err
	}
	*l = listRec{start: uint32(len(d.vals))}
	return d.extendList(l, []value{rows})
}

// moveRows makes room for v at the end of l: rows are copied to the end of their table so
// that the list stays one range. Only files that list a record twice need it.
func (d *machine) moveRows(l *listRec, v value) error {
	if err := d.copies(l.n + v.count()); err != nil {
		return err
	}
	switch l.elem {
	case kEvent:
		if d.opt.Each != nil {
			return errScattered
		}
		if l.start+l.n != uint32(d.events.Len()) {
			l.start = d.copyEvents(l.start, l.n)
		}
		d.copyEvents(v.start(), v.count())
	case kSegment:
		copyRows(&d.out.Segments, l, v)
	case kBlock:
		copyRows(&d.out.Blocks, l, v)
	case kHistory:
		copyRows(&d.out.History, l, v)
	case kAnnotation:
		copyRows(&d.annots, l, v)
	case kHostSegment:
		copyRows(&d.hosts, l, v)
	}
	return nil
}

// copyEvents copies n events to the end of their table, and returns where that was.
func (d *machine) copyEvents(start, n uint32) uint32 {
	end := uint32(d.events.Len())
	for i := range n {
		d.events.Add(d.events.At(int(start + i)))
	}
	return end
}

func copyRows[T any](table *[]T, l *listRec, v value) {
	if end := uint32(len(*table)); l.start+l.n != end {
		*table = append(*table, (*table)[l.start:l.start+l.n]...)
		l.start = end
	}
	*table = append(*table, (*table)[v.start():v.start()+v.count()]...)
}

func smallInt(v value) bool {
	return v.kind == kInt && int64(v.u) == int64(int32(v.u))
}

func pair(a, b value) value {
	return value{u: uint64(uint32(a.u)) | b.u<<32, kind: kPair}
}

func (d *machine) newTuple(items []value) (value, error) {
	if len(items) == 2 && smallInt(items[0]) && smallInt(items[1]) {
		return pair(items[0], items[1]), nil
	}
	return d.appendVals(kTuple, 0, 0, items)
}
