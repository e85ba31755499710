package sidecar

import (
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Records are read by the msgpack tags that they are written by. A field without a tag is none of the
// record's; the numbers of a list of signed ones are refused below what its tag min says. The tag record of
// a Run's field names the type of the records that it takes.

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
	for f := range t.Fields() {
		tag := f.Tag.Get("msgpack")
		if tag == ",inline" {
			for key, inside := range tableOf(f.Type) {
				table[key] = field{append(f.Index[:1:1], inside.index...), inside.low}
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

// Keys are those of all records of the format, and of what is in them. Those of an env are not among them.
func Keys() map[string]bool {
	keys := map[string]bool{"type": true}
	addKeys(keys, reflect.TypeFor[Run]())
	return keys
}

func addKeys(keys map[string]bool, t reflect.Type) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for key := range tableOf(t) {
		keys[key] = true
	}
	for f := range t.Fields() {
		if f.Tag.Get("msgpack") != "" || f.Tag.Get("record") != "" {
			addKeys(keys, f.Type)
		}
	}
}

// decoder turns records into the runs of a File.
type decoder struct {
	cursor
	runs []Run
}

// record decodes one complete record. When it fails, it has changed nothing but the counts of
// what is unknown.
func (d *decoder) record(frame []byte, offset int64) error {
	c := &d.cursor
	c.reset(frame, offset)
	n := c.mapLen() - 1
	if n < 0 || c.str() != "type" {
		c.fail("a record does not begin with its type")
	}
	kind := c.str()
	c.path = append(c.path, kind)
	if kind == "header" {
		var r Run
		if c.fields(reflect.ValueOf(&r).Elem(), n); c.err != nil {
			return c.err
		}
		if msg := r.Header.wrong(); msg != "" {
			return &FormatError{Offset: offset, Msg: msg, Err: ErrNotSidecar}
		}
		d.runs, c.names = append(d.runs, r), map[int64][]string{}
		return nil
	}
	if c.err == nil && len(d.runs) == 0 {
		c.fail("comes before any header")
	}
	if c.err != nil {
		return c.err
	}
	run := &d.runs[len(d.runs)-1]
	switch kind {
	case "env": // adds to those before it
		var env struct {
			Time int64          `msgpack:"time"`
			Env  map[string]any `msgpack:"env"`
		}
		if c.fields(reflect.ValueOf(&env).Elem(), n); c.err != nil {
			break
		}
		if run.Env == nil {
			run.Env = map[string]any{}
		}
		maps.Copy(run.Env, env.Env)
	case "names": // of later statistics
		var names struct {
			Time  int64    `msgpack:"time"`
			ID    *int64   `msgpack:"id"`
			Names []string `msgpack:"names"`
		}
		if c.fields(reflect.ValueOf(&names).Elem(), n); c.err == nil && names.ID != nil {
			c.names[*names.ID] = names.Names
		}
	default:
		d.take(run, kind, n)
	}
	return c.err
}

// takers are the fields of Run that take records, by their type.
var takers = func() map[string]int {
	out := map[string]int{}
	for f := range reflect.TypeFor[Run]().Fields() {
		if kind := f.Tag.Get("record"); kind != "" {
			out[kind] = f.Index[0]
		}
	}
	return out
}()

// take decodes a record of n pairs for the field of a run that takes its type: into a new item of a list,
// or in place of what was there.
func (c *cursor) take(run *Run, kind string, n int) {
	at, known := takers[kind]
	if !known {
		c.count()
		return
	}
	v := reflect.ValueOf(run).Elem().Field(at)
	t := v.Type()
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	item := reflect.New(t).Elem()
	to := item
	if t.Kind() == reflect.Pointer {
		item.Set(reflect.New(t.Elem()))
		to = item.Elem()
	}
	c.fields(to, n)
	if v.Kind() == reflect.Slice {
		item = reflect.Append(v, item)
	}
	if c.err == nil {
		v.Set(item)
	}
}

// fields decodes n pairs of keys and values into the struct v, and lets it look at all that it was given, and
// say what is wrong.
func (c *cursor) fields(v reflect.Value, n int) {
	table := tableOf(v.Type())
	c.pairs(n, func(key string) bool {
		f, ok := table[key]
		if ok {
			c.value(v.FieldByIndex(f.index), f.low)
		}
		return ok
	})
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
	case *bool:
		*to = c.bool()
	case *[]string:
		*to = list(c, c.str)
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
		*to = list(c, c.address)
	case *map[string]int64:
		*to = map[string]int64{}
		c.pairs(c.mapLen(), func(key string) bool { (*to)[key] = c.int(); return true })
	case *map[string]any:
		*to = map[string]any{}
		c.pairs(c.mapLen(), func(key string) bool {
			scalar := c.scalar()
			if scalar != nil {
				(*to)[key] = scalar
			}
			return scalar != nil
		})
	default:
		c.structs(v, low)
	}
}

// structs is value for a struct, a list of them or a pointer.
func (c *cursor) structs(v reflect.Value, low int64) {
	switch t := v.Type(); t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		c.value(v.Elem(), low)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 0, 0))
		for n := c.listLen(); n > 0 && c.err == nil; n-- {
			// A nil is refused: it would take one byte of the file and a whole struct here.
			v.Set(reflect.Append(v, reflect.Zero(t.Elem())))
			c.fields(v.Index(v.Len()-1), c.mapLen())
		}
	default:
		c.fields(v, c.mapLen())
	}
}
