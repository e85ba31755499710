package device

import (
	"errors"
	"testing"
)

// The machine decides which of the outcomes it is; none may end the process.
func TestNVML(t *testing.T) {
	version, err := NVML()
	switch {
	case err == nil && version == "":
		t.Error("no version and no error")
	case err != nil && version != "":
		t.Errorf("both version %q and error %v", version, err)
	case err != nil && !errors.Is(err, ErrBuiltWithout) && !errors.Is(err, ErrNoDriver):
		t.Errorf("error of no known class: %v", err)
	}
}
