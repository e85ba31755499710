package pickle

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
)

const (
	maxStack = 2 << 20 // values on the stack
	maxDepth = 1 << 16 // open marks
	// A machine may use baseMemory plus memoryPerByte for each input byte that was read.
	// That is less than half of what is promised: a table that grows is there twice.
	baseMemory    = budget.BaseMemory * 3 / 8
	memoryPerByte = budget.MemoryPerByte / 2
)

// machine executes the data part of pickle. Its methods are the meaning of the opcodes; the
// opcode loop and the JSON reader call them.
type machine struct {
	opt  Options
	form string // what the input is, in a sentence
	src  *source
	out  *snapshot.Snapshot // on its own, so that who has it does not keep the machine alive

	fields // of the dict that is being read

	stack []value
	marks []int32 // stack heights
	memo  []memoEntry
	pages []*page // slots that are packed: those from hot on, gap in number
	hot   uint64  // slots below it are where memo has them
	gap   uint64

	palette palette // of pages

	lists []listRec
	vals  []value // elements of lists, tuples and dicts that are not rows
	boxes []value
	snaps []fields

	events    *snapshot.Events
	annots    []snapshot.Annotation
	hosts     []snapshot.HostSegment
	unknown   map[unknownKey]int64
	copied    int64                         // rows and values moved because a list was not contiguous
	settled   int64                         // values of dicts that came one item at a time and were looked at
	lines     snapshot.Stacks               // lists of strings, by the ids of these
	texts     []snapshot.StringID           // that they join to, -1 not yet known
	joined    int64                         // bytes of texts made by joining lists of texts
	interned  int64                         // bytes that the tables of distinct things take
	read      int64                         // input bytes so far, at the last window
	frameText int64                         // bytes of the names and paths of all frames
	short     map[clipKey]snapshot.StringID // texts that were cut
	strCache  [1 << 10]snapshot.StringID
	runs      runCache
	scratch   []snapshot.FrameID
	each      each
	numbers   []int // of the lists of the traces, for Info.Lists
}

type unknownKey struct {
	where string
	key   snapshot.StringID
}

func newMachine(opt Options) *machine {
	d := &machine{opt: opt, form: "is a pickle", out: new(snapshot.Snapshot), events: new(snapshot.Events),
		unknown: make(map[unknownKey]int64), each: each{run: -1, kept: new(snapshot.Events)}}
	internVocabulary(&d.out.Strings)
	d.hot = noSlot
	if opt.Each == nil {
		// A dense trace has two memo slots per event of 70 bytes. Pages that are never touched cost nothing.
		d.memo = make([]memoEntry, 0, min(opt.Size, 1<<34)/32+1<<10)
	}
	return d
}

func (d *machine) push(v value) error {
	if len(d.stack) >= maxStack {
		return errStack
	}
	d.stack = append(d.stack, v)
	return nil
}

func (d *machine) pushInt(n int64) error { return d.push(value{u: uint64(n), kind: kInt}) }

func (d *machine) mark() error {
	if len(d.marks) >= maxDepth {
		return errDepth
	}
	d.marks = append(d.marks, int32(len(d.stack)))
	return nil
}

// popMark returns the height of the stack at the last mark.
func (d *machine) popMark() (int, error) {
	if len(d.marks) == 0 {
		return 0, corrupt("has no MARK")
	}
	at := d.marks[len(d.marks)-1]
	d.marks = d.marks[:len(d.marks)-1]
	return int(at), nil
}

// floor is the height below which the current opcode may not reach.
func (d *machine) floor() int {
	if len(d.marks) == 0 {
		return 0
	}
	return int(d.marks[len(d.marks)-1])
}

// need checks that n values lie above the last mark, and takes joined rows apart so that the
// top n slots are n values.
func (d *machine) need(n int) error {
	floor := d.floor()
	for k := 1; k <= n; k++ {
		i := len(d.stack) - k
		if i < floor {
			return errUnderflow
		}
		if v := d.stack[i]; v.isRow() && v.count() > 1 {
			d.stack[i] = run(v.kind, v.start(), v.count()-1)
			d.stack = slices.Insert(d.stack, i+1, run(v.kind, v.start()+v.count()-1, 1))
		}
	}
	return nil
}

// put stores the top of the stack in memo slot i.
func (d *machine) put(i uint64) error {
	if len(d.stack) <= d.floor() {
		return errUnderflow
	}
	if i > uint64(d.read)/2+margin { // to fill a slot takes two bytes
		return &fault{snapshot.ErrLimit, fmt.Sprintf("memo index %d is too large for a file of this size", i)}
	}
	top := &d.stack[len(d.stack)-1]
	e := d.pack(*top)
	if i < d.slots() {
		if old, err := d.entry(i); err != nil {
			return err
		} else if old != noEntry {
			d.runs.reset() // what was learned about this index no longer holds
		}
		d.setEntry(i, e)
	} else {
		for d.slots() < i {
			d.memo = append(d.memo, noEntry)
		}
		d.memo = append(d.memo, e)
	}
	if i < math.MaxUint32 {
		top.memo = uint32(i) + 1
	}
	return nil
}

func (d *machine) get(i uint64) error {
	e, err := d.entry(i)
	if err != nil {
		return err
	}
	if e == noEntry {
		return corrupt("refers to memo entry %d, which does not exist", i)
	}
	v := d.unpack(e)
	switch v.kind {
	case kEmptyList, kUsedEmptyList:
		d.setEntry(i, memoEntry(kUsedEmptyList)<<memoBits)
		v.kind = kEmptyList
	case kEmptyDict, kUsedEmptyDict:
		d.setEntry(i, memoEntry(kUsedEmptyDict)<<memoBits)
		v.kind = kEmptyDict
	case kOpenFrames, kOpenDict:
		if v, err = d.settle(v); err != nil {
			return err
		}
		d.setEntry(i, d.pack(v))
	}
	return d.push(v)
}

// update replaces *v, which keeps its memo slot, and what the memo knows of it.
func (d *machine) update(v *value, by value) error {
	by.memo = v.memo
	if v.memo != 0 {
		was, err := d.entry(uint64(v.memo) - 1)
		if err != nil {
			return err
		}
		old := kind(was >> memoBits)
		if old == kUsedEmptyList || old == kUsedEmptyDict {
			return errCycle
		}
		if old == v.kind { // else the slot was given to another value
			d.setEntry(uint64(v.memo)-1, d.pack(by))
		}
	}
	*v = by
	return nil
}

// settle turns a container that was filled item by item into its final form.
func (d *machine) settle(v value) (value, error) {
	switch v.kind {
	case kOpenFrames:
		s := d.stackOf(d.span(v))
		s.memo = v.memo
		return s, nil
	case kOpenDict:
		if d.settled += int64(v.count()); d.settled > 4*d.read+1<<20 {
			return v, errCopies
		}
		r, err := d.record(d.span(v))
		if err != nil {
			return v, err
		}
		if r.kind == kDict {
			r.u = v.u // its pairs are in vals already
		}
		r.memo = v.memo
		return r, nil
	}
	return v, nil
}

// settleAll settles values in place.
func (d *machine) settleAll(vs []value) error {
	for i := range vs {
		if k := vs[i].kind; k == kOpenFrames || k == kOpenDict {
			v, err := d.settle(vs[i])
			if err != nil {
				return err
			}
			if err := d.update(&vs[i], v); err != nil {
				return err
			}
		}
	}
	return nil
}

// copies counts rows or values that must move, and fails when those are too many.
func (d *machine) copies(n uint32) error {
	if d.copied += int64(n); d.copied > d.read/8+1<<20 {
		return errCopies
	}
	return nil
}

// span is the run of vals that v stands for.
func (d *machine) span(v value) []value { return d.vals[v.start() : v.start()+v.count()] }

// appendVals adds vs to the run of vals at start of length n and returns the longer run, which
// lies elsewhere when something else follows the old one. Joined rows are taken apart.
func (d *machine) appendVals(k kind, start, n uint32, vs []value) (value, error) {
	if int(start+n) != len(d.vals) {
		if err := d.copies(n); err != nil {
			return value{}, err
		}
		old := d.vals[start : start+n]
		start = uint32(len(d.vals))
		d.vals = append(d.vals, old...)
	}
	for _, v := range vs {
		if v.isRow() {
			for r := range v.count() {
				d.vals = append(d.vals, run(v.kind, v.start()+r, 1))
			}
			continue
		}
		v.memo = 0
		d.vals = append(d.vals, v)
	}
	if len(d.vals) > math.MaxUint32/2 {
		return value{}, errMemory
	}
	return run(k, start, uint32(len(d.vals))-start), nil
}

// setItems adds the key-value pairs on the stack from row from on to the dict below them. An empty dict
// is complete with them if they came all at once.
func (d *machine) setItems(from int, atOnce bool) error {
	if from == 0 || from <= d.floor() {
		return errUnderflow
	}
	pairs := d.stack[from:]
	if len(pairs)%2 != 0 {
		return corrupt("needs pairs of keys and values")
	}
	if err := d.settleAll(pairs); err != nil {
		return err
	}
	target := &d.stack[from-1]
	by := *target
	var err error
	switch {
	case target.kind == kEmptyDict && atOnce:
		by, err = d.newDict(pairs)
	case target.kind == kEmptyDict, target.kind == kDict, target.kind == kOpenDict:
		by, err = d.appendVals(kOpenDict, target.start(), target.count(), pairs) // an empty dict is a run of nothing
	case target.kind != kOpaque:
		err = corrupt("adds keys to something that is not a dict, or is already complete")
	}
	if err == nil && len(pairs) > 0 && by.kind != kOpaque {
		err = d.update(target, by)
	}
	if err != nil {
		return err
	}
	d.stack = d.stack[:from]
	d.join()
	return nil
}

// setItem adds one pair.
func (d *machine) setItem() error {
	if err := d.need(3); err != nil {
		return err
	}
	return d.setItems(len(d.stack)-2, false)
}

// collect replaces the values from row from on by the one that is made of them.
func (d *machine) collect(from int, of func(items []value) (value, error)) error {
	items := d.stack[from:]
	if err := d.settleAll(items); err != nil {
		return err
	}
	v, err := of(items)
	if err != nil {
		return err
	}
	d.stack = d.stack[:from]
	return d.push(v)
}

// dict makes a dict of the values above the mark in one step (protocol 0).
func (d *machine) dict(from int) error {
	if (len(d.stack)-from)%2 != 0 {
		return corrupt("needs pairs of keys and values")
	}
	if err := d.collect(from, d.newDict); err != nil {
		return err
	}
	d.join()
	return nil
}

// newDict is the row of a dict, or a dict that is none of the format's.
func (d *machine) newDict(pairs []value) (value, error) {
	if len(pairs) == 0 {
		return value{kind: kEmptyDict}, nil
	}
	v, err := d.record(pairs)
	if err == nil && v.kind == kDict {
		v, err = d.appendVals(kDict, 0, 0, pairs)
	}
	return v, err
}

// global admits the one harmless class. torch.jit's tag for typed containers is admitted
// too: REDUCE with it gives back its first argument.
func (d *machine) global(module, name string) error {
	switch {
	case module == "collections" && name == "OrderedDict":
		return d.push(value{kind: kOrderedDict})
	case module == "torch.jit._pickle" && name == "restore_type_tag":
		return d.push(value{kind: kTypeTag})
	}
	return &fault{snapshot.ErrRefused, fmt.Sprintf("refused to load %s.%s: snapshots contain only data. "+
		"Do not open this file with pickle.load unless you trust its author", plain(module), plain(name))}
}

// plain shortens a name from the file and escapes what a terminal could take for a command.
func plain(name string) string {
	return strings.Trim(fmt.Sprintf("%.80q", name), `"`)
}

func (d *machine) reduce() error {
	if err := d.need(2); err != nil {
		return err
	}
	n := len(d.stack)
	callable, args := d.stack[n-2], d.stack[n-1]
	var v value
	switch {
	case callable.kind == kOrderedDict && args.kind == kTuple && args.count() == 0:
		v = value{kind: kEmptyDict}
	case callable.kind == kTypeTag && args.kind == kTuple && args.count() == 2:
		v = d.vals[args.start()]
	default:
		return &fault{snapshot.ErrRefused, "refused to call anything: snapshots contain only data"}
	}
	d.stack[n-2] = v
	d.stack = d.stack[:n-1]
	return nil
}

// perEvent is what an event is taken to need, with what an analysis makes of it.
const perEvent = 40

// checkMemory runs once per window.
func (d *machine) checkMemory() error {
	used := int64(cap(d.stack)+cap(d.vals)+cap(d.lists)+cap(d.boxes))*16 + int64(len(d.memo))*8 +
		int64(d.events.Len())*perEvent + int64(cap(d.out.Segments)+cap(d.out.Blocks)+cap(d.out.History))*8 +
		int64(cap(d.snaps))*(numKeys*16) + d.interned +
		int64(d.out.Strings.Len()+d.out.Frames.Len()+d.out.Labels.Len()+d.out.Streams.Len())*96
	if used > baseMemory+memoryPerByte*d.read {
		return errMemory
	}
	return nil
}
