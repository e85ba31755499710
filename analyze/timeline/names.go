package timeline

import (
	"fmt"
	"iter"
	"slices"
)

// Name tells a block from all others that lived at its address: torch's memory_viz calls it b7f064c00000_2. Its
// Generation counts the blocks of the file at that address from 0 on, in order of birth.
type Name struct {
	Addr       uint64
	Generation int32
}

// String is the name that memory_viz prints (torch/utils/viz/MemoryViz.js, version_space).
func (n Name) String() string { return fmt.Sprintf("b%x_%d", n.Addr, n.Generation) }

// MarshalText is String.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// Names names lives, rows of Lives in any order. It takes time in the number of all lives.
func (t *Timeline) Names(rows []int32) []Name {
	out := make([]Name, len(rows))
	if len(rows) == 0 {
		return out
	}
	before := newTable(min(len(rows), 1<<20)) // blocks so far at the addresses that are asked for
	for _, row := range rows {
		before.put(t.Lives[row].Addr, 0)
	}
	order := byRow(rows)
	row := int32(0)
	for _, i := range order {
		for ; row < rows[i]; row++ {
			if n := before.at(t.Lives[row].Addr); n != nil {
				*n++
			}
		}
		addr := t.Lives[row].Addr
		n, _ := before.get(addr)
		out[i] = Name{addr, n}
	}
	return out
}

// Homes are the ranges that lives were born in, by row of Lives in any order; without a size where the file has
// no range there.
func (t *Timeline) Homes(rows []int32) []Range {
	out := make([]Range, len(rows))
	home := t.homes()
	for _, i := range byRow(rows) {
		out[i] = home(&t.Lives[rows[i]])
	}
	return out
}

// AllHomes gives each row of Lives with the range that it was born in, as Homes has them.
func (t *Timeline) AllHomes() iter.Seq2[int32, Range] {
	return func(yield func(int32, Range) bool) {
		home := t.homes()
		for row := range t.Lives {
			if !yield(int32(row), home(&t.Lives[row])) {
				return
			}
		}
	}
}

// homes finds the ranges of lives that are asked for in order.
func (t *Timeline) homes() func(l *Life) Range {
	now, done := slices.Clone(Ranges(t.Initially)), 0
	return func(l *Life) Range {
		for ; done < len(t.Changes) && t.Changes[done].Event <= int(l.Born); done++ {
			now.Apply(&t.Changes[done])
		}
		if k := now.Holding(l.Addr); k >= 0 {
			return now[k]
		}
		return Range{}
	}
}

// byRow are the places of a list of rows, by row.
func byRow(rows []int32) []int {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	if !slices.IsSorted(rows) {
		slices.SortFunc(order, func(a, b int) int { return int(rows[a]) - int(rows[b]) })
	}
	return order
}
