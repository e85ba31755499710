package sidecar

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Records are read by the msgpack tags that they are written by. A field without a tag is none of the
// record's; the numbers of a list of signed ones are refused below what its tag min says.

// field is where the value of a key goes.
type field struct {
	index []int // as of reflect.Value.FieldByIndex
	low   int64 // the least number of a list
}

// tables holds the map[string]field of each struct type that was met, by its reflect.Type.
var tables sync.Map

func tableOf(t reflect.Type) map[string]field {
	if have, ok := tables.Load(t); ok {
		return have.(map[string]field)
	}
	table := map[string]field{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("msgpack")
		if tag == ",inline" {
			for key, inside := range tableOf(f.Type) {
				table[key] = field{append([]int{i}, inside.index...), inside.low}
			}
		} else if key, _, _ := strings.Cut(tag, ","); key != "" {
			low := int64(math.MinInt64)
			if min, err := strconv.ParseInt(f.Tag.Get("min"), 10, 64); err == nil {
				low = min
			}
			table[key] = field{f.Index, low}
		}
	}
	tables.Store(t, table)
	return table
}

// record decodes n pairs of keys and values into the struct that to points to.
func (c *cursor) record(to any, n int) {
	v := reflect.ValueOf(to).Elem()
	c.pairs(n, c.fieldsOf(v))
	c.complete(v)
}

// object decodes a map into the struct v.
func (c *cursor) object(v reflect.Value) {
	c.fields(c.fieldsOf(v))
	c.complete(v)
}

func (c *cursor) fieldsOf(v reflect.Value) func(key string) bool {
	table := tableOf(v.Type())
	return func(key string) bool {
		f, ok := table[key]
		if ok {
			c.value(v.FieldByIndex(f.index), f.low)
		}
		return ok
	}
}

// complete lets a struct look at all that it was given, and say what is wrong.
func (c *cursor) complete(v reflect.Value) {
	if s, ok := v.Addr().Interface().(interface{ check(*cursor) string }); ok && c.err == nil {
		if msg := s.check(c); msg != "" {
			c.fail(msg)
		}
	}
}

// value decodes the next value into v.
func (c *cursor) value(v reflect.Value, low int64) {
	switch to := v.Addr().Interface().(type) {
	case *string:
		*to = c.str()
	case *int64:
		*to = c.int()
	case **int64:
		*to = c.opt()
	case **bool:
		*to = c.bool()
	case *[]string:
		*to = c.strings()
	case *[]int64:
		*to = column[int64](c, low, math.MaxInt64)
	case *[]int32:
		*to = column[int32](c, low, math.MaxInt32)
	case *[]uint32:
		*to = column[uint32](c, 0, math.MaxUint32)
	case *[]StringID:
		*to = column[StringID](c, 0, math.MaxUint32)
	case *[]TensorFlags:
		*to = column[TensorFlags](c, 0, math.MaxUint8)
	case *[]uint64:
		*to = c.addresses()
	case *map[string]int64:
		*to = map[string]int64{}
		c.fields(func(key string) bool { (*to)[key] = c.int(); return true })
	case *map[string]any:
		*to = map[string]any{}
		c.fields(func(key string) bool {
			scalar, ok := c.scalar()
			if ok {
				(*to)[key] = scalar
			}
			return ok
		})
	default:
		c.structs(v)
	}
}

// structs is value for a struct, a pointer to one or a list of them.
func (c *cursor) structs(v reflect.Value) {
	switch t := v.Type(); t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		c.object(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 0, 0))
		c.maps(func() {
			v.Set(reflect.Append(v, reflect.Zero(t.Elem())))
			c.object(v.Index(v.Len() - 1))
		})
	default:
		c.object(v)
	}
}
