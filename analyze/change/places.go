package change

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// A line that calls modules has a name, as "model.py:43 forward", by which a user asks for it. Where stacks go through a line is its
// place.

// called are the frames from the line on that a group goes by.
func (r *run) called(g *group) []snapshot.FrameID { return g.around[r.lineAt(g.around, 0):] }

// lineOf names a line that calls modules.
func (r *run) lineOf(stack []snapshot.FrameID, depth int) string {
	return frames.Bare(attribution.FrameText(r.s, stack[r.lineAt(stack, depth)]))
}

// lineAt is the depth of the line that a call of a module goes by: one in a list of torch's goes by the line that calls the list, with
// the modules.
func (r *run) lineAt(stack []snapshot.FrameID, depth int) int {
	if r.contains(stack[depth]) {
		for d := depth + 1; d < len(stack); d++ {
			if r.isCode(stack, d) && !r.contains(stack[d]) {
				return d
			}
		}
	}
	return depth
}

// lineOfModule is the depth of the line of the module itself that a call goes by, which may call functions of its own that call it; of
// one that no module makes, of the line that does.
func (r *run) lineOfModule(around []snapshot.FrameID) int {
	line := r.lineAt(around, 0)
	if r.inModule(around, line) {
		for at := r.byFunction(around, line); at >= 0; at = r.byFunction(around, at) {
			line = at
		}
	}
	return line
}

// byFunction is the depth of the line in the same module that called the function whose line at depth calls modules, -1 for none.
func (r *run) byFunction(stack []snapshot.FrameID, depth int) int {
	for d := depth + 1; d < len(stack) && !frames.Of(r.s, stack[d]).IsModuleCall(); d++ {
		if r.isCode(stack, d) {
			return d
		}
	}
	return -1
}

// nameApart has groups of one line, in a function that several lines of a module call, go by those.
func (r *run) nameApart(groups []group) {
	type named struct {
		around []snapshot.FrameID // from the line on
		by     int                // see byFunction
	}
	lines := make([]named, len(groups))
	for i := range groups {
		around := r.called(&groups[i])
		lines[i] = named{around, r.byFunction(around, 0)}
	}
	for i, a := range lines {
		apart := func(b named) bool {
			return a.by == b.by && a.around[a.by] != b.around[b.by] && slices.Equal(a.around[:a.by], b.around[:b.by])
		}
		if a.by >= 0 && slices.ContainsFunc(lines, apart) {
			groups[i].line = r.lineOf(a.around, a.by)
		}
	}
}

// matches reports whether a frame is at a line: "model.py:43", with folders before it and the function behind it.
func (r *run) matches(id snapshot.FrameID, line string) bool {
	text := frames.Bare(attribution.FrameText(r.s, id))
	if file, _, ok := strings.Cut(text, " "); ok && !strings.Contains(line, " ") {
		text = file
	}
	return text == line || strings.HasSuffix(text, "/"+line)
}

// place is a line of code.
type place struct {
	depths []int32 // by stack, 1 + the depth from outside of its outermost frame there
}

// place finds a line in all stacks, nil where none goes through it.
func (r *run) place(line string) *place {
	return r.placeWhere(func(id snapshot.FrameID) bool { return r.matches(id, line) })
}

// depth is that of the outermost frame there, counted from outside, -1 for a stack that does not go through it.
func (p *place) depth(stack snapshot.StackID) int { return int(p.depths[stack]) - 1 }

// callOf finds the calls of the program's functions of a name in all stacks, nil where none goes through one: the frame outside.
func (r *run) callOf(function string) *place {
	p := r.placeWhere(func(id snapshot.FrameID) bool {
		return r.name(id) == function && !frames.Of(r.s, id).IsLibrary()
	})
	if p != nil {
		for i := range p.depths {
			p.depths[i] = max(p.depths[i]-1, 0)
		}
	}
	return p
}

// placeWhere finds frames in all stacks, nil where there are none.
func (r *run) placeWhere(is func(id snapshot.FrameID) bool) *place {
	at := make([]bool, r.s.Frames.Len()+1)
	found := false
	for id := 1; id < len(at); id++ {
		at[id] = is(snapshot.FrameID(id))
		found = found || at[id]
	}
	if !found {
		return nil
	}
	p := &place{make([]int32, r.s.Stacks.Len()+1)}
	for i := range p.depths {
		stack := r.stack(snapshot.StackID(i))
		for depth := range stack {
			if at[stack[len(stack)-1-depth]] {
				p.depths[i] = int32(depth) + 1
				break
			}
		}
	}
	return p
}
