package ghost

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Kind is what probably keeps the memory.
type Kind string

// Kinds of causes. A snapshot has no references in it, so that each is a guess from where and
// when the memory was allocated.
const (
	Graph     Kind = "graph"      // outputs or losses whose autograd graph was never used
	Retained  Kind = "retained"   // graphs that a backward pass used and did not free
	Loss      Kind = "loss"       // scalars of a loss function
	Output    Kind = "output"     // what the model returned last
	Captured  Kind = "captured"   // a tensor from inside the model, without those around it
	Gradients Kind = "gradients"  // what backward passes made
	Cached    Kind = "cache"      // made by a function that is named a cache
	Batch     Kind = "batch"      // made by a function that is named after loading
	Object    Kind = "collection" // anything else: a list, dict, object or cycle
)

// Cause says what probably keeps the memory, and why it is thought to.
type Cause struct {
	Kind  Kind
	Why   []string // reasons, each a sentence
	Hints []string // functions of the stack whose names hint at a holder
	Fix   []string // two lines of Python
}

// sure reports whether nobody keeps such memory on purpose.
func (c *Cause) sure() bool { return c.Kind == Graph || c.Kind == Retained || c.Kind == Loss }

// scalar is the most bytes that a single number takes.
const scalar = 8

// cause judges by what the stacks of a growth have in common.
func (k *clock) cause(g *Growth, group []*candidate) Cause {
	top := group[0]
	modules, losses, frameless := 0, 0, 0
	for _, c := range group {
		switch sort := k.code.sort(c.stack); {
		case sort&inModule != 0:
			modules++
		case sort&ofLoss != 0:
			losses++
		case sort&nameless != 0:
			frameless++
		}
	}
	perLap := float64(g.Count) / float64(len(top.births))
	whole := modules >= 3 || modules == 2 && perLap >= 3
	size := k.t.Lives[top.rows[top.kept[0]]].Requested
	hints := k.hints(top.stack)
	c := Cause{Hints: hints}
	switch {
	case whole && k.backwardIn(top):
		c.Kind = Retained
		c.Why = append(c.Why, fmt.Sprintf("Activations from %d places in a forward pass survive together although "+
			"a backward pass ran in the same iterations: the graph is used again, or never freed.", modules))
		c.Fix = []string{"loss.backward()  # without retain_graph=True",
			"hidden = hidden.detach()  # before it goes into the next step"}
	case whole:
		c.Kind = Graph
		c.Why = append(c.Why, fmt.Sprintf("Activations from %d places in a forward pass survive together, and no "+
			"backward pass ran for them: something keeps an output or a loss, and with it the autograd graph.", modules))
		if losses > 0 {
			c.Fix = []string{"with torch.no_grad():  # around the validation loop", "    losses.append(loss.item())"}
		} else {
			c.Why = append(c.Why, "A stored exception would look the same: its traceback holds the locals of its frames.")
			c.Fix = []string{"with torch.inference_mode():", "    outputs.append(model(x).cpu())"}
		}
	case frameless > 0 && k.code.sort(top.stack)&nameless != 0:
		c.Kind = Gradients
		c.Why = append(c.Why, "No Python stack (backward), and larger than all gradients combined: gradients of several "+
			"steps are kept.")
		c.Fix = []string{"grads = [g.cpu() for g in grads]  # or only their norm, .item()",
			"optimizer.zero_grad(set_to_none=True)"}
	case k.code.sort(top.stack)&ofLoss != 0 && size <= scalar:
		c.Kind = Loss
		c.Why = append(c.Why, "These are single numbers from a loss function: losses are kept as tensors.")
		c.Fix = []string{"losses.append(loss.item())  # a number, not a tensor", "running += loss.item()"}
	case slices.ContainsFunc(hints, namesCache):
		c.Kind = Cached
		c.Why = append(c.Why, "A function in the stack is named like a cache, and no bound is visible.")
		c.Fix = []string{"@functools.lru_cache(maxsize=32)  # or: cache.pop(next(iter(cache)))",
			"make.cache_clear()  # between epochs"}
	case modules > 0 && k.lastOfForward(top):
		c.Kind = Output
		c.Why = append(c.Why, "Only the last tensor of each forward pass survives: the outputs are kept.")
		c.Fix = []string{"outputs.append(out.cpu())  # or reduce it first: out.argmax(-1).cpu()", "del out"}
	case modules > 0:
		c.Kind = Captured
		c.Why = append(c.Why, "It comes from inside the model, but what the same forward passes allocated around it was "+
			"freed: a hook, a closure or a module attribute keeps it.")
		c.Fix = []string{"features[:] = [output.detach().cpu()]  # in the hook: replace, do not append",
			"handle.remove()  # when no longer needed"}
	case slices.ContainsFunc(hints, namesLoading):
		c.Kind = Batch
		c.Why = append(c.Why, "A function in the stack is named like data loading: batches are kept.")
		c.Fix = []string{"kept.append(batch.cpu())  # or a collections.deque(maxlen=8)", "del batch"}
	default:
		c.Kind = Object
		c.Fix = []string{"history.append(x.detach().cpu())  # or a collections.deque(maxlen=100)",
			"gc.collect()  # if the objects form a reference cycle"}
	}
	if len(hints) > 0 {
		c.Why = append(c.Why, "A hint only: the stack passes through "+calls(hints)+".")
	}
	return c
}

// calls lists functions: "batch(), collate()".
func calls(names []string) string {
	var out []string
	for _, name := range names {
		if !strings.HasPrefix(name, "<") {
			name += "()"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// hints are functions of a stack, outside of torch, whose names hint at a holder. Frames have
// the function's own name only (snapshot/SPEC.md 2.9): a closure is seen as its inner function.
func (k *clock) hints(stack snapshot.StackID) []string {
	var out []string
	path := k.code.path(stack)
	for i := len(path) - 1; i >= 0 && len(out) < 3; i-- {
		if frames.Of(k.s, path[i]).IsLibrary() {
			continue
		}
		name := k.s.Strings.Get(k.s.Frames.Get(path[i]).Name)
		if (strings.HasPrefix(name, "<") && name != "<module>" || namesCache(name) || namesLoading(name) ||
			namesHolder(name)) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func namesCache(name string) bool { return contains(name, "cache", "memo") }

func namesLoading(name string) bool {
	return contains(name, "batch", "collate", "loader", "prefetch", "fetch", "load_data", "next_")
}

func namesHolder(name string) bool {
	return contains(name, "hook", "callback", "closure", "wrapper", "log", "history", "store", "record", "track",
		"remember", "append", "collect", "accumulate")
}

func contains(name string, parts ...string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) })
}

// sampled is how many laps are looked at where a few tell.
const sampled = 8

// backwardIn reports whether memory without Python frames was allocated in most laps that left
// survivors.
func (k *clock) backwardIn(c *candidate) bool {
	laps, with := 0, 0
	for i := 0; i+1 < len(c.births) && laps < sampled; i++ {
		laps++
		for row := c.rows[c.kept[0]]; int(row) < len(k.t.Lives); row++ {
			l := &k.t.Lives[row]
			if l.Born >= c.births[i+1] {
				break
			}
			if l.Born > c.births[i] && l.Stack > 0 && k.code.sort(l.Stack)&nameless != 0 {
				with++
				break
			}
		}
	}
	return 2*with > laps
}

// lastOfForward reports whether, after most survivors, their lap had no other allocation
// inside a module.
func (k *clock) lastOfForward(c *candidate) bool {
	looked := c.kept[:min(sampled, len(c.kept))]
	last := len(looked)
	for _, i := range looked {
		for row := c.rows[i] + 1; int(row) < len(k.t.Lives); row++ {
			stack := k.t.Lives[row].Stack
			sort := k.code.sort(stack)
			if sort&(ofLoss|nameless) != 0 {
				break
			}
			if sort&inModule == 0 {
				continue
			}
			if _, other := k.between(c.rows[i], row); other {
				break
			}
			if stack != c.stack {
				last--
				break
			}
		}
	}
	return 2*last > len(looked)
}
