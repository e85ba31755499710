package platform

import "testing"

// TestSays holds that no advice for other devices names CUDA's programs and variables.
func TestSays(t *testing.T) {
	const advice = "See with nvidia-smi who uses it; set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or choose " +
		"with CUDA_VISIBLE_DEVICES. cudaMalloc failed; call torch.cuda.empty_cache()."
	for backend, want := range map[string]string{
		"cuda": advice,
		"":     advice,
		"hip": "See with rocm-smi who uses it; set PYTORCH_HIP_ALLOC_CONF=expandable_segments:True, or choose with " +
			"HIP_VISIBLE_DEVICES. hipMalloc failed; call torch.cuda.empty_cache().",
		"npu": "See with npu-smi info who uses it; set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, or choose with " +
			"ASCEND_RT_VISIBLE_DEVICES. aclrtMalloc failed; call torch.npu.empty_cache().",
		"xpu": "See with xpu-smi who uses it; set PYTORCH_ALLOC_CONF=expandable_segments:True, or choose with " +
			"ZE_AFFINITY_MASK. the driver's allocation failed; call torch.xpu.empty_cache().",
	} {
		got := []string{advice}
		Of(backend).Says(got...)
		if got[0] != want {
			t.Errorf("%s: %q, want %q", backend, got[0], want)
		}
	}
}

// TestSentences holds that a sentence still begins like one, and that nothing is said which a platform does not have.
func TestSentences(t *testing.T) {
	for _, c := range [][3]string{
		{"xpu", "cudaMalloc failed once.", "The driver's allocation failed once."},
		{"npu", "set_per_process_memory_fraction, or per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF.",
			"set_per_process_memory_fraction."},
		{"hip", "a container, MIG or WSL limit", "a container, partition or WSL limit"},
		{"xpu", "Call torch.cuda.memory._record_memory_history() first.",
			"Call torch.xpu.memory._record_memory_history() (torch 2.11 or later) first."},
		{"xpu", "Call torch.cuda.memory._record_memory_history(max_entries=100000) first.",
			"Call torch.xpu.memory._record_memory_history(max_entries=100000) (torch 2.11 or later) first."},
		{"xpu", "torch.cuda.memory._record_memory_history(max_entries=100000)",
			"torch.xpu.memory._record_memory_history(max_entries=100000)  # torch 2.11 or later"},
		{"npu", "torch.cuda.memory._record_memory_history(True)", "torch.npu.memory._record_memory_history(True)"},
		{"mps", "Call torch.cuda.memory._record_memory_history(max_entries=100000) first.", "Call a profiler first."},
		{"mps", "torch.cuda.memory._record_memory_history(max_entries=100000)",
			"# MPS has no such history: use its profiler"},
		{"mps", "See with nvidia-smi", "See with Activity Monitor"},
	} {
		if got := Of(c[0]).Say(c[1]); got != c[2] {
			t.Errorf("%s: %q, want %q", c[0], got, c[2])
		}
	}
}

func TestReads(t *testing.T) {
	for _, c := range []struct {
		backend, conf string
		want          bool
	}{
		{"cuda", "roundup_power2_divisions:[256:1,>:4]", true},
		{"xpu", "", true},
		{"xpu", "expandable_segments:True", true},
		{"xpu", "expandable_segments:True,max_split_size_mb:64", false},
		{"npu", "max_split_size_mb:64", true},
		{"npu", "roundup_power2_divisions:[256:1,>:4]", false},
	} {
		if got := Of(c.backend).Reads(c.conf); got != c.want {
			t.Errorf("%s reads %s: %v, want %v", c.backend, c.conf, got, c.want)
		}
	}
}
