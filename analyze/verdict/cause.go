package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/remedy"
	"github.com/snapana/snapana/analyze/units"
)

// cause is what is said of what probably keeps a growth.
type cause struct {
	why  []string
	fix  []remedy.Case // each a way out by itself
	next []string      // nil for look
	// program says that what the program does must be changed, whoever keeps the memory.
	program bool
}

const (
	keepNumbers = "Keep numbers, not tensors: losses.append(loss.item())"
	placesStay  = "Activations from %s in a forward pass survive together"
)

// look is the advice where it is not known who keeps the memory.
var look = []string{"Find the list, dict, closure or hook that collects these tensors, and store .detach().cpu() or " +
	".item() instead, or clear it.",
	"If they are garbage in a reference cycle, break the cycle or call gc.collect() between iterations."}

// losses are kept as numbers.
var losses = remedy.Case{Kind: remedy.List, Form: remedy.Number, Holes: map[string]string{"holder": "losses"}}

// causes by kind; of a graph, that of an output.
var causes = map[ghost.Kind]cause{
	ghost.Retained: {
		why: []string{placesStay + " although a backward pass ran in the same iterations: the graph is used again, " +
			"or never freed."},
		fix: []remedy.Case{remedy.OfVariable(remedy.Carried, "hidden"), losses},
		next: []string{"detach() what is carried from one step into the next: then backward() needs no " +
			"retain_graph=True.",
			keepNumbers + "."},
		program: true,
	},
	ghost.Graph: {
		why: []string{placesStay + ", and no backward pass ran for them: something keeps an output or a loss, and " +
			"with it the autograd graph.",
			"A stored exception would look the same: its traceback holds the locals of its frames."},
		fix: []remedy.Case{remedy.OfMany("outputs", "output"), losses},
		next: []string{keepNumbers + ", or outputs.append(out.detach().cpu()).",
			"Run evaluation under torch.no_grad() or torch.inference_mode(), so that no graph is built."},
		program: true,
	},
	ghost.Gradients: {
		why: []string{"No Python stack (backward), and larger than all gradients combined: gradients of several " +
			"steps are kept."},
		fix: []remedy.Case{remedy.OfMany("gradients", "gradient")},
	},
	ghost.Loss: {
		why:     []string{"These are single numbers from a loss function: losses are kept as tensors."},
		fix:     []remedy.Case{losses},
		next:    []string{keepNumbers + "."},
		program: true,
	},
	ghost.Cached: {
		why: []string{"A function in the stack is named like a cache, and no bound is visible."},
		fix: []remedy.Case{{Kind: remedy.CacheOf}},
	},
	ghost.Output: {
		why: []string{"Only the last tensor of each forward pass survives: the outputs are kept."},
		fix: []remedy.Case{remedy.OfMany("outputs", "output")},
	},
	ghost.Captured: {
		why: []string{"It comes from inside the model, but what the same forward passes allocated around it was " +
			"freed: a hook, a closure, a module attribute or a list of outputs (such as hidden states) keeps it."},
		fix: []remedy.Case{remedy.OfMany("outputs", "output"), {Kind: remedy.Hook, Registered: "register_forward_hook"}},
		next: []string{"Look at what the program keeps of the model's outputs and losses (lists, dicts, running sums): " +
			"store .detach().cpu() or .item().",
			"Look for forward hooks, closures and module attributes that collect this tensor; replace or clear what " +
				"they hold, and remove hooks that are no longer needed."},
	},
	ghost.Batch: {
		why: []string{"Data loading makes it, to judge by the stack: items of a data set or batches are kept."},
		fix: []remedy.Case{remedy.OfMany("batches", "batch")},
	},
	ghost.Rebuilt: {
		why: []string{"It is one tensor, made anew and larger each time, as torch.cat does: while it is made there are " +
			"two of it, and the blocks that it outgrew stay reserved, as nothing else is of their size."},
		fix: []remedy.Case{remedy.OfVariable(remedy.Rebuilt, "memory")},
		next: []string{"Bound its length, or allocate it once at its final size and write into it by index.",
			"Results that are needed later: collect them on the host (.cpu()), and join them once after the loop."},
		program: true,
	},
	ghost.Models: {
		why: []string{"Each iteration makes a model or an optimizer anew and trains it, and those of the iterations before " +
			"stay with their parameters, optimizer state or gradients.",
			"Models that are needed together later, as in an ensemble, would look the same, but they need their parameters " +
				"only."},
		fix: []remedy.Case{remedy.OfVariable(remedy.Weights, "results")},
		next: []string{"Find what keeps the trainer, model or optimizer of each iteration (a list of results, a closure, a " +
			"callback), and keep its score or its state_dict() on the host in its place.",
			"If the models are kept on purpose, plan for their number: drop optimizers and gradients once each is trained."},
	},
	ghost.Object: {
		fix: []remedy.Case{remedy.OfMany("history", "x"), {Kind: remedy.Cycle}},
	},
}

// second is the cause of a graph of gradients, which second derivatives need: detach() would take them away.
var second = cause{
	why: []string{placesStay + ", and what a backward pass made with them: gradients that have a graph of their own, as " +
		"create_graph=True makes it.",
		"loss.backward(create_graph=True) leaves such a graph behind in each parameter's .grad: a reference cycle, unless " +
			".grad is set to None after its use."},
	fix: []remedy.Case{{Kind: remedy.Second}},
	next: []string{"Take second derivatives with torch.autograd.grad(), and let go of its results (del grads) or set .grad to " +
		"None once they are used.",
		"Record a penalty or an inner loss as a number: log.append(penalty.item()).",
		"An inner loop that is differentiated through keeps the graph of all its steps: fewer inner steps, first-order " +
			"gradients (create_graph=False) or checkpointing lower that."},
	program: true,
}

// pending is what to do about a graph that may wait for its backward pass.
const pending = "If the loop builds it for one backward pass: run backward() more often (truncated backpropagation, or " +
	"each micro-batch's loss by itself), or use activation checkpointing. Otherwise:"

// causeOf makes the words on a growth's cause.
func causeOf(c *ghost.Cause) cause {
	out := causes[c.Kind]
	if c.Second {
		out = second
	}
	out.why = slices.Clone(out.why)
	if c.Pending && !c.Second {
		out.next = append([]string{pending}, out.next...)
	}
	if c.Kind == ghost.Graph && c.Losses && !c.Second {
		out.why = out.why[:1]
		out.fix = []remedy.Case{losses}
	}
	if c.Kind == ghost.Graph || c.Kind == ghost.Retained {
		out.why[0] = fmt.Sprintf(out.why[0], units.Plural(c.Places, "place"))
	}
	if out.next == nil {
		out.next = look
	}
	if len(c.Hints) > 0 {
		var calls []string // "batch(), collate()"
		for _, name := range c.Hints {
			if !strings.HasPrefix(name, "<") {
				name += "()"
			}
			calls = append(calls, name)
		}
		out.why = append(out.why, "A hint only: the stack passes through "+strings.Join(calls, ", ")+".")
	}
	return out
}
