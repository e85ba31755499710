//go:build !cgo || !linux

package device

// NVML always fails in this build.
func NVML() (string, error) { return "", ErrBuiltWithout }
