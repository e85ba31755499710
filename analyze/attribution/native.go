package attribution

import (
	"regexp"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

var (
	// autogradNode is the call of a backward function (torch/csrc/autograd/function.h).
	autogradNode = regexp.MustCompile(`^torch::autograd::(?:generated::)?(\w+)::apply$`)
	// operator is the entry to an operator of ATen from outside (aten/src/ATen/Operators.h).
	operator = regexp.MustCompile(`^at::_ops::(\w+)::(call|redispatch)$`)
)

// coreNames begin the symbols of C++ that every operator and every backward pass runs through.
var coreNames = [...]string{"at::", "c10::", "std::", "torch::autograd::", "start_thread", "execute_native_thread_routine", "clone", "__clone"}

// isCore reports whether a symbol is of the core of torch, or of a thread's beginning, and neither a
// backward function nor the entry to an operator: those name what runs.
func isCore(name string) bool {
	for _, core := range coreNames {
		if strings.HasPrefix(name, core) {
			m := operator.FindStringSubmatch(name)
			return !autogradNode.MatchString(name) && (m == nil || m[2] != "call")
		}
	}
	return false
}

// nativeSite names a stack of nothing but C++, which threads of the backward pass have: by the
// backward function that it is in, else by the outermost operator. Symbols are those that the
// unwinder found, which without debug information may be of a neighbour. It is empty when
// neither is there.
func nativeSite(s *snapshot.Snapshot, stack snapshot.StackID) string {
	found := ""
	for _, id := range s.Stacks.Get(stack) {
		f := s.Frames.Get(id)
		name := cppName(s.Strings.Get(f.Name))
		if m := autogradNode.FindStringSubmatch(name); m != nil {
			return m[1] + " (backward)"
		}
		if m := operator.FindStringSubmatch(name); m != nil {
			found = "aten::" + m[1]
		}
	}
	return found
}

// cppName shortens a C++ symbol to its qualified name, without its type, its arguments and
// those of templates.
func cppName(name string) string {
	name = strings.ReplaceAll(name, "(anonymous namespace)::", "")
	if strings.Contains(name, "operator") {
		return name
	}
	var b strings.Builder
	depth := 0
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '<':
			depth++
		case c == '>' && depth > 0:
			depth--
		case depth > 0:
		case c == '(' && b.Len() > 0:
			i = len(name)
		case c == ' ': // what came before is a type
			if rest := name[i+1:]; rest != "" && rest[0] != '(' {
				b.Reset()
			}
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == 0 {
		return name
	}
	return b.String()
}
