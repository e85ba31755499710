package frames

import (
	"regexp"
	"strings"
)

var (
	// autogradNode is the call of a backward function (torch/csrc/autograd/function.h).
	autogradNode = regexp.MustCompile(`^torch::autograd::(?:generated::)?(\w+)::apply$`)
	// operator is the entry to an operator of ATen from outside (aten/src/ATen/Operators.h).
	operator = regexp.MustCompile(`^at::_ops::(\w+)::(call|redispatch)$`)
)

// coreNames begin the symbols of C++ that every operator and every backward pass runs through.
var coreNames = [...]string{"at::", "c10::", "std::", "torch::autograd::", "start_thread",
	"execute_native_thread_routine", "clone", "__clone"}

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

// Operation names what the call of a C++ symbol runs: a backward function, "AddmmBackward0
// (backward)", or an operator, "aten::mm". It is empty for any other.
func Operation(symbol string) (name string, isBackward bool) {
	switch node, op, _ := runs(symbol); {
	case node != "":
		return node + " (backward)", true
	case op != "":
		return "aten::" + op, false
	}
	return "", false
}

// runs tells what the call of a C++ symbol runs: a backward function, or an operator by one of its entries, "call" or "redispatch".
func runs(symbol string) (node, op, entry string) {
	symbol = CppName(symbol)
	if m := autogradNode.FindStringSubmatch(symbol); m != nil {
		return m[1], "", ""
	}
	if m := operator.FindStringSubmatch(symbol); m != nil {
		return "", m[1], m[2]
	}
	return "", "", ""
}

// CppName shortens a C++ symbol to its qualified name, without its type, its arguments and
// those of templates.
func CppName(name string) string {
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
