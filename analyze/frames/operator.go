package frames

import (
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// Operator is what C++ tells, where that was recorded, of what allocates: an operator of ATen, or the node of a backward pass. The zero
// value is neither. Names are without what tells overloads apart: "softmax", "pow".
type Operator struct {
	Name string // of the operator that the program calls
	Kind Kind
	// Ruled is the outermost operator whose types torch.autocast settles, empty for none, and Precision what it settles.
	Ruled     string
	Precision Precision
	Copies    bool   // it makes a copy of what it is given, within another
	Node      string // of a backward pass: "MulBackward0"
}

// Kind is what an operator does with the types of what it is given, where torch.autocast settles none.
type Kind uint8

// The kinds of operators.
const (
	Follows Kind = iota // has the type of what it is given
	Makes               // makes something of nothing, or of a table that has 32 bits
	Counts              // makes places, numbers of things, or what is true or not
	Pairs               // takes two, and has the larger type
	Joins               // puts together what it is given
	Picks               // picks some of what it is given, and tells which behind that
	LooksUp             // picks what it is told to
	Alike               // makes something of nothing that is like what it is given
)

// kinds are operators by what they do.
var kinds = map[Kind]string{
	Makes: " zeros ones empty full rand randn eye linspace to _to_copy embedding embedding_bag ",
	Counts: " arange randint randperm one_hot lt gt le ge eq ne logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not " +
		"__and__ __or__ isnan isinf argmax argmin argsort searchsorted bucketize multinomial ",
	Pairs: " add sub rsub mul div maximum minimum where lerp addcmul addcdiv atan2 fmod remainder grid_sampler index_add " +
		"scatter_add bilinear cross dot tensordot vdot ",
	Joins:   " cat stack concat concatenate hstack vstack ",
	Picks:   " max min topk sort median kthvalue cummax cummin adaptive_max_pool2d max_pool1d max_pool2d max_pool3d ",
	Alike:   " empty_like full_like ones_like rand_like randn_like zeros_like ",
	LooksUp: " index index_select gather take_along_dim select ",
}

// rules are the operators whose types torch.autocast settles (aten/src/ATen/autocast_mode.h, as torch 2.15 registers them for CUDA).
var rules = map[Precision]string{
	Weighs: " linear conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution " +
		"cudnn_convolution cudnn_convolution_transpose ",
	Half: " addbmm addmm addmv addr baddbmm bmm chain_matmul linalg_multi_dot linalg_vecdot matmul mm mv prelu " +
		"scaled_dot_product_attention _scaled_dot_product_flash_attention _cudnn_rnn _thnn_fused_gru_cell _thnn_fused_lstm_cell " +
		"gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell ",
	Contracts: " einsum ",
	Full: " acos asin binary_cross_entropy binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity cumprod " +
		"cumsum dist erfinv exp expm1 frobenius_norm group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm " +
		"linalg_matrix_norm linalg_vector_norm log log10 log1p log2 log_softmax logsumexp margin_ranking_loss mse_loss " +
		"multi_margin_loss multilabel_margin_loss native_layer_norm nll_loss nll_loss2d norm nuclear_norm pdist poisson_nll_loss pow " +
		"prod reciprocal renorm rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softplus sum tan triplet_margin_loss " +
		"upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d " +
		"upsample_trilinear3d _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d " +
		"_upsample_nearest_exact3d ",
}

// nodes are those of backward passes whose types the rules settle: each gives on the type that its operator is given.
var nodes = map[Precision]string{
	Half: " Mm Addmm Addbmm Baddbmm Bmm Addmv Mv Addr Convolution ConvTbc CudnnConvolution CudnnConvolutionTranspose SlowConv3D Linear " +
		"PreluKernel ScaledDotProductFlashAttention ScaledDotProductEfficientAttention ScaledDotProductCudnnAttention " +
		"ThnnFusedLstmCell ThnnFusedGruCell CudnnRnn ",
	Full: " Acos Asin BinaryCrossEntropy BinaryCrossEntropyWithLogits Cdist Cosh Cumprod Cumsum Dist Erfinv Exp Expm1 EuclideanDist " +
		"NativeGroupNorm NativeLayerNorm FusedRmsNorm HuberLoss LinalgVectorNorm Log Log10 Log1P Log2 LogSoftmax Logsumexp " +
		"MseLoss MultiMarginLoss MultilabelMarginLoss NllLoss NllLoss2D Norm Pdist Pow Prod Reciprocal Renorm Rsqrt Sinh " +
		"SmoothL1Loss SoftMarginLoss Softmax Softplus Tan UpsampleBicubic2D UpsampleBilinear2D UpsampleLinear1D UpsampleNearest1D " +
		"UpsampleNearest2D UpsampleNearest3D UpsampleTrilinear3D UpsampleBicubic2DAa UpsampleBilinear2DAa UpsampleNearestExact1D " +
		"UpsampleNearestExact2D UpsampleNearestExact3D ",
}

// Passing is what a node of a backward pass gives on with nothing that was saved: the gradient that it is given, of that type.
type Passing uint8

// The ways of passing on.
const (
	Otherwise Passing = iota // with what was saved
	SameSize
	OtherSize
)

var passings = map[Passing]string{
	SameSize: " Add Clone NativeDropout Neg Permute Roll Flip Sub T Transpose UnsafeView View ",
	OtherSize: " Cat ConstantPadNd Expand Gather Index IndexSelect Mean ReflectionPad1D ReflectionPad2D Repeat Select Slice Split " +
		"SplitWithSizes Stack Sum Unbind Unfold ",
}

const (
	// widens are operators that have 32 bits under torch.autocast without a copy of what they are given
	// (AT_FORALL_FP32_SET_OPT_DTYPE): softmaxes make that themselves.
	widens = " sum prod cumsum cumprod linalg_vector_norm linalg_matrix_norm norm "
	// savesResult are operators that save their result for a backward pass, and not what they are given.
	savesResult = " softmax log_softmax exp expm1 reciprocal rsqrt sqrt sigmoid tan tanh relu "
	// elementwise are operators whose types the rules settle that make an element of each that they are given.
	elementwise = " acos asin cosh erfinv exp expm1 log log10 log1p log2 pow reciprocal rsqrt sinh softplus tan "
	// promoting are operators that run as a whole in the larger type of what they are given (AT_FORALL_PROMOTE).
	promoting = " addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put scatter_add tensordot vdot "
	// copying are operators that only copy what they are given.
	copying = " clone contiguous "
	// overloads end the names of operators that have several, beside those in capitals.
	overloads = "_int _vec _dim _input _self _deprecated _dtype_layout _dtype _device _other _memory_format _start_step " +
		"_start _generator _low _padding_idx"
)

// in reports whether a list has a name.
func in(list, name string) bool { return name != "" && strings.Contains(list, " "+name+" ") }

// of is the key whose list has a name, the zero value for none.
func of[K comparable](lists map[K]string, name string) (key K) {
	for k, list := range lists {
		if in(list, name) {
			return k
		}
	}
	return key
}

// Widens reports whether torch.autocast has the operator give 32 bits, and no copy of what it is given is made for that.
func (o Operator) Widens() bool { return in(widens, o.Ruled) }

// IsCopy reports whether the operator only copies what it is given.
func (o Operator) IsCopy() bool { return in(copying, o.Name) }

// SavesResult reports whether the operator saves its result for a backward pass, and not what it is given.
func (o Operator) SavesResult() bool { return in(savesResult, o.Name) }

// IsElementwise reports whether torch.autocast settles the types of the operator, and that makes an element of each that it is given.
func (o Operator) IsElementwise() bool { return in(elementwise, o.Name) }

// GivesOn is what torch.autocast makes of the gradients that the node gives on, AsGiven where it settles nothing.
func (o Operator) GivesOn() Precision { return of(nodes, o.forward()) }

// Passes is how the node passes on the gradient that it is given.
func (o Operator) Passes() Passing { return of(passings, o.forward()) }

// forward is the name of what the node goes back through.
func (o Operator) forward() string {
	name, _, _ := strings.Cut(o.Node, "Backward")
	return name
}

// IsNodeOf reports whether the node goes back through an operator of a name.
func (o Operator) IsNodeOf(name string) bool {
	return o.Node != "" && strings.EqualFold(o.forward(), strings.ReplaceAll(name, "_", ""))
}

// SumsUp reports whether the engine sums a gradient up between nodes, over what an operator took a smaller part for
// (torch/csrc/autograd/engine.cpp: validate_outputs).
func (o Operator) SumsUp() bool { return o.Node == "" && o.Name == "sum" }

// withoutOverload is the name of an operator without what tells overloads apart.
func withoutOverload(name string) string {
	for i := 1; i+1 < len(name); i++ {
		if c := name[i+1]; name[i] == '_' && 'A' <= c && c <= 'Z' {
			name = name[:i]
		}
	}
	for o := range strings.FieldsSeq(overloads) {
		name = strings.TrimSuffix(name, o)
	}
	return name
}

// Operators gives a function that tells the operators of stacks of a snapshot.
func Operators(s *snapshot.Snapshot) func(stack []snapshot.FrameID) Operator {
	type called struct {
		name, node string
		kind       Kind
		precision  Precision
		promotes   bool
	}
	all := make([]called, s.Frames.Len()+1)
	for id := range all {
		if Of(s, snapshot.FrameID(id)).Has(Python) {
			continue
		}
		node, op, entry := runs(s.Strings.Get(s.Frames.Get(snapshot.FrameID(id)).Name))
		all[id].node = node
		if entry == "call" {
			name := withoutOverload(op)
			all[id] = called{name: name, kind: of(kinds, name), precision: of(rules, name), promotes: in(promoting, name)}
		}
	}
	return func(stack []snapshot.FrameID) (out Operator) {
		for _, id := range stack {
			if Of(s, id).Has(Python) {
				break
			}
			switch c := &all[id]; {
			case c.node != "":
				out.Node = c.node
			case c.name != "":
				out.Copies = out.Copies || in(copying, out.Name)
				out.Name, out.Kind = c.name, c.kind
				switch {
				case c.promotes:
					out.Precision, out.Ruled = AsGiven, ""
				case c.precision != AsGiven:
					out.Precision, out.Ruled = c.precision, c.name
				}
			}
		}
		return out
	}
}
