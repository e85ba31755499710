package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/device"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of snapana, Go and NVML",
		Long: `Print the version of snapana, the Go release it was built with, and whether NVML, the library
of the GPU driver, can be used on this machine. Reading snapshots needs neither.`,
		Example: `  snapana version`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "snapana %s\n%s %s/%s\n%s\n",
				toolVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, nvmlLine())
			return written(err)
		},
	}
}

// toolVersion is the version of the module as it was installed, or "devel".
func toolVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

func nvmlLine() string {
	driver, err := device.Open()
	if errors.Is(err, device.ErrBuiltWithout) {
		return err.Error()
	}
	var version string
	if err == nil {
		defer driver.Close()
		version, err = driver.Version()
	}
	if err != nil {
		return "NVML: not available, " + err.Error()
	}
	return "NVML: " + version
}
