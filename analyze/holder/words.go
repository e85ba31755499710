package holder

import (
	"fmt"
	"strings"
)

// String is the reference as a person would write it.
func (r Reference) String() string {
	quoted := "`" + r.Variable + "`"
	owner := ""
	if r.Owner != "" {
		owner = " (" + r.Owner + ")"
	}
	switch r.Kind {
	case Closure:
		return "closure cell " + quoted + " of " + placed(r.Function, r.File, r.Line)
	case Local:
		return r.Object + " " + quoted + ", local of " + placed(r.Function, r.File, r.Line)
	case Generator:
		return r.Object + " " + quoted + ", local of the suspended generator " + placed(r.Function, r.File, r.Line)
	case Global:
		return r.Object + " " + quoted + ", global of module " + r.Function
	case Attribute:
		return r.Object + " attribute " + quoted + " of " + r.Class + owner
	case ClassAttr:
		return r.Object + " attribute " + quoted + " of class " + r.Class
	case Default:
		return r.Object + ", default of parameter " + quoted + " of " + placed(r.Function, r.File, r.Line)
	case Partial:
		return "argument " + quoted + " of functools.partial(" + r.Function + ")"
	case Cache:
		return "lru_cache of " + placed(r.Function, r.File, r.Line)
	case Context:
		return r.Object + " in context variable " + quoted
	case Hook:
		return "hook in " + quoted + " of " + r.Class + owner
	case Traceback:
		class := r.Class
		if class == "" {
			class = "an exception"
		}
		in := ""
		if r.Owner != "" {
			in = " in " + r.Owner
		}
		return "traceback frame " + r.Frame + " of " + class + in
	case Cycle:
		return "reference cycle " + r.Members + " (unreachable)"
	case Interpreter:
		if r.Variable != "" {
			return "the interpreter: " + r.Variable
		}
		return "the interpreter"
	case CPP:
		return "C++, with no Python holder"
	case Hidden:
		if r.Function != "" {
			return "an unnamed reference in " + r.Function
		}
		return "a referrer that Python's garbage collector cannot see"
	}
	return "unrecorded references"
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

// Fix gives two lines of Python that let the memory go.
func (h *Holder) Fix() []string {
	r := &h.Reference
	name := identifier(r.Variable)
	switch {
	case r.Kind == Traceback:
		if name == "" {
			return []string{"sys.last_exc = sys.last_value = sys.last_traceback = None", "gc.collect()"}
		}
		return []string{name + ".append(traceback.format_exc())  # the text, not the exception",
			"# or, to keep the exception: err.__traceback__ = None"}
	case r.Kind == Cycle:
		back := orName(identifier(h.back), "other")
		return []string{"self." + back + " = weakref.ref(" + back + ")  # a weak reference breaks the cycle",
			"gc.collect()  # until then: frees what is unreachable now"}
	case r.Kind == Cache:
		return []string{orName(identifier(short(r.Function)), "function") + ".cache_clear()",
			"# and return no tensors from it, or only .detach().cpu()"}
	case r.Kind == Generator:
		return []string{"generator.close()  # or exhaust it", orName(name, "kept") + ".clear()  # or, inside it: after use"}
	case r.Kind == Interpreter:
		return []string{"sys.last_exc = sys.last_value = sys.last_traceback = None", "gc.collect()"}
	case r.Kind == CPP, r.Kind == Hidden, r.Kind == Unreached:
		return []string{"# no Python reference to drop: look for an autograd graph that is still in use, a CUDA graph,",
			"# or an extension that keeps tensors"}
	case r.Kind == Hook:
		return []string{"handle = module.register_forward_hook(hook)  # keep the handle, and when done:", "handle.remove()"}
	case h.hooked:
		return []string{"handle = module.register_forward_hook(hook)  # keep the handle, and when done:",
			"handle.remove(); " + orName(name, "captured") + ".clear()"}
	}
	if h.Formerly != nil && identifier(h.Formerly.Variable) != "" {
		name = identifier(h.Formerly.Variable) // the code that collects knows it by that
	}
	name = orName(name, "kept")
	target := name
	switch {
	case r.Kind == Attribute:
		target = "self." + name
	case r.Kind == ClassAttr && identifier(r.Class) != "":
		target = r.Class + "." + name
	}
	switch {
	case h.Storage.Bytes <= 16*h.Storage.Count && r.Object != "tensor":
		if r.Object == "dict" {
			return []string{target + "[key] = loss.item()  # a number, not a tensor", target + ".clear()  # after use"}
		}
		return []string{target + ".append(loss.item())  # a number, not a tensor", target + ".clear()  # after use"}
	case 2*h.Graph > h.Bytes && r.Object == "tensor":
		return []string{target + " = " + target + ".detach()  # or, for a sum: " + target + " += loss.item()",
			"with torch.no_grad(): ...  # where no backward pass follows"}
	case 2*h.Graph > h.Bytes && r.Object == "dict":
		return []string{target + "[key] = value.detach().cpu()  # or .item(): without the graph",
			"with torch.no_grad(): ...  # where no backward pass follows"}
	case 2*h.Graph > h.Bytes:
		return []string{target + ".append(loss.item())  # or output.detach().cpu(): without the graph",
			"with torch.no_grad(): ...  # where no backward pass follows"}
	case r.Object == "dict":
		return []string{target + "[key] = value.detach().cpu()  # keep it off the GPU", target + ".clear()  # after use"}
	case isContainer(r.Object):
		return []string{target + ".append(output.detach().cpu())  # keep it off the GPU", target + ".clear()  # after use"}
	}
	return []string{target + " = " + target + ".detach().cpu()  # keep it off the GPU", "del " + target + "  # after use"}
}

func orName(name, other string) string {
	if name == "" {
		return other
	}
	return name
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
