package pickle

import (
	"fmt"
	"io"
	"math"
	"strconv"

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
	if err == nil {
		// What is shared is copied: without a limit, few bytes could stand for a tree without end.
		c := copier{d: d, left: d.read + 1<<10}
		var v data.Value
		if v, err = c.value(top, 0); err == nil {
			return v, info, nil
		}
	}
	return data.Value{}, info, placed(err, -1, "")
}

// copier turns values of the machine into plain ones.
type copier struct {
	d    *machine
	left int64 // values that may still be made
}

const maxPlainDepth = 64

func (c *copier) value(v value, depth int) (data.Value, error) {
	if c.left--; c.left < 0 {
		return data.Value{}, &fault{snapshot.ErrLimit, "the data refers to itself so often that it would not fit into memory"}
	}
	if depth > maxPlainDepth {
		return data.Value{}, &fault{snapshot.ErrLimit, fmt.Sprintf("values are nested more than %d deep", maxPlainDepth)}
	}
	switch v.kind {
	case kBool:
		return data.Value{Kind: data.Bool, Int: int64(v.u)}, nil
	case kInt:
		return data.Value{Kind: data.Int, Int: int64(v.u)}, nil
	case kUint:
		return data.Value{Kind: data.Float, Float: float64(v.u)}, nil
	case kBig:
		return data.Value{Kind: data.Float, Float: math.Inf(1)}, nil
	case kFloat:
		return data.Value{Kind: data.Float, Float: math.Float64frombits(v.u)}, nil
	case kStr:
		return data.Value{Kind: data.String, Str: c.d.out.Strings.Get(snapshot.StringID(v.u))}, nil
	case kPair:
		return data.Value{Kind: data.List, Items: []data.Value{
			{Kind: data.Int, Int: int64(int32(v.u))}, {Kind: data.Int, Int: int64(int32(v.u >> 32))},
		}}, nil
	case kEmptyDict:
		return data.Value{Kind: data.Map}, nil
	case kTuple, kList, kEmptyList, kStack:
		return c.list(c.d.items(v), depth)
	case kDict:
		return c.dict(c.d.span(v), depth)
	}
	return data.Value{}, nil
}

func (c *copier) list(vs []value, depth int) (data.Value, error) {
	out := data.Value{Kind: data.List}
	for _, v := range vs {
		item, err := c.value(v, depth+1)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

func (c *copier) dict(pairs []value, depth int) (data.Value, error) {
	out := data.Value{Kind: data.Map}
	for i := 0; i+1 < len(pairs); i += 2 {
		var name string
		switch k := pairs[i]; k.kind {
		case kStr:
			name = c.d.out.Strings.Get(snapshot.StringID(k.u))
		case kInt:
			name = strconv.FormatInt(int64(k.u), 10)
		case kPair: // the id of a private pool, joined as torch does (snapshot/SPEC.md 6.1)
			name = fmt.Sprintf("%d_%d", int32(k.u), int32(k.u>>32))
		default:
			continue
		}
		item, err := c.value(pairs[i+1], depth+1)
		if err != nil {
			return out, err
		}
		out.Keys, out.Items = append(out.Keys, name), append(out.Items, item)
	}
	return out, nil
}
