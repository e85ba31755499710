// Package device reads the GPU driver through NVML: how much of each device's memory is used,
// and by which processes. NVML is loaded at run time and may be missing; any call before a
// successful nvmlInit, or of a function that an older driver lacks, would kill the process, so
// Open is the only way to a Driver and a Driver asks for each function before it calls it.
//
// What the driver does not tell stays unknown: nil, never zero. A call that fails costs its
// figure and is listed in the reading's errors; a device that is lost costs the rest of its
// figures. What a device does not support is no error.
//
// A Ledger accounts for all memory of a device, from what the driver counts down to what PyTorch's
// allocator does with its part:
//
//	total        = driver + others + this process + free + residual
//	this process = non_pytorch + reserved
//	reserved     = allocated + what is cached, by class
//
// where non_pytorch is the CUDA context and what libraries such as NCCL allocated past PyTorch.
// It is what the process uses less what is *reserved*, never less what is allocated: cached
// memory is PyTorch's, too. The driver and PyTorch are read one after the other, and figures of
// another process, device or moment would give a difference that means nothing, so BuildLedger refuses
// them.
package device

import "errors"

// ErrBuiltWithout says that this build has no NVML: it was made without cgo or for another
// system than Linux.
var ErrBuiltWithout = errors.New("built without NVML")

// ErrNoDriver says that the machine has no NVIDIA driver, or none that answers.
var ErrNoDriver = errors.New("no NVIDIA driver")

// States of a process.
const (
	Running = "running"
	Zombie  = "zombie" // ended, and its parent has not asked how
	// Gone is a process that the driver lists and the system does not have. It is only said
	// where every process of the machine can be seen, which is not so in a container.
	Gone = "gone"
)
