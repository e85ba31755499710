package pickle

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/snapana/snapana/snapshot"
	data "github.com/snapana/snapana/snapshot/internal/plain"
)

// DecodePlain reads one pickle of plain data, such as a memory_stats dump, with the machine that
// reads snapshots: the same instructions are refused and the same limits hold. Snapshots and
// other records of the format inside the data are left out. Errors are those of Decode.
func DecodePlain(r io.Reader, opt Options) (data.Value, Info, error) {
	d := newMachine(opt)
	info, err := d.decode(r)
	if err != nil {
		return data.Value{}, info, err
	}
	top, err := d.settle(d.stack[0])
	if top.kind == kSnapshot || d.holds(top, kSegment) {
		err = &fault{snapshot.ErrSnapshot, "is a memory snapshot, not a dump of counters"}
	}
	if err != nil {
		return data.Value{}, info, placed(err, -1, "")
	}
	// What is shared is copied: without a limit, few bytes could stand for a tree without end.
	c := copier{machine: d, left: min(d.read+1<<10, maxPlain+d.read/16)}
	v := c.value(top, 0)
	if c.err != nil {
		return data.Value{}, info, placed(c.err, -1, "")
	}
	return v, info, nil
}

// copier turns values of the machine into plain ones, until something is too much.
type copier struct {
	*machine
	left int64 // values that may still be made
	err  error
}

const (
	maxPlainDepth = 64
	maxPlain      = 1 << 20 // values of 88 bytes, beside those that a long input explains
)

func (c *copier) value(v value, depth int) (out data.Value) {
	switch c.left--; {
	case c.err != nil:
	case c.left < 0:
		c.err = &fault{snapshot.ErrLimit, "the data refers to itself so often that it would not fit into memory"}
	case depth > maxPlainDepth:
		c.err = &fault{snapshot.ErrLimit, fmt.Sprintf("values are nested more than %d deep", maxPlainDepth)}
	}
	if c.err != nil {
		return out
	}
	switch v.kind {
	case kBool:
		return data.Value{Kind: data.Bool, Int: int64(v.u)}
	case kInt:
		return data.Value{Kind: data.Int, Int: int64(v.u)}
	case kUint:
		return data.Value{Kind: data.Float, Float: float64(v.u)}
	case kBig:
		return data.Value{Kind: data.Float, Float: math.Inf(1)}
	case kFloat:
		return data.Value{Kind: data.Float, Float: math.Float64frombits(v.u)}
	case kStr:
		return data.Value{Kind: data.String, Str: c.out.Strings.Get(snapshot.StringID(v.u))}
	case kPair:
		return data.Value{Kind: data.List, Items: []data.Value{
			{Kind: data.Int, Int: int64(int32(v.u))}, {Kind: data.Int, Int: int64(int32(v.u >> 32))},
		}}
	case kTuple, kList, kEmptyList, kStack:
		out.Kind = data.List
		for _, item := range c.items(v) {
			out.Items = append(out.Items, c.value(item, depth+1))
		}
	case kEmptyDict, kDict:
		out.Kind = data.Map
		for pair := range slices.Chunk(c.span(v), 2) {
			if name, ok := c.name(pair[0]); ok {
				out.Keys, out.Items = append(out.Keys, name), append(out.Items, c.value(pair[1], depth+1))
			}
		}
	}
	return out
}

// name is the name of a dict's key.
func (c *copier) name(key value) (string, bool) {
	switch key.kind {
	case kStr, kInt:
		return c.valueText(key), true
	case kPair: // the id of a private pool, joined as torch does (snapshot/SPEC.md 6.1)
		return fmt.Sprintf("%d_%d", int32(key.u), int32(key.u>>32)), true
	}
	return "", false
}
