package change

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// A network whose lists of modules make images smaller, and larger again, has modules of other names between the two.

// isMiddle reports whether a name is of what a network has in its middle, as itself and no list.
func (m modules) isMiddle() bool {
	name := strings.ToLower(lastPart(m.name))
	return !m.within && slices.ContainsFunc([]string{"mid", "bottleneck", "bridge"}, func(word string) bool {
		return strings.HasPrefix(name, word)
	})
}

// middle are the modules of a name of a network's middle: what the function that goes through two lists calls between them. Of several
// the name tells whether it is of attention, which the lists are not of, or which of the others; nil where it does not.
func (d *draft) middle(name string) []group {
	var found []group
	lists := mainLists(d.keeping(d.lists()))
	for i := range lists[:max(len(lists)-1, 0)] {
		a, b := &lists[i].group, &lists[i+1].group
		if !d.inOneCall(a.around, b.around) {
			continue
		}
		if found != nil {
			return nil
		}
		first, last := a.calls[0].pass.rows.from, b.calls[0].rows[0]
		for _, c := range a.calls {
			if c.pass == b.calls[0].pass {
				first = c.rows[len(c.rows)-1]
			}
		}
		between := d.modules(false, func(stack []snapshot.FrameID, depth int) bool { return d.inOneCall(stack[depth:], a.around) })
		between = slices.DeleteFunc(between, func(g group) bool {
			i := slices.IndexFunc(g.calls, func(c instance) bool { return c.pass == b.calls[0].pass })
			return i < 0 || g.most > 1 || g.calls[i].rows[0] < first || g.calls[i].rows[0] > last
		})
		found = d.ofName(between, a, name)
	}
	return found
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
	attention := has("attn") || has("attention")
	if attention || has("res") || has("conv") {
		between = slices.DeleteFunc(between, func(g group) bool {
			return (d.first(&g.calls[0]) != d.first(&list.calls[0])) != attention
		})
	}
	if _, n := numberOf(name); n > 0 && n <= len(between) {
		return between[n-1 : n]
	}
	if len(between) != 1 {
		return nil
	}
	return between
}
