package text_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func nvml(t *testing.T, r *sidecar.Reading, o text.NVMLOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := text.NVML(&b, r, o); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > o.Columns() && !o.Color {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	return b.String()
}

func TestNVML(t *testing.T) {
	r := analyzetest.Reading()
	history := [][]int64{{0, 1 << 30, 20 << 30, 62 << 30}}
	out := nvml(t, r, text.NVMLOptions{Findings: verdict.JudgeReading(r, 4101), History: history})
	golden.Check(t, "nvml.txt", []byte(out))
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Error("a process drives the terminal")
	}
	golden.Check(t, "nvml-pid.txt", []byte(nvml(t, device.Only(r, 4101), text.NVMLOptions{Only: true})))
}

// TestNVMLWidths holds what terminals of several widths get.
func TestNVMLWidths(t *testing.T) {
	r := analyzetest.Reading()
	history := [][]int64{{0, 1 << 30, 20 << 30, 62 << 30}}
	var all strings.Builder
	for _, width := range []int{60, 80, 120} {
		out := nvml(t, r, text.NVMLOptions{Options: text.Options{Width: width}, Findings: verdict.JudgeReading(r, 4101), History: history})
		fmt.Fprintf(&all, "== %d columns\n%s\n", width, out)
	}
	golden.Check(t, "nvml-widths.txt", []byte(all.String()))
}

// The manual shows a trainer with two workers, as it is printed.
func TestNVMLInManual(t *testing.T) {
	r := analyzetest.Reading()
	r.Errors, r.Devices = nil, r.Devices[:1]
	g := &r.Devices[0]
	g.Processes, g.Used, g.Free = g.Processes[:3], new(int64(49<<30+512<<20)), new(int64(29<<30+896<<20))
	g.ECCErrors, g.Retired, g.Accounting = nil, nil, nil
	out := nvml(t, r, text.NVMLOptions{Findings: verdict.JudgeReading(r, 0)})
	golden.Check(t, "nvml-readme.txt", []byte(out))
	manual, err := os.ReadFile("../../cmd/snapana/manual/nvml.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(manual), "$ snapana nvml\n"+out+"```\n") {
		t.Error("the manual shows something else")
	}
}

func TestNVMLColor(t *testing.T) {
	out := nvml(t, analyzetest.Reading(), text.NVMLOptions{Options: text.Options{Color: true}})
	if !strings.Contains(out, "\x1b[1mGPU 0") || strings.Contains(out, "\x1b[2J") {
		t.Errorf("%q", out)
	}
}

func TestNVMLLine(t *testing.T) {
	want := "2026-01-02T12:00:00Z  GPU 0: 62.0 GiB of 80.0 GiB, 4101 48.0 GiB, 4102 500 MiB, 4103 500 MiB, 4104 300 " +
		"MiB, 5000 8.00 GiB, 5001 unknown, 5002 2.00 GiB" +
		"  GPU 1: 12.0 GiB of 80.0 GiB, 6001 5.00 GiB, 6002 1.00 GiB  GPU 2: used unknown"
	if got := text.NVMLLine(analyzetest.Reading()); got != want {
		t.Errorf("got %q", got)
	}
}

// TestNVMLShared is a device without memory of its own, read by nvidia-smi.
func TestNVMLShared(t *testing.T) {
	r := analyzetest.Reading()
	r.Errors, r.Devices, r.Reader = nil, r.Devices[:1], "nvidia-smi"
	g := &r.Devices[0]
	g.Total, g.Used, g.Free, g.Reserved, g.Shared = new(int64(120<<30)), new(int64(60<<30)), new(int64(60<<30)), nil, true
	out := nvml(t, r, text.NVMLOptions{})
	for _, want := range []string{", read by nvidia-smi; 1 device\n", " = 60.0 GiB used + 60.0 GiB free, shared with the CPU\n",
		"used by other programs, on the CPU as well\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
