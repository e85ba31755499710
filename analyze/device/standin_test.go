//go:build cgo && linux

package device_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/fixtures/standin"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// TestMain is also a program that prints one reading as JSON, to be run with a stand-in for the
// driver's library. Its argument is a folder that takes the place of /proc.
func TestMain(m *testing.M) {
	proc := os.Getenv("DEVICE_TEST_PROC")
	if proc == "" {
		os.Exit(m.Run())
	}
	driver, err := device.Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(driver.Read(os.DirFS(proc))); err != nil {
		panic(err)
	}
	driver.Close()
}

// program runs TestMain's with a made-up /proc.
func program(t *testing.T, library string, env []string, proc fs.FS) (stdout []byte, err error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "proc")
	if err := os.CopyFS(dir, proc); err != nil {
		t.Fatal(err)
	}
	return programIn(dir, library, env)
}

func programIn(proc, library string, env []string) (stdout []byte, err error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+library, "DEVICE_TEST_PROC="+proc), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if stdout, err = cmd.Output(); err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return stdout, err
}

// procs is a /proc of the machine with a trainer, a worker of it, a shell between the two and
// init, and a process that has ended.
func procs() fstest.MapFS {
	m := fstest.MapFS{
		"self/ns/pid":               {Data: []byte("pid:[4026531836]"), Mode: fs.ModeSymlink},
		"sys/kernel/random/boot_id": {Data: []byte("b007\n")},
	}
	process(m, 1, 0, "S", "init", "/sbin/init")
	process(m, 50, 1, "S", "bash", "-bash")
	process(m, 101, 50, "R", "pt_main_thread",
		"/usr/bin/python3.11\x00-u\x00-X\x00dev\x00/home/ann/train.py\x00--token=secret")
	process(m, 102, 101, "S", "python)) S 7 (", "/usr/bin/python3.11\x00-c\x00from multiprocessing.spawn import "+
		"spawn_main; spawn_main(4)\x00--multiprocessing-fork")
	process(m, 103, 101, "Z", "python", "")
	return m
}

func process(m fstest.MapFS, pid, ppid int, state, comm, cmdline string) {
	at := fmt.Sprintf("%d/", pid)
	m[at+"stat"] = &fstest.MapFile{Data: fmt.Appendf(nil,
		"%d (%s) %s %d 0 0 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, comm, state, ppid, 10*pid)}
	m[at+"status"] = &fstest.MapFile{Data: fmt.Appendf(nil, "Name:\t%s\nUid:\t4000001\t0\t0\t0\nNSpid:\t%d\t%d\n", comm,
		pid, pid%10)}
	m[at+"cmdline"] = &fstest.MapFile{Data: []byte(cmdline + "\x00")}
}

// show prints a reading, without what differs from one to the next.
func show(r *sidecar.Reading) string {
	var b strings.Builder
	num := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}
	failed := func(indent, what, why string) { fmt.Fprintf(&b, "%sfailed %s: %s\n", indent, what, why) }
	memory := func(total, reserved, used, free *int64) string {
		return fmt.Sprintf("total %s reserved %s used %s free %s", num(total), num(reserved), num(used), num(free))
	}
	fmt.Fprintf(&b, "driver %s nvml %s cuda %s boot %s\n", r.Driver, r.NVML.NVML, r.CUDA, r.Boot)
	for _, e := range r.Errors {
		failed("", e.What, e.Why)
	}
	for _, g := range r.Devices {
		fmt.Fprintf(&b, "%s %q %q %q: %s", num(g.Index), g.UUID, g.Name, g.Bus,
			memory(g.Total, g.Reserved, g.Used, g.Free))
		if g.MIG != nil {
			fmt.Fprintf(&b, " mig %v", *g.MIG)
		}
		fmt.Fprintf(&b, " ecc %s retired %s\n", num(g.ECCErrors), num(g.Retired))
		for _, e := range g.Errors {
			failed("  ", e.What, e.Why)
		}
		for _, i := range g.Instances {
			fmt.Fprintf(&b, "  instance %s.%s %q %q:\n    %s\n", num(i.GPUInstance), num(i.ComputeInstance), i.UUID,
				i.Name, memory(i.Total, i.Reserved, i.Used, i.Free))
		}
		if g.Processes == nil {
			b.WriteString("  processes unknown\n")
		}
		for _, p := range g.Processes {
			fmt.Fprintf(&b, "  %d %s used %s in %s.%s: %q %q of %q,\n    parents %v, started %s, namespaces %v\n",
				p.PID, p.Kind, num(p.Used), num(p.GPUInstance), num(p.ComputeInstance), p.State, p.Name, p.User,
				p.Parents, num(p.Started), p.Namespaces)
		}
		for _, a := range g.Accounting {
			fmt.Fprintf(&b, "  accounting %d: max %s running %v\n", a.PID, num(a.MaxUsed),
				a.Running != nil && *a.Running)
		}
	}
	return b.String()
}

const (
	versions = "driver 550.54.15 nvml 12.550.54.15 cuda 12.4 boot b007\n"
	gpu0     = `0 "GPU-00000000-0000-0000-0000-000000000001" "Stand-in GPU" "00000000:01:00.0": `
	gpu1     = `1 "GPU-00000000-0000-0000-0000-000000000002" "Stand-in GPU" "00000000:02:00.0": `
)

// TestStandIn reads a library in C through the real go-nvml.
func TestStandIn(t *testing.T) {
	library := standin.NVML(t)
	old := standin.NVML(t, "-DOLD")
	const memory = "FAKENVML_MEMORY=17179869184:500000000:6000000000"
	for _, c := range []struct {
		name string
		old  bool
		env  []string
		proc func(fstest.MapFS)
		want string
	}{
		{"idle", false, nil, nil,
			versions + gpu0 + "total 17179869184 reserved 0 used 0 free 17179869184 ecc ? retired ?\n"},
		{"several processes", false, []string{"FAKENVML_DEVICES=2", memory,
			"FAKENVML_PROCS=102:c:500000000,101:c:5000000000,101:g:5000000000,103:c:7,104:m:9", "FAKENVML_ECC=3",
			"FAKENVML_PAGES=2"}, nil,
			versions + gpu0 + `total 17179869184 reserved 500000000 used 6000000000 free 10679869184 ecc 3 retired 4
  101 compute+graphics used 5000000000 in ?.?: "running" "python3.11 train.py" of "4000001",
    parents [50], started 1010, namespaces [101 1]
  102 compute used 500000000 in ?.?: "running" "python3.11 multiprocessing.spawn" of "4000001",
    parents [101 50], started 1020, namespaces [102 2]
  103 compute used 7 in ?.?: "zombie" "python" of "4000001",
    parents [101 50], started 1030, namespaces [103 3]
  104 mps used 9 in ?.?: "gone" "" of "",
    parents [], started ?, namespaces []
` + gpu1 + `total 17179869184 reserved 500000000 used 6000000000 free 10679869184 ecc 3 retired 4
`},
		{"bytes not available", false, []string{"FAKENVML_PROCS=101:c:-"}, nil,
			versions + gpu0 + `total 17179869184 reserved 0 used 0 free 17179869184 ecc ? retired ?
  101 compute used ? in ?.?: "running" "python3.11 train.py" of "4000001",
    parents [50], started 1010, namespaces [101 1]
`},
		{"MIG", false, []string{"FAKENVML_MIG=1", "FAKENVML_MEMORY=8000:10:300", "FAKENVML_PROCS=101:c:200,102:c:100"},
			nil, versions + gpu0 + `total 8000 reserved 10 used 300 free 7690 mig true ecc ? retired ?
  instance 3.0 "MIG-00000000-0000-0000-0000-000000000101" "Stand-in GPU MIG 1g.8gb":
    total 8000 reserved 10 used 300 free 7690
  instance 5.0 "MIG-00000000-0000-0000-0000-000000000102" "Stand-in GPU MIG 1g.8gb":
    total 8000 reserved 10 used 300 free 7690
  101 compute used 200 in 3.0: "running" "python3.11 train.py" of "4000001",
    parents [50], started 1010, namespaces [101 1]
  102 compute used 100 in 5.0: "running" "python3.11 multiprocessing.spawn" of "4000001",
    parents [101 50], started 1020, namespaces [102 2]
`},
		{"permission denied", false, []string{"FAKENVML_PROCS=101:c:5,102:m:6",
			"FAKENVML_FAIL=nvmlDeviceGetMemoryInfo_v2=4,nvmlDeviceGetMemoryInfo=4," +
				"nvmlDeviceGetComputeRunningProcesses_v3=4,nvmlSystemGetDriverVersion=4"}, nil,
			`driver  nvml 12.550.54.15 cuda 12.4 boot b007
failed nvmlSystemGetDriverVersion: no permission
` + gpu0 + `total ? reserved ? used ? free ? ecc ? retired ?
  failed nvmlDeviceGetMemoryInfo_v2: no permission
  failed nvmlDeviceGetMemoryInfo: no permission
  failed nvmlDeviceGetComputeRunningProcesses: no permission
  102 mps used 6 in ?.?: "running" "python3.11 multiprocessing.spawn" of "4000001",
    parents [101 50], started 1020, namespaces [102 2]
`},
		{"no list of processes", false,
			[]string{"FAKENVML_FAIL=nvmlDeviceGetComputeRunningProcesses_v3=4," +
				"nvmlDeviceGetGraphicsRunningProcesses_v3=4,nvmlDeviceGetMPSComputeRunningProcesses_v3=3"}, nil,
			versions + gpu0 + `total 17179869184 reserved 0 used 0 free 17179869184 ecc ? retired ?
  failed nvmlDeviceGetComputeRunningProcesses: no permission
  failed nvmlDeviceGetGraphicsRunningProcesses: no permission
  processes unknown
`},
		{"device lost while it is read", false, []string{"FAKENVML_PROCS=101:c:5", "FAKENVML_FAIL=*@10=15"}, nil,
			versions + gpu0 + `total ? reserved ? used ? free ? ecc ? retired ?
  failed nvmlDeviceGetMemoryInfo_v2: the device is lost: it fell off the bus, or is not accessible
  processes unknown
`},
		{"device cannot be had", false, []string{"FAKENVML_FAIL=nvmlDeviceGetHandleByIndex_v2=999"}, nil,
			versions + `0 "" "" "": total ? reserved ? used ? free ? ecc ? retired ?
  failed nvmlDeviceGetHandleByIndex: unknown error
  processes unknown
`},
		{"process gone between calls", false, []string{"FAKENVML_PROCS=101:c:5,104:c:6",
			"FAKENVML_ACCOUNTING=104:-:0,101:7:1"}, nil,
			versions + gpu0 + `total 17179869184 reserved 0 used 0 free 17179869184 ecc ? retired ?
  101 compute used 5 in ?.?: "running" "python3.11 train.py" of "4000001",
    parents [50], started 1010, namespaces [101 1]
  104 compute used 6 in ?.?: "gone" "" of "",
    parents [], started ?, namespaces []
  accounting 104: max ? running false
  accounting 101: max 7 running true
`},
		{"old driver", true, []string{memory, "FAKENVML_PROCS=101:c:5000000000,102:g:-"}, nil,
			versions + gpu0 + `total 17179869184 reserved ? used 6500000000 free 10679869184 ecc ? retired ?
  101 compute used 5000000000 in ?.?: "running" "python3.11 train.py" of "4000001",
    parents [50], started 1010, namespaces [101 1]
  102 graphics used ? in ?.?: "running" "python3.11 multiprocessing.spawn" of "4000001",
    parents [101 50], started 1020, namespaces [102 2]
`},
		{"a container", false, []string{"FAKENVML_PROCS=50:c:6,101:c:5,104:c:7"}, func(m fstest.MapFS) {
			m["self/ns/pid"].Data = []byte("pid:[4026532000]")
			m["101/fd/7"] = &fstest.MapFile{Data: []byte("/dev/nvidiactl"), Mode: fs.ModeSymlink}
			m["50/fd/7"] = &fstest.MapFile{Data: []byte("/dev/pts/0"), Mode: fs.ModeSymlink}
		}, versions + "failed /proc: this is a container: processes outside may be missing, and their names and " +
			"states are unknown\n" +
			gpu0 + `total 17179869184 reserved 0 used 0 free 17179869184 ecc ? retired ?
  50 compute used 6 in ?.?: "" "" of "",
    parents [], started ?, namespaces []
  101 compute used 5 in ?.?: "running" "python3.11 train.py" of "4000001",
    parents [50], started 1010, namespaces [101 1]
  104 compute used 7 in ?.?: "" "" of "",
    parents [], started ?, namespaces []
`},
		{"hidepid=2", false, []string{"FAKENVML_PROCS=101:c:5,104:c:7"}, func(m fstest.MapFS) { delete(m, "1/stat") },
			versions + "failed /proc: processes of other users are hidden: their names and states are unknown\n" +
				gpu0 + `total 17179869184 reserved 0 used 0 free 17179869184 ecc ? retired ?
  101 compute used 5 in ?.?: "running" "python3.11 train.py" of "4000001",
    parents [50], started 1010, namespaces [101 1]
  104 compute used 7 in ?.?: "" "" of "",
    parents [], started ?, namespaces []
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			proc, lib := procs(), library
			if c.proc != nil {
				c.proc(proc)
			}
			if c.old {
				lib = old
			}
			out, err := program(t, lib, c.env, proc)
			if err != nil {
				t.Fatal(err)
			}
			var r sidecar.Reading
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			if got := show(&r); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if r.Time == 0 || r.Duration == nil || *r.Duration <= 0 {
				t.Errorf("at %v, took %v", r.Time, r.Duration)
			}
		})
	}
}

// TestRealProc asks the kernel for this process.
func TestRealProc(t *testing.T) {
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns != "pid:[4026531836]" {
		t.Skip("in a container only processes that have a device open are described")
	}
	out, err := programIn("/proc", standin.NVML(t), []string{fmt.Sprintf("FAKENVML_PROCS=%d:c:5", os.Getpid())})
	if err != nil {
		t.Fatal(err)
	}
	var r sidecar.Reading
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	p := r.Devices[0].Processes[0]
	if p.State != device.Running || p.Name != filepath.Base(os.Args[0]) || p.PPID == nil ||
		*p.PPID != int64(os.Getppid()) || p.Started == nil || *p.Started == 0 || p.User == "" || r.Boot == "" ||
		len(p.Parents) == 0 || p.Parents[0] != int64(os.Getppid()) {
		t.Errorf("%+v", p)
	}
}

func TestDriverThatDoesNotAnswer(t *testing.T) {
	library := standin.NVML(t)
	for env, want := range map[string]string{
		"FAKENVML_FAIL=nvmlInit_v2=9": "no NVIDIA driver: nvmlInit: the driver's kernel module is not loaded",
		"FAKENVML_FAIL=nvmlInit_v2=18": "no NVIDIA driver: nvmlInit: the library and the kernel module are of " +
			"different",
		"FAKENVML_FAIL=nvmlInit_v2=77": "no NVIDIA driver: nvmlInit: NVML error 77",
	} {
		if out, err := program(t, library, []string{env}, procs()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%s", env, err, out)
		}
	}
	// Calling what is not there would end the program with a message of the dynamic linker.
	for name, want := range map[string]string{
		"nvmlDeviceGetCount_v2": "nvmlDeviceGetCount", "nvmlInit_v2": "nvmlInit", "nvmlShutdown": "nvmlShutdown",
	} {
		hollow := standin.NVML(t, "-D"+name+"=nvmlOther")
		out, err := program(t, hollow, nil, procs())
		if err == nil || !strings.Contains(err.Error(),
			"no NVIDIA driver: libnvidia-ml.so.1 is not that of a driver, it lacks "+want) {
			t.Errorf("without %s: %v\n%s", name, err, out)
		}
	}
	if out, err := program(t, t.TempDir(), nil, procs()); err == nil {
		t.Logf("this machine has a driver: %s", out)
	} else if !strings.Contains(err.Error(), "no NVIDIA driver: ") {
		t.Error(err)
	}
}
