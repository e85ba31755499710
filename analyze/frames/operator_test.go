package frames_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// TestOperators holds what stacks with C++ tell of operators. Stacks are innermost first, "file name" each.
func TestOperators(t *testing.T) {
	const python = "|" + torch + "nn/functional.py softmax|/w/model.py forward"
	op := func(name string) string { return "libtorch_cpu.so at::_ops::" + name + "::call(at::Tensor const&)" }
	redispatch := "|libtorch_cpu.so at::_ops::softmax_int::redispatch(c10::DispatchKeySet, at::Tensor const&)"
	node := func(name string) string {
		return "|libtorch_cpu.so torch::autograd::generated::" + name + "::apply(std::vector<at::Tensor>&&)" +
			"|libtorch_cpu.so torch::autograd::Node::operator()(std::vector<at::Tensor>&&)"
	}
	for _, tc := range []struct {
		what, stack string
		want        frames.Operator
	}{
		{"none", strings.TrimPrefix(python, "|"), frames.Operator{}},
		{"symbols that are missing", "libtorch_cpu.so ??" + python, frames.Operator{}},
		{"a softmax", op("_softmax") + redispatch + "|" + op("softmax_int") + python,
			frames.Operator{Name: "softmax", Ruled: "softmax", Precision: frames.Full}},
		{"a logarithm is not another", op("logical_and") + python, frames.Operator{Name: "logical_and", Kind: frames.Counts}},
		{"an exponential is not an expansion", op("expand") + python, frames.Operator{Name: "expand"}},
		{"a layer", op("addmm") + "|" + op("linear") + python,
			frames.Operator{Name: "linear", Ruled: "linear", Precision: frames.Weighs}},
		{"what a product copies", op("clone") + "|" + op("reshape") + "|" + op("matmul") + python,
			frames.Operator{Name: "matmul", Ruled: "matmul", Precision: frames.Half, Copies: true}},
		{"a copy that the program asks for", op("clone") + python, frames.Operator{Name: "clone"}},
		{"a norm in a function of several", op("native_layer_norm") + "|" + op("layer_norm") + "|" + op("multi_norm") + python,
			frames.Operator{Name: "multi_norm", Ruled: "layer_norm", Precision: frames.Full}},
		{"a cross entropy says its type", op("_log_softmax") + "|" + op("cross_entropy_loss") + python,
			frames.Operator{Name: "cross_entropy_loss"}},
		{"two", op("mul_Tensor") + python, frames.Operator{Name: "mul", Kind: frames.Pairs}},
		{"a conversion", op("_to_copy") + "|" + op("to_dtype_layout") + python, frames.Operator{Name: "to", Kind: frames.Makes}},
		{"what Python between calls is another's", op("mul_Tensor") + python + "|" + op("softmax_int") + "|/w/train.py main",
			frames.Operator{Name: "mul", Kind: frames.Pairs}},
		{"a node", op("mm") + node("AddmmBackward0"),
			frames.Operator{Name: "mm", Ruled: "mm", Precision: frames.Half, Node: "AddmmBackward0"}},
	} {
		s := &snapshot.Snapshot{}
		var stack []snapshot.FrameID
		for f := range strings.SplitSeq(tc.stack, "|") {
			file, name, _ := strings.Cut(f, " ")
			stack = append(stack, s.Frames.Intern(snapshot.Frame{
				File: s.Strings.Intern([]byte(file)), Name: s.Strings.Intern([]byte(name)), Line: 3}))
		}
		if got := frames.Operators(s)(stack); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.what, got, tc.want)
		}
	}
}

// TestNodes holds what torch.autocast makes of what nodes give on.
func TestNodes(t *testing.T) {
	for node, want := range map[string]frames.Precision{
		"AddmmBackward0": frames.Half, "ConvolutionBackward0": frames.Half, "NativeLayerNormBackward0": frames.Full,
		"ExpBackward0": frames.Full, "ExpandBackward0": frames.AsGiven, "MulBackward0": frames.AsGiven, "": frames.AsGiven,
	} {
		if got := (frames.Operator{Node: node}).GivesOn(); got != want {
			t.Errorf("%s gives on %d, want %d", node, got, want)
		}
	}
	o := frames.Operator{Node: "IndexSelectBackward0"}
	if o.Passes() != frames.OtherSize || !o.IsNodeOf("index_select") || o.IsNodeOf("index") {
		t.Errorf("of %s: %d, of index_select: %v, of index: %v", o.Node, o.Passes(), o.IsNodeOf("index_select"), o.IsNodeOf("index"))
	}
}
