package chart

import (
	"slices"
	"strings"
)

// generated is in the files of code that torch.compile writes, a frame for each operation.
var generated = [...]string{"/torchinductor_", "<eval_with_key>", "fx_generated__"}

func isGenerated(frame string) bool {
	return slices.ContainsFunc(generated[:], func(part string) bool { return strings.Contains(frame, part) })
}
