package ghost

import (
	"slices"
	"strings"
	"unicode"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
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
	Rebuilt   Kind = "concat"     // one tensor that grows: a new one of the old and of what is added
	Models    Kind = "models"     // parameters and optimizer state, made anew
	Object    Kind = "collection" // anything else: a list, dict, object or cycle
)

// Cause is what probably keeps the memory, and what makes it probable.
type Cause struct {
	Kind   Kind
	Places int  // stacks inside the forward of a module
	Losses bool // other stacks are of a loss function
	Used   bool // Loss: a backward pass ran for them
	Second bool // Graph, Retained: gradients have a graph of their own, as create_graph=True makes it
	// Pending says of a graph that a loop which unrolls a net, or adds up losses, for one backward pass after it looks the
	// same until that runs: memory ran out before one could have freed it, or the graph is one of gradients, and no
	// optimizer has changed the weights since.
	Pending bool
	// Spent says of models that their gradients and the state of their optimizers are those of their own laps: none of them
	// was trained again.
	Spent bool
	Hints []string // functions of the stack whose names hint at a holder, at most 3

	dense    bool // most of what a forward pass allocated is kept
	together bool // too much of a forward pass is kept for a single result of it
}

// sure reports whether nobody keeps such memory on purpose.
func (c *Cause) sure() bool { return c.Kind == Graph || c.Kind == Retained || c.Kind == Loss }

// whole is how many tensors of a forward pass are kept together as no single result of it is.
const whole = 3

// scalar is the most bytes that a single number takes.
const scalar = 8

// cause judges by what the stacks of a growth have in common.
func (k *clock) cause(g *Growth, group []*candidate) Cause {
	top := group[0]
	c := Cause{Hints: k.hints(top.stack)}
	frameless, ofModels, all, inside := false, int64(0), int64(0), 0
	gradients, states := false, false
	for _, each := range group {
		all += sum(each.bytes)
		if each.beside || k.code.sort(each.stack)&ofModel != 0 {
			ofModels += sum(each.bytes)
		}
		sort := k.code.sort(each.stack)
		gradients, states = gradients || each.beside, states || sort&optimizing != 0
		switch {
		case sort&inModule != 0:
			c.Places++
			inside += len(each.kept)
		case sort&ofLoss != 0:
			c.Losses = true
		case sort&nameless != 0:
			frameless = true
		}
		c.Second = c.Second || sort&(nameless|inBackward) != 0 && 2*len(each.births) > len(top.births)
	}
	perLap := float64(inside) / float64(len(top.births))
	c.together = c.Places >= whole || c.Places > 0 && perLap >= whole
	graph, used := false, false
	if c.together {
		graph, used, c.dense = k.graph(group)
		graph = graph && (c.Places > 1 || c.dense) && (c.Places >= whole || k.even(top))
		c.together = c.Places > 1 || graph
	}
	size := k.t.Lives[top.rows[top.kept[0]]].Requested
	switch {
	case 2*ofModels > all:
		c.Kind = Models
	case top.rebuilt:
		c.Kind = Rebuilt
	case graph && used:
		c.Kind = Retained
	case graph:
		c.Kind = Graph
	case frameless && k.code.sort(top.stack)&nameless != 0:
		c.Kind = Gradients
	case k.code.sort(top.stack)&ofLoss != 0 && size <= scalar:
		c.Kind, c.Used = Loss, k.backwardNext(top)
	case slices.ContainsFunc(c.Hints, namesCache):
		c.Kind = Cached
	case c.Places > 0 && c.Places < whole && k.lastOfForward(top):
		c.Kind = Output
	case c.Places > 0:
		c.Kind = Captured
	case k.code.sort(top.stack)&ofLoader != 0, slices.ContainsFunc(c.Hints, namesLoading):
		c.Kind = Batch
	default:
		c.Kind = Object
	}
	c.Spent = c.Kind == Models && gradients && states
	c.Second = c.Second && (c.Kind == Graph || c.Kind == Retained)
	c.Pending = k.ranOut(g.Horizon) && (c.Second || c.Kind == Graph && !k.backwardBefore(int32(g.Horizon))) ||
		c.Second && !k.within(optimizing, int32(g.First), int32(g.Horizon))
	return c
}

// ranOut reports whether an event is that of memory running out.
func (k *clock) ranOut(event int) bool {
	return slices.ContainsFunc(k.t.OOMs, func(o timeline.OOMEvent) bool { return o.Event == event })
}

// backwardBefore reports whether there is a backward pass up to an event.
func (k *clock) backwardBefore(event int32) bool { return k.within(nameless|inBackward, 0, event) }

// within reports whether anything of a sort was allocated from one event up to another.
func (k *clock) within(sort stackKind, first, last int32) bool {
	for i := range k.t.Lives {
		l := &k.t.Lives[i]
		if l.Born > last {
			break
		}
		if l.Born >= first && l.Stack > 0 && k.code.sort(l.Stack)&sort != 0 {
			return true
		}
	}
	return false
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

func namesCache(name string) bool {
	return contains(name, "cache", "memoiz", "memois") || slices.ContainsFunc(words(name), func(w string) bool {
		return w == "memo"
	})
}

// words are those of a name, in lower case: "loadMemo_v2" has load, memo and v2.
func words(name string) []string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return r == '_' })
}

// namesLoading tells what makes a batch from what does something with one, as run_batch of a server.
func namesLoading(name string) bool {
	if contains(name, "collate", "loader", "fetch") {
		return true
	}
	w := words(name)
	makes := len(w) == 1 || len(w) > 1 && slices.Contains(loading[:], w[0])
	return makes && slices.ContainsFunc(w, func(s string) bool {
		return s == "batch" || s == "batches" || len(w) > 1 && (s == "data" || s == "sample" || s == "samples")
	})
}

// loading are verbs of functions that make batches.
var loading = [...]string{"load", "get", "next", "make", "read", "sample", "build", "create", "draw", "iter", "prepare",
	"move", "to", "new", "stage", "upload"}

func namesHolder(name string) bool {
	return contains(name, "hook", "callback", "closure", "wrapper", "history", "record", "track", "remember", "append",
		"collect", "accumulate") || slices.ContainsFunc(words(name), func(w string) bool {
		return w == "log" || w == "logs" || w == "logger" || w == "logging" || w == "store" || w == "stores"
	})
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

// rounds counts the laps that left survivors between which and the next one backward passes ran.
func (k *clock) rounds(c *candidate) (n int) {
	if k.backwards == nil {
		k.backwards = []int32{}
		for i := range k.t.Lives {
			if l := &k.t.Lives[i]; l.Born >= 0 && l.Stack > 0 && k.code.sort(l.Stack)&(nameless|inBackward) != 0 {
				k.backwards = append(k.backwards, l.Born)
			}
		}
	}
	for i := 1; i < len(c.births); i++ {
		if between(k.backwards, c.births[i-1], c.births[i]) > 0 {
			n++
		}
	}
	return n
}

// backwardNext reports whether, after most survivors, a backward pass came before another forward.
func (k *clock) backwardNext(c *candidate) bool {
	looked, used := c.kept[:min(sampled, len(c.kept))], 0
	for _, i := range looked {
		for row := c.rows[i] + 1; int(row) < len(k.t.Lives); row++ {
			sort := k.code.sort(k.t.Lives[row].Stack)
			if sort&(nameless|inBackward) != 0 {
				used++
			}
			if sort&(nameless|inBackward|inModule) != 0 || c.lapAt(k.t.Lives[row].Born) != c.lap[i] {
				break
			}
		}
	}
	return 2*used > len(looked)
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
			if _, other := k.between(c.rows[i], row, new(0)); other {
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
