package main

import (
	"context"
	"fmt"
	"os"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// readDriver reads the driver's side of a report, now or from a recording.
func readDriver(ctx context.Context, opt *analyze.Options, live bool, readings string) error {
	switch {
	case live && readings != "":
		return fmt.Errorf("--nvml and --readings exclude each other")
	case readings != "":
		var err error
		opt.Readings, err = sidecar.Open(ctx, readings, sidecar.Options{})
		return err
	case live:
		driver, err := device.Open()
		if err != nil {
			return fmt.Errorf("%w; the report does without --nvml", err)
		}
		defer driver.Close()
		opt.Live = driver.Read(os.DirFS("/proc"))
	}
	return nil
}
