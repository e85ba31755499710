package load

import (
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// marks is what shows the kind of device, surest first (snapshot/SPEC.md 9.1). CUDA has no row: hipified builds keep
// some of its names, and nothing in a file of Python stacks tells an AMD GPU.
var marks = []struct {
	backend string
	files   []string // parts of paths, with slashes
	names   []string // beginnings of C++ names
}{
	{snapshot.NPU, []string{"/torch_npu/", "libtorch_npu", "libascendcl"},
		[]string{"c10_npu::", "at_npu::", "torch_npu::"}},
	{snapshot.XPU, []string{"/torch/xpu/", "/c10/xpu/", "libtorch_xpu", "libc10_xpu", "/intel_extension_for_pytorch/"},
		[]string{"c10::xpu::", "at::xpu::", "torch::xpu::"}},
	{snapshot.HIP, []string{"libtorch_hip", "libc10_hip", "libamdhip64", "/c10/hip/", "/ATen/hip/"},
		[]string{"c10::hip::", "at::hip::", "hipMalloc"}},
}

// backend tells the kind of device by the settings and the frames.
func backend(s *snapshot.Snapshot) string {
	for _, v := range s.Settings.Values {
		switch {
		case v.Key == "PYTORCH_ALLOC_CONF":
			return snapshot.XPU
		case strings.Contains(v.Key, "HIP") || strings.Contains(v.Key, "hip"):
			return snapshot.HIP
		}
	}
	for _, option := range []string{"backend:hipMallocAsync", "release_lock_on_hipmalloc", "pinned_use_hip_"} {
		if strings.Contains(s.Settings.Conf, option) {
			return snapshot.HIP
		}
	}
	best := len(marks)
	looked := [2][]bool{make([]bool, s.Strings.Len()+1), make([]bool, s.Strings.Len()+1)} // frames share texts
	once := func(of int, id snapshot.StringID) string {
		if looked[of][id] {
			return ""
		}
		looked[of][id] = true
		return s.Strings.Get(id)
	}
	for id := range s.Frames.Len() {
		f := s.Frames.Get(snapshot.FrameID(id + 1))
		file, name := strings.ReplaceAll(once(0, f.File), `\`, "/"), once(1, f.Name)
		for i, d := range marks[:best] {
			if shows(file, name, d.files, d.names) {
				best = i
				break
			}
		}
	}
	if best < len(marks) {
		return marks[best].backend
	}
	return snapshot.CUDA
}

func shows(file, name string, files, names []string) bool {
	for _, part := range files {
		if strings.Contains(file, part) {
			return true
		}
	}
	for _, start := range names {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}
