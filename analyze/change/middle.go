package change

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// A network whose lists of modules make images smaller, and larger again, has modules of other names between the two.

// isMiddle reports whether a name is of what a network has in its middle.
func (m modules) isMiddle() bool {
	first, _, _ := strings.Cut(strings.TrimRight(strings.ToLower(lastPart(m.name)), "0123456789"), "_")
	return slices.Contains([]string{"mid", "middle", "bottleneck", "bridge"}, first)
}

// isEnd reports whether a name is of one module at the beginning of a network or at its end, which no list is.
func (m modules) isEnd() bool {
	name := strings.ToLower(lastPart(m.name))
	words := []string{"head", "classifier", "stem", "embed", "embedding", "embeddings"}
	return !m.within && slices.ContainsFunc(words, func(word string) bool { return strings.HasSuffix(name, word) })
}

// middle are the modules of a name of a network's middle: the list that a function calls between two others, or what it calls between
// two lists. Of several the name tells whether it is of attention, which the lists are not of, or which of the others; nil where it
// does not.
func (d *draft) middle(m modules) []group {
	all := mainLists(d.branched(d.keeping(d.lists()), nil))
	lists := d.alongOne(all)
	switch list := d.hasMiddle(lists); {
	case list != nil && m.within:
		return []group{list.group}
	case list != nil:
		return []group{d.outermost(list.group, all)}
	case len(lists) < 2 || m.within:
		return nil
	}
	a, b := &lists[0].group, &lists[1].group
	between := d.calledBetween(a, b)
	for i := range between {
		if between[i].most > 1 {
			between[i] = d.whole(between[i])
		}
	}
	if of := d.ofName(between, a, m.name); of != nil || len(between) > 0 {
		return of
	}
	return d.inMiddle(m.name)
}

// calledBetween are the modules that a function calls between two lists.
func (d *draft) calledBetween(a, b *group) []group {
	first, last := a.calls[0].rows[0], b.calls[0].rows[0]
	for _, c := range a.calls {
		if c.pass == b.calls[0].pass {
			first = c.rows[len(c.rows)-1]
		}
	}
	between := d.modules(false, func(stack []snapshot.FrameID, depth int) bool { return d.inOneCall(stack[depth:], a.around) })
	return slices.DeleteFunc(between, func(g group) bool {
		i := slices.IndexFunc(g.calls, func(c instance) bool { return c.pass == b.calls[0].pass })
		return i < 0 || g.most > 1 && !d.callsList(&g.calls[i]) || g.calls[i].rows[0] < first || g.calls[i].rows[0] > last
	})
}

// inMiddle is what seemed to be the end of the list before it, as modules that a loop calls from another line: one module, of which the
// parts are taken for modules. It is nil where there is none, or something else between that and the next list.
func (d *draft) inMiddle(name string) []group {
	lists := d.alongOne(mainLists(d.branched(d.keeping(d.lists()), []string{name})))
	if len(lists) != 3 || len(d.calledBetween(&lists[1].group, &lists[2].group)) > 0 {
		return nil
	}
	return []group{d.whole(lists[1].group)}
}

// without has the modules of others leave a list that they were taken to be the end of.
func (d *draft) without(lists, others []group) []group {
	out := make([]group, 0, len(lists)) // never nil: a name may have no group, see attributes
	for _, g := range lists {
		calls := slices.DeleteFunc(slices.Clone(g.calls), func(c instance) bool {
			return slices.ContainsFunc(others, func(other group) bool { return other.has(c.rows[0]) })
		})
		if 0 < len(calls) && len(calls) < len(g.calls) {
			g.calls = nil
			d.put(&g, calls)
		}
		out = append(out, g)
	}
	return out
}

// alongOne are those of some lists that one call of a function goes through one after another, nil where that is so of none, or in several
// functions.
func (d *draft) alongOne(lists []keeper) (out []keeper) {
	for from := 0; from < len(lists); {
		to := from + 1
		for to < len(lists) && d.inOneCall(lists[from].around, lists[to].around) {
			to++
		}
		if to > from+1 {
			if out != nil {
				return nil
			}
			out = lists[from:to]
		}
		from = to
	}
	return out
}

// hasMiddle is the middle one of three lists, whose modules keep as much each, as of images that get neither smaller nor larger; nil for
// others.
func (d *draft) hasMiddle(lists []keeper) *keeper {
	if len(lists) != 3 || d.goesOneWay(&lists[1], true) || d.goesOneWay(&lists[1], false) {
		return nil
	}
	return &lists[1]
}

// ways are, of some lists, those that one function calls one after another, where as many names are of an encoder and a decoder, or that
// make images smaller and larger again, where a network has another in its middle; nil for others.
func (d *draft) ways(lists []keeper, names []string) []keeper {
	other := func(name string) bool { return turn(name) < 0 && half(name) < 0 }
	of := d.alongOne(lists)
	switch {
	case slices.ContainsFunc(names, other):
		return nil
	case d.hasMiddle(of) != nil:
		return []keeper{of[0], of[2]}
	case len(names) > 1 && len(of) == len(names):
		return of
	}
	return nil
}

// inOneCall reports whether two lines, given with the frames outside of them, call modules from one call of a function.
func (d *draft) inOneCall(a, b []snapshot.FrameID) bool {
	x, y := d.lineOfModule(a), d.lineOfModule(b)
	return slices.Equal(a[x+1:], b[y+1:]) && d.functions[a[x]] == d.functions[b[y]]
}

// ofName is the one of some modules that a name means, of those between lists.
func (d *draft) ofName(between []group, list *group, name string) []group {
	name = strings.ToLower(lastPart(name))
	has := func(word string) bool { return strings.Contains(name, word) }
	_, n := numberOf(name)
	attention := has("attn") || has("attention")
	other := func(g group) bool { return d.first(&g.calls[0]) != d.first(&list.calls[0]) }
	if attention || has("res") || has("conv") || n >= 0 && slices.ContainsFunc(between, func(g group) bool { return !other(g) }) {
		between = slices.DeleteFunc(between, func(g group) bool { return other(g) != attention })
	}
	if n > 0 && n <= len(between) {
		return between[n-1 : n]
	}
	switch {
	case len(between) == 0, name != "mid" && !strings.HasSuffix(name, "block") && len(between) > 1:
		return nil
	}
	return between[len(between)-1:] // what comes before may be of the lists, in a branch of its own
}
