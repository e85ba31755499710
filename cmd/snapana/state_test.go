package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/pickler"
)

// TestDevices asks for the state of files with several devices, of which some did nothing.
func TestDevices(t *testing.T) {
	const mib = 1 << 20
	program := func(d *build.Device) {
		if d.Index > 0 {
			d.Alloc(int64(8*mib*(4-d.Index)) + 8*mib)
		}
	}
	for _, c := range []struct {
		devices int
		flags   string
		code    int
		says    string
	}{
		{1, "", exitInput, "made.pickle has no segments and no events"},
		{2, "", exitOK, "made.pickle, GPU 1 at the end"},
		{4, "", exitOK, "GPU 1 (of 3 in the file, the one that reserved most; choose with --device) at the end"},
		{4, "--device 3", exitOK, "made.pickle, GPU 3 at the end"},
		{4, "--device 0", exitInput, "invalid --device 0; the file has memory of GPU 1, 2, 3"},
		{4, "--device -1", exitInput, "GPU 1, 2, 3"},
		{12, "--device 12", exitInput, "GPU 1, 2, 3, 4, 5, 6, 7, 8, ... (11 in total)"},
		{1, "--device 0", exitInput, "memory of no GPU"},
	} {
		var in, out bytes.Buffer
		if err := build.Run(build.Options{Devices: c.devices}, func(d *build.Device) {
			if d.Index < 4 {
				program(d)
			} else {
				d.Alloc(mib)
			}
		}).Write(&in, pickler.Options{Protocol: 4}); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"state", "-"}, strings.Fields(c.flags)...)
		code := run(t.Context(), args, &in, &out, &out)
		got := strings.Join(strings.Fields(out.String()), " ") // lines may be wrapped
		if want := strings.ReplaceAll(c.says, "made.pickle", "stdin"); code != c.code || !strings.Contains(got, want) {
			t.Errorf("%d devices, %q: exit %d, want %d and %q:\n%s", c.devices, c.flags, code, c.code, want,
				out.String())
		}
	}
}
