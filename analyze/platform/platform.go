// Package platform knows what the kinds of devices that PyTorch runs on call their things: the variable with the
// allocator's settings, the program that lists who uses a device. All advice takes these names from here.
package platform

import (
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

	words []string // pairs: a word of CUDA, and what stands for it
}

// platforms are by the names of backends (snapshot/oomlog.Message.Backend). What is known of each is in
// snapshot/SPEC.md 9.1.
var platforms = map[string]*Platform{
	"cuda": {Name: "CUDA", Variable: "PYTORCH_CUDA_ALLOC_CONF", Monitor: "nvidia-smi"},
	"hip": {
		Name: "ROCm", Variable: "PYTORCH_HIP_ALLOC_CONF", Monitor: "rocm-smi",
		Doubt: "The replay follows the rules of CUDA builds. ROCm has expandable segments from ROCm 7 on.",
		words: []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "cudaMalloc", "hipMalloc",
			"cudaFree", "hipFree", "CUDA itself", "HIP itself", "CUDA graph", "HIP graph", "the CUDA context",
			"the HIP context", "cuBLAS, cuDNN, NCCL", "rocBLAS, MIOpen, RCCL", "NCCL", "RCCL",
			"CUDA may", "HIP may"},
	},
	"xpu": {
		Name: "XPU", Variable: "PYTORCH_ALLOC_CONF", Monitor: "xpu-smi", Options: []string{"expandable_segments"},
		Doubt: "The replay follows the rules of CUDA: XPU rounds and sizes segments alike, but knows of the settings " +
			"only expandable_segments for sure (torch 2.10 or later; 2.9 reads PYTORCH_XPU_ALLOC_CONF).",
		words: []string{"CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "cudaMalloc", "the driver's allocation",
			"cudaFree", "the driver's release", "CUDA itself", "The driver itself", "CUDA graph", "XPU graph",
			"the CUDA context", "the driver's context", "cuBLAS, cuDNN, NCCL", "oneMKL, oneDNN, oneCCL",
			"NCCL", "oneCCL", "CUDA may", "The driver may", "torch.cuda.", "torch.xpu."},
	},
	"npu": {
		Name: "Ascend", Variable: "PYTORCH_NPU_ALLOC_CONF", Monitor: "npu-smi info",
		Options: []string{"expandable_segments", "max_split_size_mb", "garbage_collection_threshold"},
		Doubt: "The replay follows the rules of CUDA, with 32 bytes added to each request as torch_npu does; its " +
			"workspace allocator and how it aligns large expandable sizes are not known.",
		words: []string{"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "cudaMalloc", "aclrtMalloc", "cudaFree",
			"aclrtFree", "CUDA itself", "The driver itself", "CUDA graph", "NPU graph", "the CUDA context",
			"the device's context", "cuBLAS, cuDNN, NCCL", "CANN, HCCL", "NCCL", "HCCL", "CUDA may",
			"The driver may", "torch.cuda.", "torch.npu."},
	},
	"mps": {Name: "MPS", Monitor: "Activity Monitor", words: []string{"torch.cuda.", "torch.mps."}},
}

func init() {
	cuda := platforms["cuda"]
	for _, p := range platforms {
		if p != cuda {
			p.words = append(p.words, cuda.Variable, p.Variable, cuda.Monitor, p.Monitor)
		}
	}
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
	r := strings.NewReplacer(p.words...)
	for i, s := range sentences {
		sentences[i] = r.Replace(s)
	}
}

// Reads reports whether the platform is known to read a settings string.
func (p *Platform) Reads(conf string) bool {
	if p.Options == nil || conf == "" {
		return true
	}
	depth := 0
	for _, pair := range strings.FieldsFunc(conf, func(c rune) bool {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		return c == ',' && depth == 0
	}) {
		key, _, _ := strings.Cut(pair, ":")
		if !slices.Contains(p.Options, strings.TrimSpace(key)) {
			return false
		}
	}
	return true
}
