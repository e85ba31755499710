//go:build cgo && linux

package device

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// NVML gives the version of the NVML library of the installed driver.
func NVML() (string, error) {
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		if ret == nvml.ERROR_LIBRARY_NOT_FOUND {
			return "", fmt.Errorf("%w: libnvidia-ml.so.1 was not found", ErrNoDriver)
		}
		// ErrorString itself is a call into the library and is only safe once it is loaded.
		return "", fmt.Errorf("%w: nvmlInit returned %d", ErrNoDriver, int(ret))
	}
	defer nvml.Shutdown()
	version, ret := nvml.SystemGetNVMLVersion()
	if ret != nvml.SUCCESS {
		return "", fmt.Errorf("nvmlSystemGetNVMLVersion returned %d", int(ret))
	}
	return version, nil
}
