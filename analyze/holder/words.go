package holder

import (
	"cmp"
	"fmt"
	"strings"
)

// forms are how references are written: with [1] their variable, [2] the function with its place, [3] the
// object, [4] the class, [5] the owner behind it, and [6] what else tells them apart.
var forms = map[Kind]string{
	Closure:     "closure cell `%[1]s` of %[2]s",
	Local:       "%[3]s `%[1]s`, local of %[2]s",
	Generator:   "%[3]s `%[1]s`, local of the suspended generator %[2]s",
	Global:      "%[3]s `%[1]s`, global of module %[6]s",
	Attribute:   "%[3]s attribute `%[1]s` of %[4]s%[5]s",
	ClassAttr:   "%[3]s attribute `%[1]s` of class %[4]s",
	Default:     "%[3]s, default of parameter `%[1]s` of %[2]s",
	Partial:     "argument `%[1]s` of functools.partial(%[6]s)",
	Cache:       "lru_cache of %[2]s",
	Context:     "%[3]s in context variable `%[1]s`",
	Hook:        "hook in `%[1]s` of %[4]s%[5]s",
	Traceback:   "traceback frame %[6]s of %[4]s%[5]s",
	Cycle:       "reference cycle %[6]s (unreachable)",
	Interpreter: "the interpreter: %[1]s",
	Hidden:      "an unnamed reference in %[6]s",
}

// String is the reference as a person would write it.
func (r Reference) String() string {
	switch {
	case r.Kind == Interpreter && r.Variable == "":
		return "the interpreter"
	case r.Kind == Hidden && r.Function == "":
		return "a referrer that Python's garbage collector cannot see"
	case r.Kind == CPP:
		return "C++, with no Python holder"
	case forms[r.Kind] == "":
		return "unrecorded references"
	}
	class, owner := r.Class, r.Owner
	switch {
	case r.Kind == Traceback:
		class = cmp.Or(class, "an exception")
		if owner != "" {
			owner = " in " + owner
		}
	case owner != "":
		owner = " (" + owner + ")"
	}
	// Only tracebacks have a frame, only cycles members.
	return fmt.Sprintf(forms[r.Kind], r.Variable, placed(r.Function, r.File, r.Line), r.Object, class, owner,
		cmp.Or(r.Frame, r.Members, r.Function))
}

func placed(name, file string, line int) string {
	switch {
	case file == "" || file == "." || file == "/":
		return name
	case line > 0:
		return fmt.Sprintf("%s (%s:%d)", name, file, line)
	}
	return fmt.Sprintf("%s (%s)", name, file)
}

// identifier gives a name back if it can stand in a line of Python.
func identifier(s string) string {
	ok := func(r rune) bool { return r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' }
	if s == "" || len(s) > 60 || isNumber(s[:1]) || strings.TrimFunc(s, ok) != "" {
		return ""
	}
	return s
}

// maxWords bounds the hops of a chain that are written out.
const maxWords = 40

// words is a chain for a reader, hop by hop.
func (g *graph) words(chain []hop) []string {
	var parts []string
	graphNodes := 0
	flush := func() {
		if graphNodes > 0 {
			parts = append(parts, fmt.Sprintf("autograd graph (%d nodes)", graphNodes))
			graphNodes = 0
		}
	}
	for i, h := range chain {
		if i == maxWords {
			parts = append(parts, "...")
			break
		}
		label := g.label(h.tag)
		kind := g.edgeKind(h.tag)
		if kind != "grad_fn" && kind != "next" {
			flush()
		}
		switch kind {
		case "":
			if h.from == g.root && int(h.to) < g.objects {
				parts = append(parts, g.rootWords(h.to))
			} else if h.from == g.root {
				parts = append(parts, "unreachable cycle")
			}
		case "grad_fn":
			graphNodes++
		case "next":
			graphNodes += int(g.depth[h.to])
		case "index", "key":
			if n := len(parts); n > 0 {
				parts[n-1] += "[" + label + "]"
			}
		case "contents":
		case "closure":
			parts = append(parts, "closure cell "+label)
		case "attr", "hook":
			parts = append(parts, "."+label)
		case "local", "global":
			parts = append(parts, label)
		default:
			parts = append(parts, strings.TrimSpace(strings.ReplaceAll(kind, "_", " ")+" "+label))
		}
	}
	flush()
	return parts
}

func (g *graph) rootWords(v int32) string {
	switch g.rootOf(v) {
	case "module":
		return "module " + g.name(v)
	case "frame":
		return placed(g.name(v), g.file(v), g.line(v))
	case "class":
		return "class " + short(g.name(v))
	case "cpp":
		return "C++"
	case "unknown":
		return "hidden referrer of " + g.object(v)
	}
	return g.rootOf(v)
}
