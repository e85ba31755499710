package category

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// origin is the part of a program that a stack belongs to.
type origin uint8

const (
	notYet    origin = iota
	nowhere          // no stack was recorded
	frameless        // recorded, without frames: a thread without Python, mostly autograd's
	scratch          // cuBLAS
	optimizer
	distributed
	caching // key-value caches of inference servers
	loading // Module.to, checkpoints
	building
	backward
	own       // code of the program's own that a backward pass calls
	recompute // forward code that runs again inside backward
	forward
	loader
	program
)

// originOf looks at the frames of the innermost phase: the most telling one decides. torch.distributed counts for what
// it allocates itself, not for a model that it runs or makes: DistributedDataParallel's forward is around the whole
// model's.
func originOf(s *snapshot.Snapshot, running []bool, stack snapshot.StackID) origin {
	switch stack {
	case 0:
		return nowhere
	case snapshot.EmptyStack:
		return frameless
	}
	var saw [program + 1]bool
	var walk frames.Walk
	loads, called := false, false
	for _, id := range slices.Backward(s.Stacks.Get(stack)) {
		class := frames.Of(s, id)
		if walk.Enter(class) {
			saw = [program + 1]bool{scratch: saw[scratch]}
		}
		loads = loads || class.Part() == frames.Loader
		called = called || class.Has(frames.CalledBack)
		o := frameOrigin(class)
		if running[id] && (o == building || o == loading) {
			o = program
		}
		if o == forward || o == building || o == loading {
			saw[distributed] = false
		}
		saw[o] = true
	}
	switch o := ofPhase[walk.Phase()]; {
	case o == forward && loads:
		return loader // a transform that is a module, as those of torchvision
	case o == backward && called:
		saw[own] = true
	default:
		saw[o] = true
	}
	for o := scratch; o < program; o++ {
		if saw[o] {
			return o
		}
	}
	return program
}

// ofPhase is what phases are for; notYet is nothing that would tell.
var ofPhase = [...]origin{
	frames.InForward: forward, frames.InRecompute: recompute, frames.InBackward: backward, frames.InOptimizer: optimizer,
}

// ofPart is what parts of torch are for; notYet is nothing that would tell.
var ofPart = [frames.NumParts]origin{
	frames.Distributed: distributed,
	frames.ModuleMove:  loading,
	frames.ModuleInit:  building,
	frames.Loss:        forward,
	frames.Functional:  forward,
	frames.Loader:      loader,
}

func frameOrigin(c frames.Class) origin {
	switch part := c.Part(); {
	case c.Has(frames.Workspace):
		return scratch
	case ofPart[part] != notYet:
		return ofPart[part]
	case c.Has(frames.KVCache):
		return caching
	case c.Has(frames.LoadsModel):
		return loading
	case c.Has(frames.Constructor):
		return building
	}
	return program
}

// Rule puts the memory of matching stacks into a category.
type Rule struct {
	Match    *regexp.Regexp // against each frame, as "file:line function"
	Category Category
	// Original, if set, gives the text of the frame that Match is for: of a redacted snapshot.
	Original func(frame string) string
}

func (r *Rule) matches(frame string) bool {
	if r.Original != nil {
		frame = r.Original(frame)
	}
	return r.Match.MatchString(frame)
}

// ParseRules reads rules from YAML:
//
//	rules:
//	  - match: 'paged_attention\.py:\d+ allocate'
//	    category: activation
//
// The first rule that matches any frame of a stack decides.
func ParseRules(data []byte) ([]Rule, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("the rules are no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.IsZero() {
		return nil, nil
	}
	top, err := fields(doc.Content[0], "rules")
	if err != nil {
		return nil, err
	}
	list := top["rules"]
	switch {
	case list == nil || list.Tag == "!!null":
		return nil, nil
	case list.Kind != yaml.SequenceNode:
		return nil, fmt.Errorf("line %d: rules is no list; expected entries that begin with \"- match:\"", list.Line)
	}
	var rules []Rule
	for i, node := range list.Content {
		r, err := fields(node, "match", "category")
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		match, category := scalar(r["match"]), scalar(r["category"])
		c, ok := Parse(category)
		if !ok {
			return nil, fmt.Errorf("rule %d: unknown category %q; choose from %s", i+1, category,
				strings.Join(names[:], ", "))
		}
		re, err := regexp.Compile(match)
		if err != nil {
			return nil, fmt.Errorf("rule %d: invalid regular expression in match: %w", i+1, err)
		}
		if match == "" {
			return nil, fmt.Errorf("rule %d: match is empty and would match every stack", i+1)
		}
		rules = append(rules, Rule{Match: re, Category: c})
	}
	return rules, nil
}

// fields are the values of a mapping that may have only known keys, each of them once.
func fields(n *yaml.Node, known ...string) (map[string]*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: expected %s", n.Line, strings.Join(known, ": ... and ")+": ...")
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !slices.Contains(known, key.Value):
			return nil, fmt.Errorf("line %d: unknown key %q; expected %s", key.Line, key.Value, strings.Join(known, " and "))
		case out[key.Value] != nil:
			return nil, fmt.Errorf("line %d: %s is there twice", key.Line, key.Value)
		}
		out[key.Value] = n.Content[i+1]
	}
	return out, nil
}

// scalar is the text of a value, "" where there is none.
func scalar(n *yaml.Node) string {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// applyRules gives the verdict of the first rule that matches, by stack.
func applyRules(s *snapshot.Snapshot, rules []Rule) []verdict {
	matched := make([]int, s.Frames.Len()+1) // by frame: 1 + the first rule that matches
	for i := 1; i <= s.Frames.Len(); i++ {
		f := s.Frames.Get(snapshot.FrameID(i))
		text := fmt.Sprintf("%s:%d %s", s.Strings.Get(f.File), f.Line, s.Strings.Get(f.Name))
		matched[i] = 1 + slices.IndexFunc(rules, func(r Rule) bool { return r.matches(text) })
	}
	out := make([]verdict, s.Stacks.Len()+1)
	for i := range out {
		first := 0
		for _, id := range s.Stacks.Get(snapshot.StackID(i)) {
			if m := matched[id]; m > 0 && (first == 0 || m < first) {
				first = m
			}
		}
		if first > 0 {
			out[i] = verdict{rules[first-1].Category, High}
		}
	}
	return out
}
