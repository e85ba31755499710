package holder

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/remedy"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// form is how tensors hang on the object of a reference, as far as it matters for letting them go.
type form struct {
	outer     remedy.Kind // the object, if it is a container, "" for none
	path      string      // Python from it to the container that is filled: "", "[key]", ".outputs"
	container remedy.Kind // "" for none
	element   remedy.Form // of the container
	instead   remedy.Kind // what lets an element go that is no value, "" for none
	name      string      // of such an element
	field     string      // attribute of an element, or its key
	saved     string      // attribute of an autograd function's ctx that it is behind, "" for none
	cause     string      // attribute of an exception by which another one is kept, "" for none
	registry  string      // the hooks that it is behind, "" for none
}

// aside is what a change of the program needs to know of a holder beside its reference and form.
type aside struct {
	form   form
	forms  map[form]int // of so many chains
	place  string       // "train.py:31", where what is kept is made, "" unknown
	caught string       // where its exception was caught, "" for none
	made   int32        // of graph.memory: a tensor that is kept itself, -1 for none
	owner  string       // Python for the object that has the attribute, the partial or the cache, "" unknown
	was    Standing     // before it was judged
	inner  Reference    // of a traceback: what keeps it
	// foreign says that the class of the object that has the attribute is a library's, so that no method of the program
	// fills it.
	foreign     bool
	outside     bool // the text that fills the attribute is in no method of its class
	hooksTensor bool // the hooks that it is behind are a tensor's
	// A cycle closes by back, an attribute of the class backOf, or a variable.
	cycle         remedy.Kind
	back, backOf  string
	tensorsBefore int // that were held directly in the earlier dump
}

// mostForms is of how many tensors of a holder the form is looked at.
const mostForms = 256

// look notes what a chain to a piece of memory tells.
func (a *aside) look(g *graph, chain []hop, n *named, memory int32, kept bool) {
	if a.forms == nil {
		a.forms, a.made, a.was, a.inner = map[form]int{}, -1, n.standing, n.inner
		a.cycle, a.back, a.backOf = n.cycle, identifier(n.back), n.backOf
		from := chain[n.at].from
		a.owner = g.expression(chain[:n.at])
		library, _, inModule := strings.Cut(g.typeName(from), ".")
		a.foreign = !inModule || slices.Contains(libraries, library)
		for _, h := range chain {
			if g.kind(h.to) == "traceback" { // the first is of the function that caught it
				a.caught = at(g.file(h.to), g.line(h.to))
				break
			}
		}
	}
	if kept && a.made < 0 {
		a.made = memory
	}
	if len(a.forms) < mostForms {
		a.forms[g.formOf(chain, n.at)]++
	}
	for _, h := range chain {
		a.hooksTensor = a.hooksTensor || g.edgeKind(h.tag) == "hook" && g.kind(h.from) == "tensor"
	}
}

// fills notes a use of the text that adds to the container.
func (a *aside) fills(h *Holder, t *text, row int) {
	class, method, _ := cutLast(t.Function[row], ".")
	a.outside = h.Kind == Attribute && (method == "" || class != h.Class && !strings.HasSuffix(class, "."+h.Class))
	a.place = cmp.Or(at(path.Base(strings.ReplaceAll("/"+bounded(t.File[row]), `\`, "/")), int(t.Line[row])), a.place)
}

// settle takes the form that most have.
func (a *aside) settle() {
	if a.forms == nil {
		a.made = -1
	}
	for f, n := range a.forms {
		if most := a.forms[a.form]; n > most || n == most && fmt.Sprint(f) < fmt.Sprint(a.form) {
			a.form = f
		}
	}
}

// libraries are packages whose objects programs put things into.
var libraries = []string{"torch", "types", "argparse", "logging", "collections", "asyncio", "threading", "functools",
	"weakref", "accelerate", "datasets", "deepspeed", "diffusers", "ignite", "lightning", "monai", "peft", "pytorch_lightning",
	"timm", "torchaudio", "torchvision", "transformers", "trl", "ultralytics"}

// expression is Python for the object at the end of a chain, "" where that is one of many or has no name.
func (g *graph) expression(chain []hop) string {
	suffix := ""
	for i := len(chain) - 1; i >= 0 && len(suffix) <= maxSuffix; i-- {
		h := chain[i]
		label := g.label(h.tag)
		switch g.edgeKind(h.tag) {
		case "local", "global", "closure", "default":
			if identifier(label) == "" {
				return ""
			}
			return label + suffix
		case "contents":
		case "attr":
			switch {
			case identifier(label) == "":
				return ""
			case g.kind(h.from) == "class":
				return short(g.name(h.from)) + "." + label + suffix
			case label != "_modules":
				suffix = "." + label + suffix
			}
		case "key":
			name := strings.Trim(label, `'"`)
			switch {
			case i == 0 || g.label(chain[i-1].tag) != "_modules" || !isNumber(name) && identifier(name) == "":
				return ""
			case isNumber(name):
				suffix = "[" + name + "]" + suffix
			default:
				suffix = "." + name + suffix
			}
		default:
			return ""
		}
	}
	return ""
}

// formOf follows a chain from the reference that has the name.
func (g *graph) formOf(chain []hop, at int) form {
	var f form
	for _, h := range chain {
		switch label := g.label(h.tag); g.edgeKind(h.tag) {
		case "hook":
			f.registry = label
		case "cause":
			f.cause = "__context__"
			if label == "__cause__" {
				f.cause = label
			}
		case "attr":
			if g.kind(h.from) == "node" {
				f.saved = identifier(label)
			}
		}
	}
	v, rest := chain[at].to, chain[at+1:]
	if kind := g.kind(v); isContainer(kind) {
		f.outer = remedy.Kind(kind)
	}
	if g.object(v) == "_local" { // of threading: its dict is behind what tells threads apart
		for i, h := range rest {
			if name := quoted(g.label(h.tag)); g.edgeKind(h.tag) == "key" && name != "" {
				f.path, v, rest = "."+name, h.to, rest[i+1:]
				break
			}
		}
	}
	for len(rest) > 0 && isContainer(g.kind(v)) && isContainer(g.kind(rest[0].to)) &&
		len(g.links.of(rest[0].to)) > len(g.links.of(v)) {
		f.path += "[" + g.position(v, rest[0]) + "]"
		v, rest = rest[0].to, rest[1:]
	}
	switch kind := g.kind(v); {
	case isContainer(kind):
		f.container = remedy.Kind(kind)
	case g.object(v) == "SimpleQueue":
		f.container = remedy.Queue
	default:
		return f
	}
	if len(rest) > 0 {
		g.entry(&f, rest)
	}
	return f
}

// position is a key or index in Python where there is but one, else the name of a variable.
func (g *graph) position(v int32, h hop) string {
	if len(g.links.of(v)) == 1 && (isNumber(g.label(h.tag)) || quoted(g.label(h.tag)) != "") {
		return g.label(h.tag)
	}
	if g.edgeKind(h.tag) == "index" {
		return "i"
	}
	return "key"
}

// entry tells what the elements of a container are.
func (g *graph) entry(f *form, rest []hop) {
	w := rest[0].to
	f.element = remedy.Other
	switch kind, class := g.kind(w), short(g.typeName(w)); {
	case kind == "tensor":
		f.element = g.tensorForm(w)
	case class == "Task" || class == "Future":
		f.instead = remedy.Tasks
	case kind == "partial":
		f.instead, f.name = remedy.Captured, "output"
	case kind == "generator":
		f.instead = remedy.Generator
	case len(rest) < 2:
	case kind == "object" && g.optimizer(w):
		f.instead = remedy.Optimizers
	case kind == "object" && g.ofModel(rest[1]):
		f.instead = remedy.Weights
	case kind == "tuple" || kind == "list" || kind == "dict":
		known := slices.Contains([]string{"", "tuple", "list", "dict", "OrderedDict", "defaultdict"}, class)
		end := slices.IndexFunc(rest, func(h hop) bool { return g.kind(h.to) == "tensor" })
		switch label := g.label(rest[1].tag); {
		case slices.ContainsFunc(rest[1:max(end+1, 1)], g.ofModel):
			f.instead = remedy.Weights
		case slices.ContainsFunc(rest[1:max(end, 1)], func(h hop) bool { return !isContainer(g.kind(h.to)) }):
		case kind == "dict" && !known:
			if f.field = cmp.Or(quoted(label), identifier(label)); f.field != "" {
				f.instead, f.name = remedy.Item, "output"
			}
		case g.kind(rest[1].to) != "tensor" || !known:
			f.element = remedy.Nested
		default:
			f.element = map[string]remedy.Form{"tuple": remedy.OfPair, "list": remedy.OfList, "dict": remedy.OfDict}[kind]
		}
	case class == "LogRecord" && g.label(rest[1].tag) == "args":
		f.instead = remedy.Args
	case g.edgeKind(rest[1].tag) == "attr" && g.kind(rest[1].to) == "tensor":
		if f.field = identifier(g.label(rest[1].tag)); f.field != "" {
			f.instead, f.name = remedy.Field, cmp.Or(identifier(strings.ToLower(class)), "item")
		}
	}
}

// ofModel reports whether a model or an optimizer refers to a part of it.
func (g *graph) ofModel(h hop) bool {
	label := g.label(h.tag)
	return g.edgeKind(h.tag) == "attr" && (ofModule[label] != "" || (label == "state" || label == "param_groups") &&
		g.optimizer(h.from))
}

// tensorForm tells numbers and views of much more from other tensors.
func (g *graph) tensorForm(v int32) remedy.Form {
	row := g.tensors[v]
	if row < 0 {
		return remedy.Tensor
	}
	dtype := g.h.String(g.h.Tensors.DType[row])
	size, bytes := elementBytes[dtype], tensorBytes(g.h.String(g.h.Tensors.Shape[row]), dtype)
	switch storage := g.h.Storages.Bytes[g.h.Tensors.Storage[row]]; {
	case size > 0 && bytes == size:
		return remedy.Number
	case g.flags[v]&sidecar.View != 0 && bytes >= 0 && bytes <= storage/2:
		return remedy.View
	}
	return remedy.Tensor
}

// registers are the functions that put a hook into a registry of a module, a tensor or an optimizer.
var registers = map[string]string{
	"_forward_hooks": "register_forward_hook", "_forward_pre_hooks": "register_forward_pre_hook",
	"_backward_hooks": "register_full_backward_hook", "_backward_pre_hooks": "register_full_backward_pre_hook",
	"_post_accumulate_grad_hooks": "register_post_accumulate_grad_hook",
	"_optimizer_step_pre_hooks":   "register_step_pre_hook", "_optimizer_step_post_hooks": "register_step_post_hook",
	"_global_forward_hooks":     "register_module_forward_hook",
	"_global_forward_pre_hooks": "register_module_forward_pre_hook",
	"_global_backward_hooks":    "register_module_full_backward_hook",
}

// expression is Python for the object that a reference leads to, where the code that keeps things has it.
func (h *Holder) expression() string {
	r := &h.Reference
	if h.Formerly != nil {
		r = h.Formerly // the code that collects knows it by that
	}
	name := cmp.Or(identifier(r.Variable), "kept")
	switch {
	case r.Kind == Attribute && (h.aside.foreign || h.aside.outside) && h.aside.owner != "":
		return h.aside.owner + "." + name
	case r.Kind == Attribute:
		return "self." + name
	case r.Kind == ClassAttr && identifier(r.Class) != "":
		return r.Class + "." + name
	case r.Kind == Partial && isNumber(r.Variable):
		return cmp.Or(h.aside.owner, "partial") + ".args[" + r.Variable + "]"
	case r.Kind == Partial:
		return cmp.Or(h.aside.owner, "partial") + ".keywords[\"" + name + "\"]"
	case r.Kind == Cache:
		_, inner, found := cutLast(r.Function, "<locals>.")
		if !found {
			inner = r.Function
		}
		if strings.ContainsFunc(inner, func(c rune) bool { return c == '<' || c == '>' }) {
			inner = ""
		}
		return cmp.Or(dotted(inner), h.aside.owner, "function")
	case r.Kind == Context && h.aside.form.container != "" && h.aside.form.container != remedy.Tuple:
		return name + ".get()"
	}
	return name
}

// Fix gives lines of Python that let the memory go, each a way out by itself: see package remedy. There are none where
// nothing in Python keeps it.
func (h *Holder) Fix() []string {
	return remedy.Lines(h.Remedy())
}

// Remedy is the case that Fix gives the lines of.
func (h *Holder) Remedy() remedy.Case {
	c := h.fits()
	if h.Graph > 0 || slices.ContainsFunc(h.Devices, func(d int) bool { return d != Host }) || len(h.Devices) == 0 {
		return c
	}
	switch c.Kind { // what is in host memory cannot go there
	case remedy.Field, remedy.Item, remedy.Weights, remedy.Optimizers:
		c.Kind, c.Form = h.aside.form.container, remedy.Other
	case remedy.Captured, remedy.Parts:
		c.Kind = remedy.Stale
	default:
		switch c.Form {
		case remedy.Number, "":
		case remedy.View:
			c.Form = remedy.Copy
		default:
			c.Form = remedy.Other
		}
	}
	return c
}

// fits is the case of what keeps memory of a device.
func (h *Holder) fits() remedy.Case {
	r, f := &h.Reference, &h.aside.form
	holder := h.expression()
	c := remedy.Case{At: h.aside.place, Holes: map[string]string{"holder": holder + f.path, "field": f.field, "name": f.name,
		"cause": f.cause, "back": h.aside.back}, Registered: registers[f.registry]}
	if f.registry == "_backward_hooks" && h.aside.hooksTensor {
		c.Registered = "register_hook"
	}
	many := h.Objects > 1
	switch {
	case r.Kind == CPP, r.Kind == Hidden, r.Kind == Unreached:
	case r.Kind == Traceback && h.aside.inner.Kind == Global && h.aside.inner.Function == "sys":
		c.Kind = remedy.LastError
	case r.Kind == Traceback && f.cause != "":
		c.Kind, c.At = remedy.Causes, h.aside.caught
	case r.Kind == Traceback:
		c.Kind, c.At = remedy.Frames, h.aside.caught
	case r.Kind == Interpreter:
		c.Kind = remedy.LastError
	case r.Kind == Cycle && f.saved != "":
		c.Kind, c.Holes["field"] = remedy.Context, f.saved
	case r.Kind == Cycle:
		c.Kind, c.At = h.aside.cycle, ""
		c.Holes["class"], c.Holes["field"] = cmp.Or(identifier(h.aside.backOf), "its class"), h.aside.back
	case r.Kind == Cache:
		c.Kind, c.At = remedy.Cache, at(r.File, r.Line)
	case r.Kind == Hook, many && f.registry != "" && f.container == "":
		c.Kind, c.Registered = remedy.Hook, cmp.Or(c.Registered, "register_..._hook")
	case r.Kind == Attribute && r.Class == "WeakKeyDictionary":
		c.Kind, c.Holes["holder"] = remedy.Weak, cmp.Or(h.aside.owner, "dictionary")
	case h.aside.was == Optimizer && f.container == "":
		c.Kind, c.At = remedy.Groups, ""
	case r.Object == "tensor" && h.growth != nil && h.growth.Cause.Kind == ghost.Rebuilt:
		c.Kind = remedy.Rebuilt
	case h.carried():
		c.Kind, c.Holes["holder"] = carriers[f.outer], holder
		if f.path != "" || f.container != "" && f.element != remedy.Tensor && f.element != remedy.Number {
			c.Kind = remedy.CarriedNested
		}
	case !h.grows() && f.outer != "" && f.outer != remedy.Tuple:
		c.Kind, c.Holes["holder"] = remedy.Clear, holder
	case !h.grows():
		c.Kind, c.Holes["holder"] = remedy.Stale, holder
	case (f.instead == remedy.Weights || f.instead == remedy.Optimizers) && f.container != remedy.List:
		c.Kind, c.Form = f.container, remedy.Other
	case f.instead != "":
		c.Kind = f.instead
		c.Holes["remove"] = map[bool]string{true: "discard", false: "remove"}[f.container == remedy.Set]
	case f.container != "":
		c.Kind, c.Form = f.container, f.element
		if r.Kind == Attribute && (r.Class == "Queue" || strings.HasSuffix(r.Class, "Queue")) && h.aside.owner != "" {
			c.Kind, c.Holes["holder"] = remedy.Queue, h.aside.owner
			if r.Variable == "_queue" {
				c.Kind = remedy.AsyncQueue
			}
		}
		switch {
		case r.Kind == Context && c.Kind == remedy.Tuple:
			c.Kind = remedy.ContextTuple
		case r.Kind == Partial: // the function knows it by another name
			c.Form = remedy.Other
		}
	case r.Kind == Generator:
		c.Kind, c.At = remedy.Generator, at(r.File, r.Line)
	case r.Object == "tensor" && many && (r.Kind == Closure || r.Kind == Default):
		c.Kind, c.Holes["name"] = remedy.Captured, holder
	case r.Object == "tensor" && many && r.Kind == Attribute:
		c.Kind = remedy.Parts
	default:
		c.Kind = remedy.Stale
	}
	return c
}

// grows reports whether it has more than in the earlier dump, or seems to by the trace.
func (h *Holder) grows() bool {
	if h.Standing == Ghost || h.Before.Count == 0 {
		return h.Standing == Ghost || h.GrownBlocks > 1
	}
	return h.Storage.Count > h.Before.Count
}

// at is a place as a change has it, "" unknown.
func at(file string, line int) string {
	if file == "" || file == "." || file == "/" || line <= 0 {
		return ""
	}
	return file + ":" + strconv.Itoa(line)
}

// carriers are the kinds of what has a graph that goes on from step to step, by their container.
var carriers = map[remedy.Kind]remedy.Kind{"": remedy.Carried, remedy.List: remedy.CarriedList,
	remedy.Deque: remedy.CarriedList, remedy.Tuple: remedy.CarriedTuple, remedy.Dict: remedy.CarriedDict}

// carried reports whether the graphs of many steps hang on few tensors, such as a sum or a hidden state, rather than
// on one of each step.
func (h *Holder) carried() bool {
	if !h.throughGraph() || carriers[h.aside.form.container] == "" || h.aside.form.instead != "" {
		return false
	}
	switch {
	case h.Object == "tensor":
		return h.Objects <= 1 || h.Kind != Closure && h.Kind != Default
	case h.Laps > 0:
		return 2*h.Tensors < h.Laps
	case h.aside.tensorsBefore > 0:
		return h.Tensors <= h.aside.tensorsBefore
	}
	return h.Tensors <= 4
}

// quoted is what a key's text names, if that can be the name of an attribute.
func quoted(label string) string {
	if n := len(label); n > 2 && label[0] == '\'' && label[n-1] == '\'' {
		return identifier(label[1 : n-1])
	}
	return ""
}

// dotted gives a name back if it is made of identifiers.
func dotted(s string) string {
	for part := range strings.SplitSeq(s, ".") {
		if identifier(part) == "" {
			return ""
		}
	}
	return s
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
