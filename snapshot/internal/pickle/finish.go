package pickle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// result is the snapshot, or after an error what is kept of it.
func (d *machine) result(err error) (*snapshot.Snapshot, error) {
	switch {
	case err == nil:
		return d.finish()
	case d.opt.Partial:
		return d.salvage(), err
	}
	return nil, err
}

// finish makes the snapshot from the one value that is left on the stack.
func (d *machine) finish() (*snapshot.Snapshot, error) {
	top, err := d.settle(d.stack[0])
	if err == nil {
		err = d.assemble(top)
	}
	if err != nil {
		return nil, placed(err, -1, "")
	}
	return d.out, nil
}

func (d *machine) assemble(top value) error {
	out := d.out
	out.Shape = snapshot.ShapeDict
	switch {
	case top.kind == kSnapshot:
		d.fields = d.snaps[top.u]
	case top.kind == kEmptyList, d.holds(top, kSegment):
		out.Shape, d.has, d.values[keySegments] = snapshot.ShapeList, bit(keySegments), top
	case d.wrapped(top):
		out.Shape = snapshot.ShapeWrapped
	default:
		return &fault{snapshot.ErrNotSnapshot, d.form + ", but not a memory snapshot: it contains " + d.describe(top)}
	}
	if err := d.fill(); err != nil {
		return err
	}
	return d.checkShared()
}

// maxDevices is far above what one process can have.
const maxDevices = 256

// checkShared refuses records that several others claim: by sharing, few bytes could mean work
// without end for whoever walks the tables.
func (d *machine) checkShared() error {
	var blocks, history, events int64
	for i := range d.out.Segments {
		blocks += int64(d.out.Segments[i].Blocks.Len)
	}
	for i := range d.out.Blocks {
		history += int64(d.out.Blocks[i].History.Len)
	}
	for _, traces := range [][]snapshot.Trace{d.out.Traces, d.out.HostTraces} {
		for _, t := range traces {
			events += int64(t.Len())
		}
		if len(traces) > maxDevices {
			return &fault{snapshot.ErrLimit, fmt.Sprintf("traces of more than %d devices", maxDevices)}
		}
	}
	switch {
	case blocks > int64(len(d.out.Blocks)):
		return corrupt("several segments claim the same blocks")
	case history > int64(len(d.out.History)):
		return corrupt("several blocks claim the same history")
	case events > int64(d.events.Len()):
		return corrupt("several devices claim the same events")
	}
	return nil
}

// wrapped takes a snapshot from among the values of a dict.
func (d *machine) wrapped(top value) bool {
	if top.kind != kDict {
		return false
	}
	pairs := d.span(top)
	for i := 1; i < len(pairs); i += 2 {
		if pairs[i].kind == kSnapshot {
			d.noteStrange("wrapper", slices.Concat(pairs[:i-1], pairs[i+1:]))
			d.fields = d.snaps[pairs[i].u]
			return true
		}
	}
	return false
}

var nouns = map[kind]string{
	kEmptyDict: "an empty dict", kList: "a list without snapshot entries", kStack: "a list without snapshot entries",
	kTuple: "a tuple",
	kPair:  "a tuple", kStr: "a string", kInt: "a number", kUint: "a number", kBig: "a number", kFloat: "a number",
	kBool: "a number", kNone: "None",
}

// describe says in a few words what a value is, for people who opened the wrong file.
func (d *machine) describe(v value) string {
	if v.kind != kDict {
		return cmp.Or(nouns[v.kind], "an object of another type")
	}
	var keys []string
	pairs := d.span(v)
	for i := 0; i < len(pairs) && len(keys) < 5; i += 2 {
		if pairs[i].kind == kStr {
			keys = append(keys, fmt.Sprintf("%.40q", d.valueText(pairs[i])))
		}
	}
	return fmt.Sprintf("a dict of %d keys (%s)", len(pairs)/2, strings.Join(keys, ", "))
}

// fill moves the parts of a snapshot, whose dict was read last, to their places.
func (d *machine) fill() (err error) {
	out := d.out
	d.hostSegments(d.val(keyHostSegments))
	out.HasHostSegments = d.hasKey(keyHostSegments)
	out.HasAnnotations = d.hasKey(keyExternalAnnotations)
	segments := d.rowsOf(d.val(keySegments), kSegment)
	out.Segments = out.Segments[segments.Start:segments.End()]
	switch {
	case d.hasKey(keyDeviceTraces):
		out.Traces, d.numbers, err = d.traces(d.val(keyDeviceTraces))
	case d.hasKey(keyTraces):
		out.Traces, d.numbers, err = d.traces(d.val(keyTraces))
	case out.Shape == snapshot.ShapeDict:
		out.Shape = snapshot.ShapeNoTraces
	}
	if err != nil {
		return err
	}
	annotations := d.rowsOf(d.val(keyExternalAnnotations), kAnnotation)
	out.Annotations = d.annots[annotations.Start:annotations.End()]
	if d.hasKey(keyHostTraces) {
		if out.HostTraces, _, err = d.traces(d.val(keyHostTraces)); err != nil {
			return err
		}
	}
	d.settings(d.val(keyAllocatorSettings))
	for k, n := range d.unknown {
		out.Unknown = append(out.Unknown, snapshot.UnknownKey{Where: k.where, Key: out.Strings.Get(k.key), Count: n})
	}
	sorting.By(out.Unknown, func(a, b snapshot.UnknownKey) int {
		return cmp.Or(strings.Compare(a.Where, b.Where), strings.Compare(a.Key, b.Key))
	})
	return nil
}

// holds reports whether v is a list of rows of that kind.
func (d *machine) holds(v value, rows kind) bool { return v.kind == kList && d.lists[v.u].elem == rows }

// rowsOf is where the rows of such a list lie, nothing for anything else.
func (d *machine) rowsOf(v value, rows kind) snapshot.Range {
	if !d.holds(v, rows) {
		return snapshot.Range{}
	}
	l := d.lists[v.u]
	return snapshot.Range{Start: int32(l.start), Len: int32(l.n)}
}

// traces reads a list of event lists. Their numbers are for Options.Each.
func (d *machine) traces(v value) (out []snapshot.Trace, numbers []int, err error) {
	lists := d.items(v)
	if d.holds(v, kEvent) { // one device's list without the outer one
		lists = []value{v}
	}
	out = []snapshot.Trace{}
	for _, t := range lists {
		r := d.rowsOf(t, kEvent)
		if d.opt.Each == nil {
			out = append(out, snapshot.NewTrace(d.events, int(r.Start), int(r.Len)))
			continue
		}
		kept, number, err := d.keptOf(r)
		if err != nil {
			return nil, nil, err
		}
		out, numbers = append(out, kept), append(numbers, number)
	}
	return out, numbers, nil
}

// hostSegments takes the host segments, also those that look like segments or blocks of a device.
func (d *machine) hostSegments(v value) {
	hosts := d.rowsOf(v, kHostSegment)
	d.out.HostSegments = d.hosts[hosts.Start:hosts.End():hosts.End()]
	add := func(address uint64, size int64, pool snapshot.PoolID, stack snapshot.StackID, state snapshot.BlockState) {
		d.out.HostSegments = append(d.out.HostSegments, snapshot.HostSegment{Address: address, Size: size, Pool: pool,
			Stack: stack, State: state})
	}
	segments, blocks := d.rowsOf(v, kSegment), d.rowsOf(v, kBlock)
	for _, s := range d.out.Segments[segments.Start:segments.End()] {
		state := snapshot.StateUnknown
		switch {
		case s.AllocatedSize > 0:
			state = snapshot.StateAllocated
		case s.ActiveSize > 0:
			state = snapshot.StatePendingFree
		case s.Has&snapshot.SegmentHasTotals != 0:
			state = snapshot.StateInactive
		}
		if s.Blocks.Len == 1 { // it has no other, as nothing is split
			b := d.out.Blocks[s.Blocks.Start]
			state, s.Stack = b.State, max(s.Stack, b.Stack)
		}
		add(s.Address, s.TotalSize, s.Pool, s.Stack, state)
	}
	for _, b := range d.out.Blocks[blocks.Start:blocks.End()] {
		add(b.Address, b.Size, snapshot.PoolID{}, b.Stack, b.State)
	}
}

const maxSettings = 1 << 12

// settings reads allocator_settings.
func (d *machine) settings(v value) {
	s := &d.out.Settings
	s.MaxSplitSize = -1
	if v.kind != kDict {
		return
	}
	s.Present = true
	pairs := d.span(v)
	for i := 0; i+1 < len(pairs) && len(s.Values) < maxSettings; i += 2 {
		key, val := d.valueText(pairs[i]), pairs[i+1]
		switch key {
		case "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF":
			s.Conf = d.valueText(val)
		case "max_split_size":
			if isInt(val) {
				s.MaxSplitSize = clampInt(val)
			}
		case "garbage_collection_threshold":
			if val.kind == kFloat {
				s.GCThreshold = math.Float64frombits(val.u)
			}
		case "expandable_segments":
			s.ExpandableSegments = (val.kind == kBool || val.kind == kInt) && val.u != 0
		}
		if val.kind != kDict {
			s.Values = append(s.Values, snapshot.Setting{Key: key, Value: d.valueText(val)})
			continue
		}
		inner := d.span(val)
		for j := 0; j+1 < len(inner) && j < 200; j += 2 {
			k := d.valueText(inner[j])
			if len(s.Values) >= maxSettings || len(key)+len(k) > maxJoined/64 {
				break
			}
			s.Values = append(s.Values, snapshot.Setting{Key: key + "." + k, Value: d.valueText(inner[j+1])})
			if mib, err := strconv.Atoi(k); err == nil && key == "roundup_power2_divisions" && isInt(inner[j+1]) {
				for slot := range s.Roundup {
					if mib == 1<<slot {
						s.Roundup[slot] = clampInt(inner[j+1])
					}
				}
			}
		}
	}
}

func (d *machine) valueText(v value) string {
	switch v.kind {
	case kStr:
		return d.out.Strings.Get(snapshot.StringID(v.u))
	case kInt:
		return strconv.FormatInt(int64(v.u), 10)
	case kUint:
		return strconv.FormatUint(v.u, 10)
	case kFloat:
		return strconv.FormatFloat(math.Float64frombits(v.u), 'g', -1, 64)
	case kBool:
		if v.u != 0 {
			return "True"
		}
		return "False"
	case kNone:
		return "None"
	case kPair:
		return fmt.Sprintf("(%d, %d)", int32(v.u), int64(v.u)>>32)
	case kEmptyList:
		return "[]"
	case kEmptyDict:
		return "{}"
	}
	return "..."
}

// salvage closes whatever is open on the stack after a fault, leaving out the record that
// was being read, and makes a snapshot of what came before, nil where that gives none.
func (d *machine) salvage() *snapshot.Snapshot {
	for steps := 0; len(d.stack) > 1 || len(d.marks) > 0; steps++ {
		if steps > maxDepth || d.closeOne() != nil {
			return nil
		}
	}
	if len(d.stack) == 0 {
		return nil
	}
	s, _ := d.finish()
	return s
}

// closeOne closes the innermost open container.
func (d *machine) closeOne() error {
	n := len(d.stack)
	from := d.floor()
	if len(d.marks) == 0 {
		return d.closeTop()
	}
	d.marks = d.marks[:len(d.marks)-1]
	switch {
	case from == 0:
		return errUnderflow
	case from > n:
		return nil // what it was set in is gone already
	}
	switch d.stack[from-1].kind {
	case kEmptyDict, kDict, kOpenDict:
	case kEmptyList, kList, kStack, kOpenFrames, kPair, kOpaque:
		if n > from && d.stack[n-1].isOpenDict() { // just begun
			d.stack = d.stack[:n-1]
		}
		return d.appends(from)
	default:
		d.stack = d.stack[:from] // a tuple was to come
		return nil
	}
	for !pairs(d.stack[from:]) {
		// Lists of one element have no mark: key, list, the element of the list that was
		// being read.
		if err := d.closeTop(); err != nil {
			return err
		}
	}
	if n = len(d.stack); (n-from)%2 != 0 {
		d.stack = d.stack[:n-1] // a key without its value
	}
	if !d.isTop(d.stack[from:]) {
		d.stack = d.stack[:from-1] // an unfinished record
		return nil
	}
	return d.setItems(from, true)
}

// pairs reports whether what lies above a dict's mark is keys and values in turn.
func pairs(items []value) bool {
	for i := 0; i < len(items); i += 2 {
		if items[i].kind != kStr {
			return false
		}
	}
	return true
}

// closeTop closes the top of the stack into what lies below it, where no mark is between:
// container, element or container, key, value.
func (d *machine) closeTop() error {
	n := len(d.stack)
	if n-d.floor() < 2 {
		return errUnderflow
	}
	top := d.stack[n-1]
	switch d.stack[n-2].kind {
	case kStr:
		if n < 3 {
			return errUnderflow
		}
		if top.kind == kEmptyDict || top.kind == kOpenDict && !d.isTop(d.span(top)) {
			d.stack = d.stack[:n-2]
			return nil
		}
		return d.setItem()
	case kEmptyList, kList, kStack, kOpenFrames:
		if !top.isOpenDict() {
			return d.appends(n - 1)
		}
	}
	d.stack = d.stack[:n-1]
	return nil
}

// isTop reports whether pairs are those of a snapshot dict, or of one around it.
func (d *machine) isTop(pairs []value) bool {
	for i := 0; i+1 < len(pairs); i += 2 {
		k, v := pairs[i], pairs[i+1]
		if k.kind == kStr && (k.u == keySegments || k.u == keyDeviceTraces) || v.kind == kSnapshot {
			return true
		}
	}
	return false
}
