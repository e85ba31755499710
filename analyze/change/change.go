// Package change replays a recorded run as a changed program would have run: with activation checkpoints, without
// foreach optimizers, in smaller batches, with its state shared between ranks, and so on.
//
//  1. Parse reads what is to change.
//  2. Read finds in the trace what changes need: the backward passes and what they keep, the calls of modules, the steps of
//     optimizers, gradients.
//  3. Ask makes each change, in the order of Kinds whatever order they are asked for in, and replays the program that they
//     come to (package whatif): reserved and allocated peak before and after, what fails, and what it costs.
//
// A change is an edit of requests: recorded lives end earlier, become smaller or go, and others come in. No file
// tells when memory is read, nor what another program would ask for. So each change rests on assumptions, which it
// states; and what it cannot know (kernels that take other workspaces, for one) it leaves as recorded. Where the file
// lacks what a change needs it is refused, not guessed.
package change

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze/category"
)

// Kind is what changes in a program.
type Kind string

// The kinds of changes.
const (
	FreeLeak    Kind = "free-leak"
	Del         Kind = "del"
	Free        Kind = "free"
	NoGrad      Kind = "no-grad"
	Checkpoint  Kind = "checkpoint"
	Offload     Kind = "offload"
	Foreach     Kind = "foreach"
	InBackward  Kind = "optimizer-in-backward"
	EightBit    Kind = "adam-8bit"
	Accumulate  Kind = "accumulate"
	Zero        Kind = "zero"
	FSDP        Kind = "fsdp"
	DType       Kind = "dtype"
	activations      = "activations"
	optimizer        = "optimizer"
	ofTorch          = "torch" // as the stage of Zero: torch's ZeroRedundancyOptimizer
)

// Kinds lists them in the order in which they are made: what lives shorter, then optimizers, then types, which the first of smaller
// batches has, too, and other sizes.
func Kinds() []Kind {
	return []Kind{FreeLeak, Del, Free, NoGrad, Checkpoint, Offload, Foreach, InBackward, EightBit, DType, Accumulate, Zero, FSDP}
}

// Forms says how each kind is written.
var forms = map[Kind]string{
	FreeLeak: "free-leak or free-leak=FILE:LINE", Del: "del=FILE:LINE", Free: "free=FILE:LINE@STEP",
	NoGrad: "no-grad=FILE:LINE", Checkpoint: "checkpoint=MODULES such as blocks.*, blocks.0-5, FILE:LINE or * for all",
	Offload: "offload=optimizer or offload=activations", Foreach: "foreach=off", InBackward: "optimizer-in-backward",
	EightBit:   "adam-8bit",
	Accumulate: "accumulate=2 or more", Zero: "zero=STAGE,RANKS such as zero=1,8, or zero=torch,8 for ZeroRedundancyOptimizer",
	FSDP:  "fsdp=STAGE,RANKS such as fsdp=3,8, or fsdp=2,8 where parameters stay gathered until backward",
	DType: "dtype=bf16:WHAT of parameters, gradients, optimizer, activations, all or a category; all,loss for the loss, too",
}

// Form says how a kind is written.
func (k Kind) Form() string { return forms[k] }

// Change is a change of a program.
type Change struct {
	Text string // as it was asked for
	Kind Kind

	modules []modules           // of Checkpoint
	line    string              // of FreeLeak, Del, Free, NoGrad; "" for all
	step    int                 // of Free
	what    string              // of Offload
	n       int64               // of Accumulate the micro-batches, of Zero and FSDP the ranks
	stage   int                 // of Zero, FSDP
	dealt   bool                // of Zero: each rank has whole parameters
	of      []category.Category // of DType
	all     bool                // of DType
	losses  bool                // of DType: with the program's own losses
}

// modules are some of those that one line calls.
type modules struct {
	name     string // of a list, or a line
	from, to int    // which of them; to is -1 for all
	within   bool   // of a list that the line calls, those in it
}

// UnknownError says that there is no such kind of change, and which there are.
type UnknownError struct {
	Word  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown change %q; choose from %s", e.Word, strings.Join(e.Known, ", "))
}

// LineError says that no stack goes through a line, and which of the program's own lines allocate, most first.
type LineError struct {
	Line  string
	Known []string
}

func (e *LineError) Error() string { return fmt.Sprintf("no recorded stack goes through %s", e.Line) }

// Parse reads a change. It gives an *UnknownError for a kind that there is not.
func Parse(text string) (Change, error) {
	word, value, has := strings.Cut(text, "=")
	c := Change{Text: text, Kind: Kind(word)}
	if !slices.Contains(Kinds(), c.Kind) {
		e := &UnknownError{Word: word}
		for _, k := range Kinds() {
			e.Known = append(e.Known, string(k))
		}
		return c, e
	}
	bare := c.Kind == InBackward || c.Kind == EightBit || c.Kind == FreeLeak
	ok := has && value != "" || !has && bare
	if ok {
		ok = c.parse(value)
	}
	if !ok {
		return c, fmt.Errorf("invalid change %q; expected %s", text, c.Kind.Form())
	}
	return c, nil
}

func (c *Change) parse(value string) bool {
	switch c.Kind {
	case Checkpoint:
		return c.parseModules(value)
	case Del, NoGrad, FreeLeak:
		c.line = value
		return true
	case Free:
		line, step, ok := strings.Cut(value, "@")
		n, err := strconv.Atoi(step)
		c.line, c.step = line, n
		return ok && line != "" && err == nil && n >= 0
	case Offload:
		c.what = value
		return value == optimizer || value == activations
	case Foreach:
		return value == "off"
	case InBackward, EightBit:
		return value == ""
	case Accumulate:
		n, err := strconv.ParseInt(value, 10, 32)
		c.n = n
		return err == nil && n >= 2
	case Zero, FSDP:
		stage, ranks, ok := strings.Cut(value, ",")
		n, err := strconv.ParseInt(ranks, 10, 32)
		c.n = n
		if c.dealt = c.Kind == Zero && stage == ofTorch; c.dealt {
			stage = "1"
		}
		c.stage = slices.Index([]string{"", "1", "2", "3"}, stage)
		return ok && err == nil && n >= 2 && c.stage > 0 && (c.stage > 1 || c.Kind == Zero)
	case DType:
		dtype, of, ok := strings.Cut(value, ":")
		c.losses = of == "all,loss"
		if c.all = of == "all" || c.losses; c.all {
			return dtype == "bf16" || dtype == "fp16"
		}
		c.of = categories(of)
		return ok && len(c.of) > 0 && (dtype == "bf16" || dtype == "fp16")
	}
	return false
}

// categories are those of a word: the name of one, or what programs call them. Of activations, those that backward needs have
// a category of their own.
func categories(word string) []category.Category {
	switch word {
	case "parameters":
		return []category.Category{category.Parameter}
	case "gradients":
		return []category.Category{category.Gradient}
	case optimizer:
		return []category.Category{category.OptimizerState}
	case "activation", activations:
		return []category.Category{category.Activation, category.AutogradSaved}
	}
	if c, ok := category.Parse(word); ok && c != category.Unknown {
		return []category.Category{c}
	}
	return nil
}

// parseModules reads "blocks.*", "blocks.0-5", "blocks.0,blocks.2", "model.py:43".
func (c *Change) parseModules(value string) bool {
	for _, one := range strings.Split(value, ",") {
		m := modules{name: one, to: -1}
		i := strings.LastIndexByte(one, '.')
		if i > 0 && i+1 < len(one) && strings.Trim(one[i+1:], "0123456789-*") == "" {
			m.name, m.within = one[:i], true
			if which := one[i+1:]; which != "*" {
				first, last, isRange := strings.Cut(which, "-")
				from, err := strconv.Atoi(first)
				to := from
				if err == nil && isRange {
					to, err = strconv.Atoi(last)
				}
				if err != nil || to < from {
					return false
				}
				m.from, m.to = from, to
			}
		}
		if m.name == "" || strings.Contains(m.name, "=") {
			return false
		}
		c.modules = append(c.modules, m)
	}
	return true
}
