package holder

import (
	"fmt"
	"path"
	"strings"

	"github.com/snapana/snapana/analyze/remedy"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Kind says what sort of reference keeps memory.
type Kind string

// The kinds of references.
const (
	Closure     Kind = "closure"     // Variable is captured by Function
	Local       Kind = "local"       // Variable of Function, which is running
	Generator   Kind = "generator"   // Variable of Function, which is suspended
	Global      Kind = "global"      // Variable of the module Function
	Attribute   Kind = "attribute"   // Variable of an object of class Class
	ClassAttr   Kind = "class"       // Variable of class Class itself
	Default     Kind = "default"     // parameter Variable of Function
	Partial     Kind = "partial"     // argument Variable of functools.partial(Function)
	Cache       Kind = "lru_cache"   // what Function's lru_cache remembers
	Context     Kind = "context"     // the context variable Variable
	Hook        Kind = "hook"        // in the registry Variable of an object of class Class
	Traceback   Kind = "traceback"   // a frame that a stored exception's traceback keeps
	Cycle       Kind = "cycle"       // a reference cycle that nothing reaches
	Interpreter Kind = "interpreter" // the interpreter itself: sys.last_exc, thread state
	CPP         Kind = "cpp"         // C++ owns it: no Python object refers to it
	Hidden      Kind = "unknown"     // referrers that Python's collector cannot see
	Unreached   Kind = "unreached"   // the recorder's limits cut the way to it
)

// Reference is the reference that a person would name as the one that keeps memory.
type Reference struct {
	Kind     Kind   `json:"kind"`
	Variable string `json:"variable"` // "" where the kind has none
	Function string `json:"function"`
	Class    string `json:"class"`  // short name
	File     string `json:"file"`   // base name, of the function
	Line     int    `json:"line"`   // 0 unknown
	Object   string `json:"object"` // what it refers to: "list", "dict", "tensor", a class
	// Owner says where the object that has an attribute, or the exception that has a
	// traceback, is itself held.
	Owner string `json:"owner"`
	// Frame is the function in the traceback, with its place.
	Frame string `json:"frame"`
	// Members are the classes in a cycle.
	Members string `json:"members"`
}

// Standing says whether a reference is as it should be.
type Standing string

// Standings of holders.
const (
	Ghost     Standing = "ghost"     // its memory grows
	Other     Standing = "other"     // nothing speaks against it
	Parameter Standing = "parameter" // a module's
	Buffer    Standing = "buffer"    // a module's
	Gradient  Standing = "gradient"  // of a parameter
	Optimizer Standing = "optimizer" // its state
	Running   Standing = "running"   // tensors in variables of functions that are running
)

// ofModule is what the attributes are in which torch.nn.Module keeps its parts.
var ofModule = map[string]Standing{"_parameters": Parameter, "_buffers": Buffer, "_modules": Other}

// named is the outcome of going back along a chain.
type named struct {
	ref      Reference
	standing Standing
	at       int // place in the chain of the hop that is the reference
	// Of a cycle: by which attribute of which class it closes, or by which variable.
	cycle        remedy.Kind
	back, backOf string
	inner        Reference // of a traceback: what keeps it
}

// ofFunction are the references that a function has, by the kind of the edge.
var ofFunction = map[string]Kind{"closure": Closure, "default": Default, "args": Partial, "cache": Cache}

// nameChain goes back along a chain from a tensor until a reference has a name. Without a chain, or a name
// on it, the tensor is Unreached.
func (g *graph) nameChain(chain []hop) named {
	n := named{standing: Other}
	r := &n.ref
	exception, frame, frameLine := "", int32(-1), 0
	inGraph := false
	if len(chain) > 0 && int(chain[0].to) >= g.objects && chain[0].to < g.root {
		return g.nameCycle(chain)
	}
	finish := func(i int, kind Kind) named {
		h := chain[i]
		n.at = i
		if i+1 < len(chain) && g.edgeKind(chain[i+1].tag) == "contents" {
			n.at = i + 1 // a cell stands for what is in it
		}
		r.Kind, r.Object = kind, g.object(h.to)
		if frame < 0 {
			return n
		}
		inner := *r
		n.inner = inner
		if kind == Local || kind == Generator {
			inner.Line = 0 // where it is now, and not what it is
		}
		r.Kind, r.Class, r.Line, r.Owner = Traceback, exception, inner.Line, ""
		if kind != Interpreter {
			r.Owner = inner.String()
		}
		r.Frame = placed(g.name(frame), g.file(frame), frameLine)
		n.standing = Other
		return n
	}
	for i := len(chain) - 1; i >= 0; i-- {
		h := chain[i]
		label := g.label(h.tag)
		kind := g.kind(h.from)
		if kind == "exception" && exception == "" {
			exception = short(g.typeName(h.from))
		}
		if h.tag == madeUp {
			if h.from != g.root || int(h.to) >= g.objects {
				continue
			}
			switch g.rootOf(h.to) {
			case "cpp":
				return finish(i, CPP)
			case "interpreter":
				r.Variable = g.name(h.to)
				return finish(i, Interpreter)
			case "unknown":
			default: // a module, a class or a frame that refers to this with no name
				r.Function = g.name(h.to)
			}
			return finish(i, Hidden)
		}
		switch edge := g.edgeKind(h.tag); edge {
		case "local":
			g.function(r, h.from, label)
			switch {
			case kind == "generator":
				return finish(i, Generator)
			case !g.kept(h.from):
				if n.standing == Other && g.kind(h.to) == "tensor" {
					n.standing = Running
				}
				return finish(i, Local)
			case frame < 0:
				frame, frameLine = h.from, g.line(h.from)
				if i > 0 && g.kind(chain[i-1].from) == "traceback" {
					frameLine = g.line(chain[i-1].from)
				}
			}
			*r = Reference{}
		case "global":
			r.Variable, r.Function = label, g.name(h.from)
			return finish(i, Global)
		case "closure", "default", "args", "cache":
			if edge == "args" && i > 0 && g.element(chain, i-1) {
				continue // one of many calls in a container
			}
			if g.function(r, h.from, label); edge == "cache" {
				r.Variable = ""
			}
			return finish(i, ofFunction[edge])
		case "context":
			r.Variable = label
			return finish(i, Context)
		case "hook":
			r.Variable, r.Class, r.Owner = label, short(g.typeName(h.from)), g.owner(chain[:i])
			return finish(i, Hook)
		case "grad":
			if g.parameter(h.from) {
				n.standing = Gradient
			}
		case "attr":
			switch {
			case kind == "node" || kind == "exception":
				continue
			case ofModule[label] != "":
				if n.standing == Other && !inGraph {
					n.standing = ofModule[label]
				}
				continue
			case g.optimizer(h.from) && (label == "state" || label == "param_groups"):
				if n.standing == Other {
					n.standing = Optimizer
				}
				continue
			case kind == "class":
				r.Variable, r.Class = label, short(g.name(h.from))
				return finish(i, ClassAttr)
			case i > 0 && g.element(chain, i-1) && !g.larger(h.to, chain[i-1].from):
				continue // one of many objects in a container: the container has the name
			}
			r.Variable, r.Class, r.Owner = label, short(g.typeName(h.from)), g.owner(chain[:i])
			return finish(i, Attribute)
		case "grad_fn", "next", "saved", "variable":
			inGraph = true
		}
	}
	return named{ref: Reference{Kind: Unreached}, standing: Other}
}

// nameCycle names a chain from an unreachable cycle by its members, and by the attribute or
// variable that is nearest to the tensor.
func (g *graph) nameCycle(chain []hop) named {
	cycle := g.cycles[int(chain[0].to)-g.objects-len(g.memory)]
	n := named{ref: Reference{Kind: Cycle, Object: "cycle", Members: g.members(cycle)}, standing: Other}
	n.cycle, n.back, n.backOf = g.back(cycle)
	for i := len(chain) - 1; i > 0; i-- {
		switch g.edgeKind(chain[i].tag) {
		case "attr", "local", "closure":
			n.ref.Variable, n.ref.Class = g.label(chain[i].tag), short(g.typeName(chain[i].from))
			return n
		}
	}
	return n
}

// back finds an attribute by which one member of a cycle refers to another, and its class, or a variable.
func (g *graph) back(cycle []int32) (kind remedy.Kind, name, class string) {
	kind = remedy.Cycle
	for _, v := range cycle {
		tags := g.links.tags(v)
		for i, to := range g.links.of(v) {
			label := g.label(tags[i])
			if g.rootOf(to) != "cycle" || identifier(label) == "" {
				continue
			}
			switch g.edgeKind(tags[i]) {
			case "attr":
				switch g.kind(v) {
				case "object":
					return remedy.CycleAttr, label, short(g.typeName(v))
				case "node": // of a torch.autograd.Function
					return remedy.Context, label, ""
				}
			case "local", "closure":
				kind, name = remedy.CycleName, label
			}
		}
	}
	return kind, name, ""
}

// element reports whether hop i leads into an element of a container of the program's, as
// opposed to a module's submodule or hook.
func (g *graph) element(chain []hop, i int) bool {
	switch g.edgeKind(chain[i].tag) {
	case "index", "element", "dictkey":
		return true
	case "key":
		if i == 0 {
			return true
		}
		into := chain[i-1].tag
		return g.edgeKind(into) != "hook" && (g.edgeKind(into) != "attr" || g.label(into) != "_modules")
	}
	return false
}

// larger reports whether a is a container with more in it than the container b.
func (g *graph) larger(a, b int32) bool {
	return isContainer(g.kind(a)) && len(g.links.of(a)) > len(g.links.of(b))
}

func (g *graph) function(r *Reference, v int32, variable string) {
	r.Variable, r.Function, r.File, r.Line = variable, g.name(v), g.file(v), g.line(v)
}

func (g *graph) file(v int32) string {
	return path.Base(strings.ReplaceAll("/"+bounded(g.word(g.h.Nodes.File, v)), `\`, "/"))
}

func (g *graph) line(v int32) int { return int(g.h.Nodes.Line[v]) }

func (g *graph) parameter(v int32) bool {
	return int(v) < g.objects && g.flags[v]&sidecar.Parameter != 0
}

// optimizer reports whether an object is one: it has parameter groups.
func (g *graph) optimizer(v int32) bool {
	if strings.Contains(g.typeName(v), "optim.") {
		return true
	}
	for _, tag := range g.links.tags(v) {
		if g.edgeKind(tag) == "attr" && g.label(tag) == "param_groups" {
			return true
		}
	}
	return false
}

// object says in a word what a node is.
func (g *graph) object(v int32) string {
	kind := g.kind(v)
	switch kind {
	case "object":
		return short(g.typeName(v))
	case "cell":
		if in := g.links.of(v); len(in) > 0 {
			return g.object(in[0])
		}
	}
	return kind
}

// members lists the classes in a cycle in the order of the objects: "A <-> B".
func (g *graph) members(cycle []int32) string {
	const most = 4
	var names []string
	for _, v := range cycle {
		switch kind := g.kind(v); kind {
		case "object", "exception":
			names = append(names, short(g.typeName(v)))
		case "function", "generator":
			names = append(names, g.name(v))
		}
	}
	if len(names) == 0 {
		for _, v := range cycle {
			names = append(names, g.object(v))
		}
	}
	if len(names) == 1 {
		return names[0] + " <-> itself"
	}
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return strings.Join(names, " <-> ")
}

// maxSuffix bounds the path in an owner.
const maxSuffix = 60

// owners say where an object is, by the kind of the edge.
var owners = map[string]string{
	"local": "local `%s` of %s", "global": "global `%s` of module %s",
	"closure": "closure cell `%s` of %s", "default": "default `%s` of %s",
}

// owner says in which variable the object at the end of a chain is, by a path from there.
func (g *graph) owner(chain []hop) string {
	suffix := ""
	for i := len(chain) - 1; i >= 0; i-- {
		if len(suffix) > maxSuffix {
			suffix = "[...]"
		}
		h := chain[i]
		label := g.label(h.tag)
		edge := g.edgeKind(h.tag)
		switch word := owners[edge]; edge {
		case "local", "global", "closure", "default":
			switch {
			case edge == "local" && g.kind(h.from) == "generator":
				word = "local of a suspended generator, `%s` of %s"
			case edge == "local" && g.kept(h.from):
				word = "in a traceback: `%s` of %s"
			}
			return fmt.Sprintf(word, label+suffix, g.name(h.from))
		case "attr", "hook":
			if g.kind(h.from) == "class" {
				return "`" + label + suffix + "` of class " + short(g.name(h.from))
			}
			switch one := "." + label; {
			case label == "_modules":
			case strings.HasPrefix(suffix, one+one): // one of many in a linked list
				suffix = one + "[...]" + suffix[2*len(one):]
			case !strings.HasPrefix(suffix, one+"[...]"):
				suffix = one + suffix
			}
		case "key":
			name := strings.Trim(label, `'"`)
			if i > 0 && g.label(chain[i-1].tag) == "_modules" && !isNumber(name) {
				suffix = "." + name + suffix
				break
			}
			suffix = "[*]" + suffix
		case "index", "element", "dictkey":
			suffix = "[*]" + suffix
		}
	}
	if len(chain) > 0 && int(chain[0].to) >= g.objects {
		return "in an unreachable cycle"
	}
	return ""
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
