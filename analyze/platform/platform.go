// Package platform knows what the kinds of devices that PyTorch runs on call their things: the variable with the
// allocator's settings, the program that lists who uses a device. All advice takes these names from here.
package platform

import (
	"regexp"
	"slices"
	"strings"
)

// Platform is a kind of device.
type Platform struct {
	Name string
	// Variable is the one that the allocator's settings are read from. On CUDA it is the one that counts in all
	// releases, even where it is empty: from 2.10 on torch reads PYTORCH_ALLOC_CONF too, but only where
	// PYTORCH_CUDA_ALLOC_CONF and PYTORCH_HIP_ALLOC_CONF are not set (measured: analyze/allocator/SPEC.md 5.2).
	// "" is none.
	Variable string
	Monitor  string // the program that lists who uses a device
	// Options are the keys of the settings that it is known to read, nil for all of CUDA's.
	Options []string
	// Doubt is what a replay by CUDA's rules cannot know of its allocator, "" for nothing.
	Doubt string

	words *strings.Replacer // of CUDA's words, nil for none
	since string            // the release that records a history, "" where all do, never for none
}

// never is Platform.since where no release records a history.
const never = "never"

// history finds the call that records one, with whatever arguments.
var history = regexp.MustCompile(`torch\.cuda\.memory\._record_memory_history\(([^()]*)\)`)

// recording puts in place of that call what the platform has, with the release that it takes: behind a line of Python
// as a comment.
func (p *Platform) recording(sentence string) string {
	if p.since == "" {
		return sentence
	}
	at := history.FindStringIndex(sentence)
	switch {
	case at == nil:
		return sentence
	case p.since == never && at[0] == 0:
		return "# " + p.Name + " has no such history: use its profiler"
	case p.since == never:
		return history.ReplaceAllString(sentence, "a profiler")
	case at[0] == 0 && at[1] == len(sentence):
		return sentence + "  # " + p.since
	}
	return history.ReplaceAllString(sentence, "$0 ("+p.since+")")
}

// inCUDA are words of sentences, those that contain others first.
var inCUDA = []string{
	", or per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF",
	"torch.cuda.", "PYTORCH_CUDA_ALLOC_CONF", "nvidia-smi", "CUDA_VISIBLE_DEVICES", "cudaMalloc", "cudaFree",
	"cudaHostRegister", "throw_on_cudamalloc_oom", "CUDA itself", "CUDA graph", "the CUDA context", "a CUDA context",
	"CUDA context", "CUDA memory snapshot", "cuBLAS, cuDNN, NCCL", "NCCL", "CUDA may", "container, MIG or WSL limit",
}

// like makes the replacer of a platform: words stand for those of inCUDA, in their order.
func like(words ...string) *strings.Replacer {
	pairs := make([]string, 0, 2*len(words))
	for i, w := range words {
		pairs = append(pairs, inCUDA[i], w)
	}
	return strings.NewReplacer(pairs...)
}

// platforms are by the names of backends (snapshot/oomlog.Message.Backend). What is known of each is in
// snapshot/SPEC.md 9.1.
var platforms = map[string]*Platform{
	"cuda": {Name: "CUDA", Variable: "PYTORCH_CUDA_ALLOC_CONF", Monitor: "nvidia-smi"},
	"hip": {
		Name: "ROCm", Variable: "PYTORCH_HIP_ALLOC_CONF", Monitor: "rocm-smi",
		Doubt: "The replay follows the rules of CUDA builds. ROCm has expandable segments from ROCm 7 on.",
		words: like(", or per_process_memory_fraction in PYTORCH_HIP_ALLOC_CONF",
			"torch.cuda.", "PYTORCH_HIP_ALLOC_CONF", "rocm-smi", "HIP_VISIBLE_DEVICES", "hipMalloc", "hipFree",
			"hipHostRegister", "throw_on_cudamalloc_oom", "HIP itself",
			"HIP graph", "the HIP context", "a HIP context", "HIP context", "ROCm memory snapshot",
			"rocBLAS, MIOpen, RCCL", "RCCL", "HIP may", "container, partition or WSL limit"),
	},
	"xpu": {
		Name: "XPU", Variable: "PYTORCH_ALLOC_CONF", Monitor: "xpu-smi", Options: []string{"expandable_segments"},
		Doubt: "The replay follows the rules of CUDA: XPU rounds and sizes segments alike, but knows of the settings " +
			"only expandable_segments for sure (torch 2.10 or later; 2.9 reads PYTORCH_XPU_ALLOC_CONF).",
		since: "torch 2.11 or later",
		words: like("", "torch.xpu.", "PYTORCH_ALLOC_CONF", "xpu-smi", "ZE_AFFINITY_MASK",
			"the driver's allocation", "the driver's release",
			"the driver", "a setting", "The driver itself", "XPU graph", "the driver's context", "a driver's context",
			"the driver's context", "XPU memory snapshot", "oneMKL, oneDNN, oneCCL", "oneCCL", "The driver may",
			"container or WSL limit"),
	},
	"npu": {
		Name: "Ascend", Variable: "PYTORCH_NPU_ALLOC_CONF", Monitor: "npu-smi info",
		Options: []string{"expandable_segments", "max_split_size_mb", "garbage_collection_threshold"},
		Doubt: "The replay follows the rules of CUDA, with 32 bytes added to each request as torch_npu does; its " +
			"workspace allocator and how it aligns large expandable sizes are not known.",
		words: like("", "torch.npu.", "PYTORCH_NPU_ALLOC_CONF",
			"npu-smi info", "ASCEND_RT_VISIBLE_DEVICES", "aclrtMalloc", "aclrtFree", "the driver", "a setting",
			"The driver itself", "NPU graph", "the device's context", "a device context", "the device's context",
			"Ascend memory snapshot", "CANN, HCCL", "HCCL", "The driver may", "container limit"),
	},
	"mps": {
		Name: "MPS", Monitor: "Activity Monitor",
		since: never,
		words: like("", "torch.mps.", "the allocator's settings", "Activity Monitor", "the device",
			"the driver's allocation", "the driver's release", "the driver", "a setting", "Metal itself", "graph",
			"the driver's context", "a driver's context", "the driver's context", "MPS memory snapshot",
			"MPSGraph and Metal", "other libraries", "Metal may", "system limit"),
	},
}

// Of gives the platform of a backend: "cuda", "hip", "xpu", "npu" or "mps". Any other is taken for CUDA.
func Of(backend string) *Platform {
	if p := platforms[backend]; p != nil {
		return p
	}
	return platforms["cuda"]
}

// Says puts the platform's names in place of CUDA's in sentences, which are written for CUDA.
func (p *Platform) Says(sentences ...string) {
	for i, s := range sentences {
		sentences[i] = p.Say(s)
	}
}

// Say is a sentence that is written for CUDA, with the platform's names.
func (p *Platform) Say(sentence string) string {
	if p.words == nil {
		return sentence
	}
	out := p.words.Replace(p.recording(sentence))
	if strings.HasPrefix(out, "the ") && !strings.HasPrefix(sentence, "the ") {
		out = "T" + out[1:]
	}
	return out
}

// Reads reports whether the platform is known to read a settings string.
func (p *Platform) Reads(conf string) bool {
	if p.Options == nil || conf == "" {
		return true
	}
	depth := 0 // of brackets, in which commas part sizes
	for pair := range strings.SplitSeq(conf, ",") {
		key, _, _ := strings.Cut(pair, ":")
		if key = strings.TrimSpace(key); depth == 0 && key != "" && !slices.Contains(p.Options, key) {
			return false
		}
		depth += strings.Count(pair, "[") - strings.Count(pair, "]")
	}
	return true
}
