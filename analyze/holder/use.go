package holder

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// text is how the program's text uses names (sidecar.Uses), nil where that was not recorded.
type text struct {
	*sidecar.Uses
	rows    map[string][]int // by name
	lengths map[string][]int // what "length" says of a class, at most mostNamed each
	whole   bool             // all of the text was read, and all of it is in rows
}

// mostUses bounds the uses of one name.
const mostUses = 1024

func newText(u *sidecar.Uses) *text {
	if u == nil {
		return nil
	}
	t := &text{u, map[string][]int{}, map[string][]int{}, u.Whole}
	for i, name := range u.Name {
		if u.How[i] == "length" && len(t.lengths[name]) < mostNamed {
			t.lengths[name] = append(t.lengths[name], i)
		}
		if len(t.rows[name]) == mostUses {
			t.whole = false
			continue
		}
		t.rows[name] = append(t.rows[name], i)
	}
	return t
}

// place is where a use is: "train.py:31 Trainer.mean".
func (t *text) place(row int) string {
	file := path.Base(strings.ReplaceAll(t.File[row], `\`, "/"))
	return bounded(fmt.Sprintf("%s:%d %s", file, t.Line[row], t.Function[row]))
}

// of are the rows of a name that can mean what a reference names: of an attribute those of any object, of a variable
// those in the functions that may share it, and of a global variable all.
func (t *text) of(r *Reference, name string) []int {
	scope, file := strings.ReplaceAll(r.Function, ".<locals>", ""), r.File
	switch r.Kind {
	case Closure, Default:
		scope, _, _ = strings.Cut(scope, ".") // it belongs to a function around
		if !strings.Contains(r.Function, ".") {
			scope = "" // as before Python 3.11, where frames have the function's own name only
		}
	case Local, Generator:
		if strings.HasPrefix(scope, "<") {
			scope = ""
		}
	default:
		scope, file = "", ""
	}
	var out []int
	for _, i := range t.rows[name] {
		switch {
		case r.Kind == Attribute || r.Kind == ClassAttr || r.Kind == Hook:
			if t.Attribute[i] == 0 {
				continue
			}
		case file != "" && (t.Attribute[i] != 0 || path.Base(strings.ReplaceAll(t.File[i], `\`, "/")) != file),
			scope != "" && !strings.Contains("."+t.Function[i]+".", "."+scope+"."):
			continue
		}
		out = append(out, i)
	}
	return out
}

// code says how the program's text uses the objects behind a reference, by all names that they have; nil where that is
// not known.
func (f *finder) code(h *Holder) *finding.Code {
	if f.text == nil || h.Variable == "" || len(h.object) == 0 {
		return nil
	}
	rows := f.text.of(&h.Reference, h.Variable)
	c := &finding.Code{Whole: f.text.whole}
	if h.Formerly != nil {
		rows = append(rows, f.text.of(h.Formerly, h.Formerly.Variable)...)
	}
	names, plain := f.aliases(h)
	c.Whole = c.Whole && plain
	for name := range names {
		if name != h.Variable && (h.Formerly == nil || name != h.Formerly.Variable) {
			rows = append(rows, f.text.rows[name]...)
		}
	}
	for _, i := range rows {
		switch where := f.text.place(i); f.text.How[i] {
		case "recent":
			f.recent(h, c, i, where)
		case "add", "set":
			if c.Adds++; c.Adds == 1 {
				h.aside.fills(h, f.text, i)
			}
			c.Added = cmp.Or(c.Added, where)
		case "fill":
			c.Filled = cmp.Or(c.Filled, where)
		case "read":
			c.Reads++
			c.Read = cmp.Or(c.Read, where)
		case "drop":
			c.Drops++
			c.Dropped = cmp.Or(c.Dropped, where)
		}
	}
	if c.Newest > 0 && c.Newest >= c.Length { // so far those are all
		c.Reads++
		c.Read = cmp.Or(c.Read, c.Recent)
	}
	if c.Adds == 0 && c.Reads == 0 && c.Drops == 0 {
		return nil // its text was not among what was read
	}
	return c
}

// recent notes a place of the text that reads the last entries only.
func (f *finder) recent(h *Holder, c *finding.Code, row int, where string) {
	count := f.text.Right[row]
	if count == "" {
		return // one entry
	}
	c.Recent = cmp.Or(c.Recent, where)
	for _, v := range h.object[:min(len(h.object), mostNamed)] {
		c.Length = max(c.Length, f.g.length(v))
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = -1
		for i := f.g.into.first[h.object[0]]; i < f.g.into.first[h.object[0]+1]; i++ {
			if value, known := f.g.numbers[f.g.into.to[i]][count]; known {
				n = value
			}
		}
	}
	if n <= 0 { // none is all of them
		c.Newest = -1
	} else if c.Newest >= 0 {
		c.Newest = max(c.Newest, n)
	}
}

// length is how many entries a container has, or rows a tensor.
func (g *graph) length(v int32) int64 {
	if n, ok := g.numbers[v]["len()"]; ok {
		return n
	}
	if row := g.tensors[v]; row >= 0 {
		rows, _, _ := strings.Cut(g.h.String(g.h.Tensors.Shape[row]), "x")
		n, _ := strconv.ParseInt(rows, 10, 64)
		return n
	}
	return int64(len(g.links.of(v)))
}

// aliases are the names by which the objects behind a reference can be used. Plain says that there is no way to them
// without one, such as a place in a container.
func (f *finder) aliases(h *Holder) (names map[string]bool, plain bool) {
	g := f.g
	names, plain = map[string]bool{}, true
	for _, v := range h.object[:min(len(h.object), mostNamed)] {
		for i := g.into.first[v]; i < g.into.first[v+1]; i++ {
			from, tag := g.into.to[i], g.into.tag[i]
			if f.tree.number[from] < 0 || f.tree.over(v, from) {
				continue
			}
			switch g.edgeKind(tag) {
			case "attr", "local", "global", "closure", "default":
				names[g.label(tag)] = true
			case "contents":
				last := min(g.into.first[from+1], g.into.first[from]+mostNamed)
				plain = plain && last == g.into.first[from+1]
				for k := g.into.first[from]; k < last; k++ {
					names[g.label(g.into.tag[k])] = true
				}
			case "":
			default:
				plain = plain && from == g.from[v]
			}
		}
	}
	return names, plain
}

// boundByText adds the bounds that the program's text has for containers: what their length, or a counter of it, is
// compared with before something is added; the modulus of an index; the length of the data set that has them; the
// length of a list that was made with its places empty. What an attribute hints at counts no longer where the text has
// another way with the container.
func (g *graph) boundByText(t *text) {
	numbers, h := g.numbers, g.h
	known := map[Reference]uses{}
	for e, kind := range h.Edges.Kind {
		owner, v := int32(h.Edges.From[e]), int32(h.Edges.To[e])
		edge := h.String(kind)
		if edge != "attr" && edge != "local" && edge != "global" || !isContainer(g.kind(v)) {
			continue
		}
		var u uses
		if t != nil {
			r := g.named(edge, owner)
			r.Variable = g.label(int32(e))
			var again bool
			if u, again = known[r]; !again {
				u = t.uses(&r)
				known[r] = u
			}
		}
		length := g.length(v)
		b, found := g.bounds[v]
		if found && b.Hint == "" {
			continue
		}
		if found && t != nil && t.whole && (u.adds || u.sets) {
			delete(g.bounds, v)
		}
		side := func(text string) int64 {
			switch n, err := strconv.ParseInt(text, 10, 64); {
			case text == "len":
				return length
			case err == nil:
				return n
			}
			return numbers[owner][text]
		}
		for _, i := range u.bounds {
			if (t.Attribute[i] != 0) != (edge == "attr") {
				continue
			}
			limit := side(t.Right[i])
			if n := side(t.Left[i]); t.Left[i] != "index" && n != length || limit < length {
				continue
			}
			g.bounds[v] = finding.Bound{Length: length, Limit: limit, Hint: t.Right[i], Seen: t.place(i)}
		}
		if empty := numbers[v]["None"]; empty > 0 && !u.adds {
			g.bounds[v] = finding.Bound{Length: length - empty, Limit: length}
		}
		if t == nil || edge != "attr" {
			continue
		}
		for _, i := range t.lengths[short(g.typeName(owner))] {
			if limit := numbers[owner][t.Right[i]]; limit >= length && t.Right[i] != "len "+g.label(int32(e)) {
				g.bounds[v] = finding.Bound{Length: length, Limit: limit, Hint: t.Right[i], Seen: t.place(i)}
			}
		}
	}
}

// named is the reference that an attribute, a local or a global variable of an owner is.
func (g *graph) named(edge string, owner int32) Reference {
	switch edge {
	case "attr":
		return Reference{Kind: Attribute}
	case "local":
		return Reference{Kind: Local, Function: g.name(owner), File: g.file(owner)}
	}
	return Reference{Kind: Global}
}

// uses are those of one name that tell of bounds.
type uses struct {
	bounds     []int // rows, at most mostNamed
	adds, sets bool
}

func (t *text) uses(r *Reference) (u uses) {
	for _, i := range t.of(r, r.Variable) {
		switch t.How[i] {
		case "bound":
			if len(u.bounds) < mostNamed {
				u.bounds = append(u.bounds, i)
			}
		case "add":
			u.adds = true
		case "set":
			u.sets = true
		}
	}
	return u
}
