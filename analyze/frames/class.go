// Package frames says what code a frame is: whose, and of which part of torch.
//
// Frames have a file, a function's name and a line, but no module and no class
// (snapshot/SPEC.md 2.9), so that all of it goes by the texts of paths and names: one table of
// torch's files, and a few names of other libraries. What a Part is for, each who asks decides;
// the facts are here alone.
//
// Classes are worked out at the first question and kept with the snapshot, so that stacks may be walked often. Of is
// safe for concurrent use.
package frames

import (
	"regexp"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// Origin is where the code of a frame comes from, in rising order of interest.
type Origin uint8

// The origins of code. The numbers are part of the report's page.
const (
	Plumbing Origin = iota // interpreter, dispatcher, module call wrappers
	Core                   // C++ that every operator and every backward pass runs through
	Native                 // other C++
	Library                // torch and the standard library
	Other                  // another installed package
	User
)

// Class is what is known of a frame: its Origin, its Part, and facts that are true or not.
type Class uint32

const (
	partShift = 3
	partBits  = 5
)

// The facts, above the bits of Origin and Part.
const (
	known Class = 1 << (partShift + partBits + iota) // tells a class from none yet

	Python // a frame of Python, not of C++

	// C++ of cuBLAS, cuBLASLt, cuDNN, or of what takes their place, that gets a workspace; of the functions that allocate
	// nothing else, all (aten/src/ATen/cuda/CUDABlas.cpp, native/cudnn/Conv_v8.cpp).
	Workspace
	Convolves  // a convolution, or the node of a backward pass that goes back through one
	Multiplies // torch's layer that is a matrix product
	Reweighs   // makes weights of parameters whenever they are used (torch.nn.utils.parametrize, spectral_norm, weight_norm)

	// Names of functions outside of torch and of Python's library.
	Constructor
	KVCache     // key-value caches of inference servers and of transformers
	LoadsModel  // gets weights from a file
	Initializes // makes something ready: a loop in it, as in the two before, goes over parts
	Upcasts     // computes in 32 bits whatever it is given, and lets go of its copy as it returns: losses of transformers
	UpcastsSoft // has a softmax in 32 bits, whatever it is given: attention of most of the models of transformers

	// Of Library alone: deepcopy and pickle, which loop over parts, and what starts threads,
	// decorates, or is made by a decorator, which only calls on.
	Copies
	CallsOn
	// WithoutGrad is the decorator that no_grad and inference_mode are (torch/utils/_contextlib.py since 2.0,
	// torch/autograd/grad_mode.py before). Up to 2.14 its function is decorate_context, that of enable_grad too, which is
	// hardly used so; 2.15 calls it as the context. As context managers they leave no frame.
	WithoutGrad

	// What places memory on one device of several.
	Gathers    // torch.nn.DataParallel: brings the outputs of all devices to one
	DefaultGPU // Module.cuda: moves a module to the current device, unless told which
	Dispatches // accelerate: spreads a model over devices by a device_map

	// What Walk asks for.
	// CalledBack is what the autograd engine calls on its own thread: autograd.Function's apply, which forward code calls, too, and
	// what save_on_cpu brings tensors back with.
	CalledBack
	Compiles // torch.compile, which calls what it was given
	Forwards // named as a module's own code
	Called   // a module's own code, where the calls of modules were left out
	Steps    // named as an optimizer's own code
	Closes   // named as what an optimizer calls to get a loss
)

// What torch asks of the allocator for the workspace that each thread and stream keeps from its
// first matrix product on, in bytes: :4096:2:16:8 by default, and another size on Hopper
// (aten/src/ATen/cuda/CublasHandlePool.cpp). Without C++ frames it is known by that alone.
const (
	WorkspaceSize       = 2*4096<<10 + 8*16<<10
	HopperWorkspaceSize = 32 << 20
)

// IsWorkspaceSize reports whether torch asks for that many bytes for a workspace of matrix products.
func IsWorkspaceSize(n int64) bool {
	return n == WorkspaceSize || n == HopperWorkspaceSize || n == LtWorkspaceSize
}

// LtWorkspaceSize is what torch asks for by default for each product that cuBLASLt makes, in bytes, and gives back behind it
// (aten/src/ATen/cuda/CUDABlas.cpp).
const LtWorkspaceSize = 1 << 20

// Origin says where the code comes from, as far as the path tells.
func (c Class) Origin() Origin { return Origin(c & (1<<partShift - 1)) }

// Part is the part of torch, or of a library that takes its place.
func (c Class) Part() Part { return Part(c >> partShift & (1<<partBits - 1)) }

// Has reports whether one of some facts is true.
func (c Class) Has(facts Class) bool { return c&facts != 0 }

// IsLibrary reports whether a frame is inside torch, the standard library, or native code.
func (c Class) IsLibrary() bool { return c.Origin() <= Library }

// IsModuleCall reports whether a frame is the one in which every call of an nn.Module runs: the
// inner one of two wrappers since torch 2.0 (torch/nn/modules/module.py).
func (c Class) IsModuleCall() bool { return c.Part() == ModuleCall }

// Of is the class of a frame of a snapshot.
func Of(s *snapshot.Snapshot, id snapshot.FrameID) Class {
	slot := &s.Frames.Notes()[id]
	if slot.Load() == 0 {
		classify(s)
	}
	return Class(slot.Load())
}

// Recomputes reports whether a program makes activations anew in its backward passes (torch.utils.checkpoint).
func Recomputes(s *snapshot.Snapshot) bool {
	for id := 1; id <= s.Frames.Len(); id++ {
		if Of(s, snapshot.FrameID(id)).Part() == Recompute {
			return true
		}
	}
	return false
}

// Accelerates reports whether accelerate runs the backward passes of a program.
func Accelerates(s *snapshot.Snapshot) bool {
	for id := 1; id <= s.Frames.Len(); id++ {
		f := s.Frames.Get(snapshot.FrameID(id))
		if s.Strings.Get(f.Name) == "backward" && cut(s.Strings.Get(f.File)).installed == "accelerate/accelerator.py" {
			return true
		}
	}
	return false
}

// Classify is Of for a frame by its texts, without a look at the program that it is in.
func Classify(file, name string) Class {
	p := cut(file)
	part := partOf(p, name)
	c := known | Class(part)<<partShift
	set := func(facts Class, is bool) {
		if is {
			c |= facts
		}
	}
	set(Python, isPython(file))
	c |= Class(originOf(p, name, part, c.Has(Python)))
	set(Workspace, !c.Has(Python) && (strings.Contains(name, "orkspace") && blas.MatchString(name+" "+p.file) ||
		containsAny(name, "at::cuda::blas::gemm_and_bias", "at::cuda::blas::scaled_gemm", "run_conv_plan")))
	set(Convolves, p.torch == "nn/modules/conv.py" || strings.Contains(name, "onvolution"))
	set(Multiplies, isLinear(p.torch, name))
	set(Reweighs, slices.Contains(reweighs, p.torch))
	set(CalledBack, p.torch == "autograd/function.py" && name == "apply" ||
		p.torch == "autograd/graph.py" && name == "unpack_from_cpu")
	set(Compiles, strings.HasPrefix(p.torch, "_dynamo/"))
	set(Forwards, name == "forward")
	set(Steps, name == "step")
	set(Gathers, strings.HasPrefix(p.torch, "nn/parallel/") && strings.HasPrefix(name, "gather"))
	set(DefaultGPU, p.torch == "nn/modules/module.py" && name == "cuda")
	set(Dispatches, containsAny(p.installed, "accelerate/hooks.py", "accelerate/big_modeling.py",
		"accelerate/utils/modeling.py"))
	set(Closes, name == "<lambda>" || strings.Contains(name, "closure"))
	if c.IsLibrary() {
		switch Base(p.file) {
		case "copy.py", "pickle.py":
			set(Copies, true)
		case "threading.py", "thread.py", "runpy.py", "contextlib.py", "functools.py", "base_events.py", "events.py",
			"runners.py", "process.py", "popen_fork.py":
			set(CallsOn, true)
		}
		set(CallsOn, strings.HasPrefix(p.file, "<"))
		set(WithoutGrad, (p.torch == "utils/_contextlib.py" || p.torch == "autograd/grad_mode.py") &&
			(name == "decorate_context" || name == "no_grad" || name == "inference_mode"))
		return c
	}
	set(Constructor, name == "__init__" || name == "__post_init__")
	set(KVCache, strings.Contains(name, "kv_cache") && containsAny(name, "alloc", "init", "create") ||
		strings.HasSuffix(p.file, "/cache_engine.py") || caches.MatchString(p.file) && name != "reorder_cache")
	set(LoadsModel, containsAny(name, "load_state_dict", "load_weights", "load_pretrained", "from_pretrained",
		"set_module_tensor_to_device") || p.installed == "transformers/core_model_loading.py")
	set(Upcasts, p.installed == "transformers/loss/loss_utils.py" &&
		(name == "ForCausalLMLoss" || name == "ForMaskedLMLoss" || name == "ForTokenClassification"))
	set(UpcastsSoft, upcastsSoft(p.installed, name))
	set(Initializes, (strings.Contains(name, "_init_") || strings.HasPrefix(name, "init_")) &&
		!containsAny(name, "process", "worker")) // those begin a process
	return c
}

// reweighs are torch's files of which all that they allocate is of the shape of parameters.
var reweighs = []string{"nn/utils/parametrize.py", "nn/utils/parametrizations.py", "nn/utils/spectral_norm.py",
	"nn/utils/weight_norm.py", "nn/utils/prune.py"}

// blas finds the libraries of matrix products and convolutions in symbols and files.
var blas = regexp.MustCompile(`(?i)cublas|hipblas|cudablas|cudnn|miopen|/Conv_v[78]\.cpp`)

// caches finds transformers' key-value caches (transformers/cache_utils.py), and copies of that file.
var caches = regexp.MustCompile(`/cache_utils\w*\.py$`)

// IsCompiled recognizes, by a frame's file or its text, code that torch.compile writes, a line for each operation:
// inductor's (torch/_inductor/codecache.py), and graphs of torch.fx (torch/fx/graph_module.py, whose files are of the
// second name in 2.15 where profiler metadata is on: snapshot/SPEC.md 2.9).
func IsCompiled(frame string) bool {
	return containsAny(frame, "/torchinductor_", "<eval_with_key>", "fx_generated__")
}

// isGenerated recognizes that and the methods that dataclasses, attrs and namedtuples make: their file is no file.
func isGenerated(file, name string) bool {
	return IsCompiled(file) || strings.HasPrefix(file, "<attrs generated") ||
		file == "<string>" && strings.HasPrefix(name, "__")
}

// isLauncher recognizes the scripts that pip makes of a package's entry points (and of torchrun's).
func isLauncher(file, name string) bool {
	return name == "<module>" && !strings.HasSuffix(file, ".py") && containsAny(file, "/bin/", "/Scripts/")
}

func originOf(p path, name string, part Part, python bool) Origin {
	switch {
	case part == ModuleCall, part == ModuleWrapper, isPlumbing(p.file, name):
		return Plumbing
	case !python && isCore(CppName(name)):
		return Core
	case !python:
		return Native
	case p.torch != "", strings.HasPrefix(p.file, "<frozen"), p.file == "none", isGenerated(p.file, name):
		return Library
	case p.installed != "", isLauncher(p.file, name):
		return Other
	case standard.MatchString(p.file):
		return Library
	}
	return User
}

// isPlumbing is the filter that torch's own viewer uses (_memory_viz.py _frame_filter), and our recorder, which runs
// programs and functions.
func isPlumbing(file, name string) bool {
	return name == "_start" || Base(file) == "snapana_recorder.py" ||
		containsAny(name, "unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp",
			"__libc_start_main", "PyEval_", "PyObject_", "PyFunction_") ||
		containsAny(file, "core/boxing", "/Register", "/Redispatch", "pythonrun.c", "Modules/main.c",
			"Objects/call.c", "Objects/methodobject.c", "pycore_ceval.h", "ceval.c", "cpython/abstract.h")
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

// upcastsSoft reports whether a function of transformers' models, by its file, gives its softmax 32 bits.
func upcastsSoft(file, name string) bool {
	m := model(file)
	if name == "forward" {
		return in(softInForward, m)
	}
	return m != "" && name == "eager_attention_forward" && !in(softAsGiven, m)
}

// model is the folder of a model of transformers that a file is in, "" for others.
func model(file string) string {
	rest, ok := strings.CutPrefix(file, "transformers/models/")
	if !ok {
		return ""
	}
	of, _, _ := strings.Cut(rest, "/")
	return of
}

// WeighsWide reports whether norms by root mean squares of a model of transformers, by its file from that folder on, weigh in 32 bits what
// they go back to 16 with, as Gemma's and OLMo 2's do.
func WeighsWide(file string) bool { return in(weighsWide, model(file)) }

// ScalesGiven reports whether such norms scale what they are given, not the copy of 32 bits that they square, as T5's do.
func ScalesGiven(file string) bool { return in(scalesGiven, model(file)) }

// ReplacesAtSum reports whether blocks of such a model have what a norm gives in the variable that the sum behind the next layer
// replaces, as in `hidden_states = attn_output + residual` (GPT2Block). Others replace it by what that layer gives.
func ReplacesAtSum(file string) bool { return in(replacesAtSum, model(file)) }

const (
	// weighsWide, scalesGiven and replacesAtSum are models of transformers by how their norms compute, and where what these give goes
	// (transformers 5).
	weighsWide = " afmoe cohere cohere2 embedding_gemma2 flex_olmo gemma gemma2 gemma3 gemma3n gemma4 gpt_oss helium moshi nemotron_h " +
		"olmo2 olmo3 olmo_hybrid qwen3_5 qwen3_5_moe qwen3_next recurrent_gemma t5gemma t5gemma2 vaultgemma "
	scalesGiven   = " cpmant idefics kosmos2_5 longt5 mt5 pix2struct pop2piano switch_transformers t5 udop umt5 "
	replacesAtSum = " decision_transformer gpt2 gpt_bigcode gpt_neo "
	// softInForward are models of transformers whose attention computes its softmax itself, in 32 bits (transformers 5).
	softInForward = " bloom flaubert layoutlmv2 longformer mpt sam sam_hq xlm "
	// softAsGiven are models whose eager attention leaves its softmax the type that it is given.
	softAsGiven = " albert audioflamingo3 bart bert bert_generation bigbird_pegasus biogpt blenderbot blenderbot_small " +
		"blip_2 bridgetower camembert codegen conditional_detr ctrl d_fine data2vec decision_transformer " +
		"deepseek_v4 deformable_detr deimv2 detr dinov2 dinov2_with_registers dinov3_vit distilbert dpt " +
		"electra eomt_dinov3 ernie esm esmc evolla flint florence2 fun_asr_nano gpt2 gpt_oss gptj gte hubert " +
		"hy_v4 hy_v4_vl informer instructblip instructblipvideo internvl jina_embeddings_v3 kosmos2 " +
		"layoutlmv3 llama4 longt5 m2m_100 marian maskformer mbart mimo_v2_flash mobilebert " +
		"moss_transcribe_diarize mt5 musicgen musicgen_melody nllb_moe nomic_bert omniasr owlv2 owlvit " +
		"patchtsmixer patchtst pegasus pegasus_x pix2struct plbart pop2piano pp_doclayout_v2 pp_doclayout_v3 " +
		"pp_doclayout_v4 pp_formulanet pp_ocrv5_mobile_rec pp_ocrv5_server_rec pp_ocrv6_small_rec qianfan_ocr " +
		"qwen2_audio radio rf_detr roberta roberta_prelayernorm roc_bert rt_detr rt_detr_v2 sam3 seamless_m4t " +
		"seamless_m4t_v2 sew speech_to_text switch_transformers t5 time_series_transformer tipsv2 udop umt5 " +
		"unispeech unispeech_sat videomae vitpose_backbone voxtral wav2vec2 wav2vec2_bert wav2vec2_conformer " +
		"whisper xlm_roberta xlm_roberta_xl xmod yolos "
)

// isLinear reports whether a function, by its file below torch's folder, is that of a layer that is a matrix product.
func isLinear(file, name string) bool { return file == "nn/modules/linear.py" && name == "forward" }
