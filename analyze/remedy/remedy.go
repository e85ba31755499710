// Package remedy has the changes to a program that let memory go which it keeps: one table of all that are printed,
// by what keeps the memory and what is kept. Each is made for one type, so that it runs where it is put.
//
// A change is a line of Python. It takes the place of the line that keeps the memory, or comes where its comment says.
// Programs of fixtures/fixes have each of them applied, run, and stop leaking.
package remedy

import (
	"slices"
	"strings"
	"unicode"
)

// Kind is what keeps the memory, as far as the change depends on it.
type Kind string

// Kinds of what keeps memory. Those up to Array are containers: they are given a Form, too.
const (
	List         Kind = "list"
	Deque        Kind = "deque"
	Set          Kind = "set"
	Dict         Kind = "dict"
	Tuple        Kind = "tuple"
	Queue        Kind = "queue"
	AsyncQueue   Kind = "asyncio queue"
	ContextTuple Kind = "tuple in a context variable"

	Field    Kind = "attribute of objects in a container"
	Item     Kind = "entry of outputs in a container"
	Args     Kind = "arguments of log records"
	Captured Kind = "tensors of closures, defaults and partials"
	Parts    Kind = "attribute of many objects"
	Tasks    Kind = "tasks"

	Carried       Kind = "tensor with a graph"
	CarriedTuple  Kind = "tuple of tensors with a graph"
	CarriedList   Kind = "list of tensors with a graph"
	CarriedDict   Kind = "dict of tensors with a graph"
	CarriedNested Kind = "tensors with a graph in containers"

	Rebuilt   Kind = "tensor that grows"
	Stale     Kind = "variable"
	Clear     Kind = "container that does not grow"
	Cache     Kind = "lru_cache"
	Weak      Kind = "WeakKeyDictionary"
	Hook      Kind = "hook"
	Frames    Kind = "traceback"
	Causes    Kind = "traceback of a cause"
	LastError Kind = "the interpreter's last error"
	Cycle     Kind = "cycle"
	CycleAttr Kind = "cycle by an attribute"
	CycleName Kind = "cycle by a variable"
	Context   Kind = "ctx of an autograd function"
	Generator Kind = "generator"
	Groups    Kind = "parameter groups"
	// Optimizers are in a list, which takes no other things.
	Optimizers Kind = "optimizers"

	// What is known where nobody saw who keeps the memory.
	Kept    Kind = "outputs or batches"
	CacheOf Kind = "a cache"
	Weights Kind = "models"
	Second  Kind = "graphs of gradients"
)

// Change is a line of Python with holes ($holder), and why it helps.
type Change struct{ Code, Why string }

const (
	latest = "if only the latest are needed"
	before = "before it is kept: on the host, without its graph"
	after  = "after each step: the value goes on, its graph does not"
)

// table has the changes of each kind. The second is another way out. In $value, and in the reason $why, is what a Form
// says.
var table = map[Kind][]Change{
	List:  {{"$holder.append($value)", "$why"}, {"del $holder[:-8]", latest}},
	Deque: {{"$holder.append($value)", "$why"}, {"while len($holder) > 8: $holder.popleft()", latest}},
	Set:   {{"$holder.add($value)", "$why"}, {"while len($holder) > 8: $holder.pop()", "if a few are enough"}},
	Dict:  {{"$holder[key] = $value", "$why"}, {"while len($holder) > 8: $holder.pop(next(iter($holder)))", latest}},
	Tuple: {{"$holder += ($value,)", "$why"}, {"$holder = $holder[-8:]", latest}},
	Queue: {{"$holder.put($value)", "$why"},
		{"while $holder.qsize() > 8: $holder.get_nowait()", "if nobody takes the oldest"}},
	AsyncQueue: {{"$holder.put_nowait($value)", "$why"},
		{"while $holder.qsize() > 8: $holder.get_nowait()", "if nobody takes the oldest"}},
	ContextTuple: {{"$holder.set($holder.get() + ($value,))", "$why"}, {"$holder.set($holder.get()[-8:])", latest}},

	Field:    {{"$name.$field = $name.$field.detach().cpu()", before}},
	Item:     {{"$name[\"$field\"] = $name[\"$field\"].detach().cpu()", before}},
	Args:     {{"record.msg, record.args = record.getMessage(), None", "in the handler: text instead of tensors"}},
	Captured: {{"$name = $name.detach().cpu()", before}},
	Parts:    {{"$holder = $holder.detach().cpu()", "where it is set: on the host, without its graph"}},
	Tasks:    {{"task.add_done_callback($holder.$remove)", "after create_task(): a task that is done has its result"}},

	Carried:      {{"$holder = $holder.detach()", after}},
	CarriedTuple: {{"$holder = tuple(t.detach() if torch.is_tensor(t) else t for t in $holder)", after}},
	CarriedList:  {{"$holder = [t.detach() if torch.is_tensor(t) else t for t in $holder]", after}},
	CarriedDict:  {{"$holder = {k: t.detach() if torch.is_tensor(t) else t for k, t in $holder.items()}", after}},
	CarriedNested: {{"$holder = tree_map_only(torch.Tensor, torch.Tensor.detach, $holder)",
		"after each step, from torch.utils._pytree"}},

	Rebuilt: {{"$holder = $holder[-256:].detach().clone()", "after it is made: its length has a bound"}},
	Stale:   {{"$holder = None", "when it is no longer needed"}},
	Clear:   {{"$holder.clear()", "when it is no longer needed"}},
	Cache: {{"$holder.cache_clear()", "when its results are no longer needed"},
		{"@functools.lru_cache(maxsize=8)", "in place of its decorator: a bound"}},
	Weak: {{"$holder.pop(key, None)", "when done with a key: its value refers to it, so it never goes by itself"}},
	Hook: {{"handle.remove()", "when it is no longer needed: handle is what $register returned"}},
	Frames: {{"traceback.clear_frames(err.__traceback__)",
		"in the except block: the error stays, the variables of its frames go"}},
	Causes: {{"traceback.clear_frames(err.$cause.__traceback__)",
		"in the except block: the error stays, the variables of the frames of its cause go"}},
	LastError: {{"sys.last_exc = sys.last_value = sys.last_traceback = None", "when it has been looked at"}},
	Cycle:     {{"gc.collect()", "now and then: frees cycles that Python's collector has not come to"}},
	CycleAttr: {{"gc.collect()", "now and then: frees cycles that Python's collector has not come to"},
		{"self.$back = None", "in $class, when it is done: breaks the cycle"}},
	CycleName: {{"gc.collect()", "now and then: frees cycles that Python's collector has not come to"},
		{"$back = None", "at the end of the function that made it: breaks the cycle"}},
	Context:   {{"ctx.save_for_backward(output)", "in place of ctx.$field: backward has it in ctx.saved_tensors"}},
	Generator: {{"generator.close()", "when done with it: its variables go"}},
	Groups: {{"for p in $holder.param_groups.pop()[\"params\"]: $holder.state.pop(p, None)",
		"when done with what the last group was added for, before the next is added"}},
	Optimizers: {{"del $holder[:-1]", "after the newest is added: of the others nothing is needed, unless they train on"}},

	Kept: {{"$holder.append($name.detach().cpu())", "of a tensor: on the host, without its graph"},
		{"$holder.append(tree_map_only(torch.Tensor, lambda t: t.detach().cpu(), $name))",
			"of a tuple, list or dict, from torch.utils._pytree"}},
	CacheOf: {{"@functools.lru_cache(maxsize=8)", "in place of a decorator without a bound"},
		{"while len(cache) > 8: cache.pop(next(iter(cache)))", "of a dict, after an entry is added"}},
	Weights: {{"$holder.append(score)", "the score, not the trainer, which has the model and its optimizer"},
		{"$holder.append({k: t.detach().cpu() for k, t in model.state_dict().items()})", "to keep the weights"}},
	Second: {{"grads = torch.autograd.grad(loss, params, create_graph=True)",
		"in place of loss.backward(create_graph=True)"},
		{"optimizer.zero_grad(set_to_none=True)", "once the second derivatives are taken"}},
}

// Form is what is put into a container.
type Form string

// Forms of entries.
const (
	Number Form = "number"
	Tensor Form = "tensor"
	View   Form = "view"
	OfList Form = "list of tensors"
	OfDict Form = "dict of tensors"
	OfPair Form = "tuple of tensors"
	Nested Form = "tensors in containers"
	Copy   Form = "view, in host memory"
	Other  Form = "anything else" // of which it is not known how to let go
)

const host = "on the host, without its graph"

// forms say what is put into a container instead: the value, and why.
var forms = map[Form]Change{
	Number: {"loss.item()", "a number, no tensor"},
	Tensor: {"output.detach().cpu()", host},
	View:   {"output.detach().cpu()", "a copy on the host (or .clone()): the view keeps all that it is a view of"},
	Copy:   {"output.detach().clone()", "a copy: the view keeps all that it is a view of"},
	OfList: {"[t.detach().cpu() if torch.is_tensor(t) else t for t in output]", host},
	OfDict: {"{k: t.detach().cpu() if torch.is_tensor(t) else t for k, t in output.items()}", host},
	OfPair: {"tuple(t.detach().cpu() if torch.is_tensor(t) else t for t in output)", host},
	Nested: {"tree_map_only(torch.Tensor, lambda t: t.detach().cpu(), output)", "from torch.utils._pytree: " + host},
	Other:  {},
}

// Kinds are all kinds.
func Kinds() []Kind { return sorted(table) }

// Of are the changes of a kind, with their holes.
func Of(k Kind) []Change { return slices.Clone(table[k]) }

// Forms are all forms.
func Forms() []Form { return sorted(forms) }

func sorted[K ~string, V any](m map[K]V) []K {
	var out []K
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Container reports whether a kind is one that something is put into, which takes a Form.
func (k Kind) Container() bool {
	return len(table[k]) > 0 && strings.Contains(table[k][0].Code, "$value")
}

// Case is a kind with what fills in its changes.
type Case struct {
	Kind Kind
	Form Form   // of a Container
	At   string // "train.py:31", where what is kept is made, "" unknown
	// Holes have the Python for each, by its name: that of $holder is at "holder".
	Holes map[string]string
	// Registered is the function that a hook was registered with, which puts things into the container; "" for none.
	Registered string
}

// OfVariable is the case of a variable of this name.
func OfVariable(kind Kind, name string) Case {
	return Case{Kind: kind, Holes: map[string]string{"holder": name}}
}

// OfMany is the case of a list of unknown things, of which name is one.
func OfMany(list, name string) Case {
	return Case{Kind: Kept, Holes: map[string]string{"holder": list, "name": name}}
}

// Lines are the changes of some cases: one line of Python each, with a comment that says where and why. Each is a way out
// by itself.
func Lines(cases ...Case) []string {
	var out []string
	for i := range cases {
		c := &cases[i]
		var pairs []string
		for hole, code := range c.Holes {
			pairs = append(pairs, "$"+hole, code)
		}
		fill := strings.NewReplacer(append(pairs, "$register", c.Registered+"()")...)
		for _, change := range c.changes() {
			where := ""
			switch {
			case len(out) > 0:
				where = "or, "
			case c.At != "" && !strings.ContainsFunc(c.At, unicode.IsControl):
				where = c.At + ": "
			}
			out = append(out, fill.Replace(change.Code+"  # "+where+change.Why))
		}
	}
	return out
}

// changes are those of its kind, with what its form says; none for no kind.
func (c *Case) changes() []Change {
	changes := slices.Clone(table[c.Kind])
	if c.Registered != "" && c.Kind != Hook && len(changes) > 0 {
		changes = append(changes[:1], table[Hook]...)
	}
	if !c.Kind.Container() {
		return changes
	}
	value := forms[c.Form]
	fill := strings.NewReplacer("$value", value.Code, "$why", value.Why)
	changes[0] = Change{fill.Replace(changes[0].Code), fill.Replace(changes[0].Why)}
	switch c.Form {
	case Other:
		return changes[1:]
	case Number:
		return changes[:1]
	}
	return changes
}
