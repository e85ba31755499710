package device_test

import (
	"errors"
	"testing"

	"github.com/snapana/snapana/analyze/device"
)

// The machine decides which of the outcomes it is; none may end the process.
func TestOpen(t *testing.T) {
	driver, err := device.Open()
	if err != nil {
		if !errors.Is(err, device.ErrNoDriver) {
			t.Errorf("error of no known class: %v", err)
		}
		return
	}
	defer driver.Close()
	if version, err := driver.Version(); err != nil || version == "" {
		t.Errorf("version %q, error %v", version, err)
	}
}
