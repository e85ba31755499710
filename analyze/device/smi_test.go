package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func fixture(t *testing.T, name string) *smiLog {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "smi", name))
	if err != nil {
		t.Fatal(err)
	}
	log, err := parseSMI(data)
	if err != nil {
		t.Fatal(err)
	}
	if log.split() {
		list, err := os.ReadFile(filepath.Join("testdata", "smi", strings.TrimSuffix(name, ".xml")+".list"))
		if err != nil {
			t.Fatal(err)
		}
		log.name(list)
	}
	return log
}

// told is what a reading says of its devices, one line each, and one for each instance and process.
func told(r *sidecar.Reading) (lines []string) {
	n := func(v *int64) string {
		if v == nil {
			return "?"
		}
		return fmt.Sprint(*v)
	}
	mib := func(list ...*int64) string {
		var out []string
		for _, v := range list {
			if v != nil {
				v = new(*v >> 20)
			}
			out = append(out, n(v))
		}
		return strings.Join(out, "/")
	}
	for i := range r.Devices {
		g := &r.Devices[i]
		mig := "?"
		if g.MIG != nil {
			mig = fmt.Sprint(*g.MIG)
		}
		lines = append(lines, fmt.Sprintf("%s %s, %s MiB, MIG %s, %s errors, %s retired, listed %v", n(g.Index), g.Name,
			mib(g.Total, g.Reserved, g.Used, g.Free), mig, n(g.ECCErrors), n(g.Retired), g.Processes != nil))
		for _, v := range g.Instances {
			lines = append(lines, fmt.Sprintf("- %s.%s %s %s, %s MiB", n(v.GPUInstance), n(v.ComputeInstance), v.Name, v.UUID,
				mib(v.Total, v.Reserved, v.Used, v.Free)))
		}
		for _, p := range g.Processes {
			lines = append(lines, fmt.Sprintf("- %d %s %s, %s MiB, instance %s.%s", p.PID, p.Kind, p.Name, mib(p.Used),
				n(p.GPUInstance), n(p.ComputeInstance)))
		}
		for _, f := range g.Errors {
			lines = append(lines, fmt.Sprintf("- failed %s: %s", f.What, f.Why))
		}
	}
	return lines
}

// TestSMI reads what nvidia-smi of several drivers prints.
func TestSMI(t *testing.T) {
	for name, want := range map[string][]string{
		"v12-a100.xml": {
			"0 NVIDIA A100-SXM4-80GB, 81920/640/50688/30592 MiB, MIG false, 3 errors, ? retired, listed true",
			"- 4101 compute python, 49152 MiB, instance ?.?",
			"- 4102 mps python, 500 MiB, instance ?.?",
			"- 4103 graphics Xorg, ? MiB, instance ?.?",
			"1 NVIDIA A100-SXM4-80GB, 81920/640/4/81276 MiB, MIG false, 0 errors, ? retired, listed true"},
		"v12-mig.xml": {
			"0 NVIDIA A100-PCIE-40GB, 40960/437/3200/37322 MiB, MIG true, ? errors, ? retired, listed true",
			"- 1.0 NVIDIA A100-PCIE-40GB MIG 3g.20gb MIG-cccccccc-0000-0000-0000-000000000001, 19968/0/3163/16805 MiB",
			"- 2.0 NVIDIA A100-PCIE-40GB MIG 3g.20gb MIG-cccccccc-0000-0000-0000-000000000002, 19968/0/37/19930 MiB",
			"- 812 compute python, 3126 MiB, instance 1.0"},
		"v11-t4.xml": {
			"0 Tesla T4, 15109/?/1002/14107 MiB, MIG ?, 1 errors, 2 retired, listed false"},
		"v10-v100.xml": {
			"0 Tesla V100-SXM2-16GB, 16160/?/11/16149 MiB, MIG ?, 4 errors, 3 retired, listed true",
			"- 77 compute+graphics python.exe, ? MiB, instance ?.?"},
		"v12-gb10.xml": {
			"0 NVIDIA GB10, ?/?/?/? MiB, MIG ?, ? errors, ? retired, listed true",
			"- 2001 compute python, 20480 MiB, instance ?.?"},
		"v12-broken.xml": {
			"0 NVIDIA A100-SXM4-80GB, ?/?/?/? MiB, MIG false, ? errors, ? retired, listed true",
			"- failed fb_memory_usage: GPU is lost"},
	} {
		r := fixture(t, name).reading(newProcTable(fstest.MapFS{}), nil)
		if got := told(r); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	r := fixture(t, "v12-a100.xml").reading(newProcTable(fstest.MapFS{}), nil)
	if a := r.Devices[0].Accounting; r.Driver != "550.54.15" || r.CUDA != "12.4" || r.Reader != "nvidia-smi" ||
		len(a) != 1 || a[0].PID != 4101 || *a[0].MaxUsed != 50000<<20 || !*a[0].Running || r.Devices[1].Accounting != nil {
		t.Errorf("%+v", r)
	}
}

// shared is the /proc of a machine whose CPU and device use one memory.
var shared = fstest.MapFS{"meminfo": {Data: []byte(
	"MemTotal:       125510920 kB\nMemFree:  9 kB\nMemAvailable:   104857600 kB\n")}}

// TestShared gives a device the system's memory where the driver counts none for it, and only there.
func TestShared(t *testing.T) {
	g := fixture(t, "v12-gb10.xml").reading(newProcTable(shared), nil).Devices[0]
	if !g.Shared || *g.Total != 125510920<<10 || *g.Free != 100<<30 || *g.Used != *g.Total-*g.Free || g.Reserved != nil {
		t.Errorf("%+v, %v of %v", g, units.Bytes(*g.Used), units.Bytes(*g.Total))
	}
	for _, name := range []string{"v12-a100.xml", "v12-mig.xml", "v12-broken.xml"} {
		if g := fixture(t, name).reading(newProcTable(shared), nil).Devices[0]; g.Shared {
			t.Errorf("%s has the system's memory", name)
		}
	}
}

// program writes a stand-in for nvidia-smi.
func program(t *testing.T, script string) smi {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	name := filepath.Join(t.TempDir(), "nvidia-smi")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return smi{name, time.Minute}
}

// TestSMIRun calls a stand-in, also for the names of instances.
func TestSMIRun(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("testdata", "smi"))
	if err != nil {
		t.Fatal(err)
	}
	s := program(t, "case $* in '-q -x') cat "+dir+"/v12-mig.xml;; -L) cat "+dir+"/v12-mig.list;; *) exit 1; esac\n")
	log, err := s.read()
	if err != nil {
		t.Fatal(err)
	}
	r := log.reading(newProcTable(fstest.MapFS{}), nil)
	if r.Time == 0 || *r.Duration <= 0 || r.Devices[0].Instances[1].UUID != "MIG-cccccccc-0000-0000-0000-000000000002" {
		t.Errorf("%+v", r)
	}
}

// TestSMIFails says why there is no reading.
func TestSMIFails(t *testing.T) {
	hanging := program(t, "exec sleep 1000\n")
	hanging.patience = 100 * time.Millisecond
	for want, s := range map[string]smi{
		"nvidia-smi was not found":            {"no-such-program", time.Minute},
		"nvidia-smi gave no answer within":    hanging,
		"nvidia-smi: NVIDIA-SMI has failed":   program(t, "echo 'NVIDIA-SMI has failed because'; exit 9\n"),
		"nvidia-smi: exit status 3":           program(t, "exit 3\n"),
		"something else than its XML":         program(t, "echo hello\n"),
		"something else than its XML (EOF)":   program(t, "exit 0\n"),
		"something else than its XML (XML sy": program(t, "echo '<nvidia_smi_log><gpu id=\"1\">'\n"),
		"printed more than 16 MiB":            program(t, "exec head -c 20000000 /dev/zero\n"),
	} {
		_, err := s.read()
		if !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		r := (*smiLog)(nil).reading(newProcTable(fstest.MapFS{}), err)
		if len(r.Devices) != 0 || len(r.Errors) != 1 || r.Time == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// TestSMINames takes names that no XML may have.
func TestSMINames(t *testing.T) {
	log, err := parseSMI([]byte("<nvidia_smi_log><gpu><processes><process_info><pid>5</pid>" +
		"<process_name>a\x1b\xff & b</process_name></process_info></processes></gpu></nvidia_smi_log>"))
	if err != nil {
		t.Fatal(err)
	}
	if p := log.reading(newProcTable(fstest.MapFS{}), nil).Devices[0].Processes; len(p) != 1 || p[0].PID != 5 {
		t.Errorf("%+v", p)
	}
}

func FuzzSMI(f *testing.F) {
	for _, name := range []string{"v12-a100.xml", "v12-mig.xml", "v10-v100.xml"} {
		data, err := os.ReadFile(filepath.Join("testdata", "smi", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := parseSMI(data)
		if err != nil {
			return
		}
		log.name(data)
		for _, g := range log.reading(newProcTable(shared), nil).Devices {
			for _, n := range []*int64{g.Total, g.Reserved, g.Used, g.Free, g.ECCErrors, g.Retired} {
				if n != nil && *n < 0 {
					t.Errorf("%+v", g)
				}
			}
		}
	})
}
