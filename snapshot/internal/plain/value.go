// Package plain reads plain data as programs save it: JSON and JSON lines, what Python's
// print makes of dicts and lists, and MessagePack. Values have one shape for all of them, and
// for pickles (see the package pickle).
//
// Input is read once and never trusted: nesting, the length of texts and the size of one
// value are limited, and memory grows with the bytes that were really read. A sequence of
// values is read one value at a time.
package plain

import (
	"fmt"
	"strings"
)

// Kind is the type of a Value.
type Kind uint8

const (
	Nil Kind = iota
	Bool
	Int
	Float // also integers that need more than 64 bits: they lose digits
	String
	List // also tuples
	Map
)

func (k Kind) String() string {
	return [...]string{"nothing", "true or false", "a number", "a number", "a string", "a list", "a dict"}[k]
}

// Value is one value with all that it holds.
type Value struct {
	Kind  Kind
	Int   int64 // of a Bool 0 or 1
	Float float64
	Str   string
	Items []Value  // of a List; of a Map its values
	Keys  []string // of a Map; numbers in decimal, tuples joined with "_"
}

// Limits on one value.
const (
	maxDepth = 64
	maxNodes = 1 << 20 // 88 bytes each, of one byte of MessagePack
	maxText  = 1 << 20
)

// key turns a Map's key into a text, false when it is none.
func key(v *Value) (string, bool) {
	switch v.Kind {
	case String:
		return v.Str, true
	case Int:
		return fmt.Sprint(v.Int), true
	case List: // torch joins the ids of a private pool the same way (snapshot/SPEC.md 6.1)
		parts := make([]string, len(v.Items))
		for i := range v.Items {
			part, ok := key(&v.Items[i])
			if !ok || v.Items[i].Kind == List {
				return "", false
			}
			parts[i] = part
		}
		s := strings.Join(parts, "_")
		return s, s != ""
	}
	return "", false
}

// pairs turns [(key, value), ...] into a Map, as OrderedDict is printed by Python up to 3.11.
func pairs(v *Value) (Value, bool) {
	out := Value{Kind: Map}
	for i := range v.Items {
		p := &v.Items[i]
		if p.Kind != List || len(p.Items) != 2 {
			return out, false
		}
		k, ok := key(&p.Items[0])
		if !ok {
			return out, false
		}
		out.Keys, out.Items = append(out.Keys, k), append(out.Items, p.Items[1])
	}
	return out, true
}
