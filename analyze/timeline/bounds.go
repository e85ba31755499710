package timeline

import (
	"fmt"

	"github.com/snapana/snapana/analyze/units"
)

// Bound says how a figure relates to what happened.
type Bound uint8

const (
	Exact Bound = iota
	AtLeast
	AtMost
	Unknown
)

func (b Bound) String() string { return [...]string{"exact", "at_least", "at_most", "unknown"}[b] }

// MarshalText is String.
func (b Bound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (b *Bound) UnmarshalText(text []byte) error {
	for v := Exact; v <= Unknown; v++ {
		if v.String() == string(text) {
			*b = v
			return nil
		}
	}
	return fmt.Errorf("unknown bound %q", text)
}

// Of is a size in a sentence: "at least 2.00 GiB".
func (b Bound) Of(bytes int64) string { return b.size("at least ", "at most ", bytes) }

// Short is a size in a table: "≥ 2.00 GiB".
func (b Bound) Short(bytes int64) string { return b.size("≥ ", "≤ ", bytes) }

func (b Bound) size(least, most string, bytes int64) string {
	switch {
	case b == Exact:
		return units.Bytes(bytes)
	case b == AtMost:
		return most + units.Bytes(bytes)
	case b == AtLeast && bytes > 0:
		return least + units.Bytes(bytes)
	}
	return "unknown"
}

// And is what holds of the sum of two figures.
func (b Bound) And(other Bound) Bound {
	switch {
	case b == Exact || b == other:
		return other
	case other == Exact:
		return b
	}
	return Unknown
}

// Bounds are those of the series.
type Bounds struct {
	Reserved      Bound `json:"reserved"`
	Active        Bound `json:"active"`
	Allocated     Bound `json:"allocated"`
	Requested     Bound `json:"requested"`
	InactiveSplit Bound `json:"inactive_split"`
}

// all sets each to the same.
func (b *Bounds) all(to Bound) { *b = Bounds{to, to, to, to, to} }

// AtLeast says of what is exact that there may have been more.
func (b *Bounds) AtLeast() {
	all := Bounds{AtLeast, AtLeast, AtLeast, AtLeast, AtLeast}
	b.add(&all)
}

// Exact reports whether every series is.
func (b *Bounds) Exact() bool { return *b == Bounds{} }

func (b *Bounds) add(o *Bounds) {
	b.Reserved, b.Active = b.Reserved.And(o.Reserved), b.Active.And(o.Active)
	b.Allocated, b.Requested = b.Allocated.And(o.Allocated), b.Requested.And(o.Requested)
	b.InactiveSplit = b.InactiveSplit.And(o.InactiveSplit)
}
