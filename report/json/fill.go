package json

import (
	"reflect"
	"strings"
)

// filler puts empty lists in the place of nil ones. It knows of types whether they can have any: a report has many
// points that have none.
type filler map[reflect.Type]bool

// fill sees to it that no array is null, but for fields that are then left out. What v points to is copied, not
// changed.
func (f filler) fill(v reflect.Value) {
	t := v.Type()
	if !f.lists(t) {
		return
	}
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		c := reflect.New(v.Elem().Type())
		c.Elem().Set(v.Elem())
		f.fill(c.Elem())
		if t.Kind() == reflect.Interface {
			c = c.Elem()
		}
		v.Set(c)
	case reflect.Slice:
		c := v
		if v.IsNil() || f.lists(t.Elem()) {
			c = reflect.MakeSlice(t, v.Len(), v.Len())
			reflect.Copy(c, v)
			v.Set(c)
		}
		fallthrough
	case reflect.Array:
		if f.lists(t.Elem()) {
			for i := range v.Len() {
				f.fill(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if written(field) && !(strings.Contains(field.Tag.Get("json"), ",omit") && v.Field(i).IsZero()) {
				f.fill(v.Field(i))
			}
		}
	}
}

// lists reports whether a value of a type can have a list in what is written of it.
func (f filler) lists(t reflect.Type) bool {
	known, ok := f[t]
	if ok {
		return known
	}
	f[t] = true // of what has itself in it, until more is known
	switch t.Kind() {
	case reflect.Slice, reflect.Interface:
		known = true
	case reflect.Pointer, reflect.Array:
		known = f.lists(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			known = known || written(t.Field(i)) && f.lists(t.Field(i).Type)
		}
	}
	f[t] = known
	return known
}

func written(f reflect.StructField) bool {
	return f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous)
}
