package frames

import (
	"regexp"
	"strings"
)

// Precision is which type torch's own code gives its results under torch.autocast (aten/src/ATen/autocast_mode.h).
type Precision uint8

// The types of results.
const (
	AsGiven Precision = iota // that of what it is given, the larger one
	// Full is 32 bits: norms, softmaxes, powers, distributions, what changes the size of an image, an embedding by a weight that has
	// them.
	Full
	Weighs    // 16 bits: a layer that is one product by a parameter
	Half      // 16 bits: what has products inside
	Contracts // 16 bits: a product of what the program gives it
)

// turns finds functions of programs that turn pairs of elements by their places (rotary embeddings): sines and cosines have 32 bits.
var turns = regexp.MustCompile(`(?i)rotary|(^|_)rope(_|$)`)

// IsPower reports whether a function of Tensor's makes powers, by its name: of its operators the only one that is wrapped without a
// function of its own (torch/_tensor.py: __pow__).
func IsPower(name string) bool { return name == "wrapped" }

// Interpolates reports whether a function of torch's interpolates what it is given, by its name (torch/nn/functional.py).
func Interpolates(name string) bool { return containsAny(name, "interpolate", "upsample") }

// Rearranges reports whether a file is of einops, whose functions move elements, or take means of them (einops/_backends.py).
func Rearranges(file string) bool { return strings.HasPrefix(file, "einops/") }

// TakesLogarithms reports whether a loss of torch's takes logarithms of probabilities, by its name (torch/nn/functional.py).
func TakesLogarithms(name string) bool {
	return name == "nll_loss" || name == "ctc_loss" || name == "kl_div"
}

// Turns reports whether a function turns pairs of elements by their places, by its name.
func Turns(name string) bool { return turns.MatchString(name) }

// recurrent is torch's file of recurrent layers.
const recurrent = "nn/modules/rnn.py"

// IsRecurrent reports whether a file is that of torch's recurrent layers.
func IsRecurrent(file string) bool { return cut(file).torch == recurrent }

// PrecisionOf is that of a function of a file.
func PrecisionOf(file, name string) Precision {
	switch file = cut(file).torch; {
	case file == "" && Turns(name):
		return Full
	case isLinear(file, name), file == "nn/modules/conv.py" && strings.HasSuffix(name, "forward"):
		return Weighs
	case file == recurrent:
		return Half
	case file == "functional.py" && name == "einsum":
		return Contracts
	case (file == "functional.py" || file == "_tensor.py") && name == "norm":
		return Full
	case strings.HasPrefix(file, "distributions/"), file == "_tensor.py" && IsPower(name):
		return Full
	case file != "nn/functional.py":
		return AsGiven
	case containsAny(name, "multi_head_attention", "in_projection"):
		return Half
	case containsAny(name, "softm", "embedding", "normalize"), Interpolates(name),
		strings.HasSuffix(name, "_norm") && !containsAny(name, "batch", "instance", "response"):
		return Full
	}
	return AsGiven
}
