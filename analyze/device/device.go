// Package device talks to the GPU driver through NVML, which nothing else may call. NVML is
// loaded at run time and may be missing; any call before a successful nvmlInit would kill the
// process, so every function here begins with one and says what is wrong when it fails.
package device

import "errors"

// ErrBuiltWithout says that this build has no NVML: it was made without cgo or for another
// system than Linux.
var ErrBuiltWithout = errors.New("built without NVML")

// ErrNoDriver says that the machine has no NVIDIA driver, or none that answers.
var ErrNoDriver = errors.New("no NVIDIA driver")
