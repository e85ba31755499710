//go:build cgo && linux

package device

import (
	"encoding/json"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/snapana/snapana/snapshot/sidecar"
)

// library is go-nvml's mock of a driver with one device, without the functions
// whose names begin as missing says.
// Functions of the mock that are not set here end the test: nothing else may be called.
func library(d *mock.Device, missing ...string) *mock.Interface {
	l := &mock.Interface{
		InitFunc:                       func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:                   func() nvml.Return { return nvml.SUCCESS },
		SystemGetDriverVersionFunc:     func() (string, nvml.Return) { return "570.1", nvml.SUCCESS },
		SystemGetNVMLVersionFunc:       func() (string, nvml.Return) { return "12.570.1", nvml.SUCCESS },
		SystemGetCudaDriverVersionFunc: func() (int, nvml.Return) { return 12080, nvml.SUCCESS },
		DeviceGetCountFunc:             func() (int, nvml.Return) { return 1, nvml.SUCCESS },
		DeviceGetHandleByIndexFunc:     func(int) (nvml.Device, nvml.Return) { return d, nvml.SUCCESS },
	}
	l.ExtensionsFunc = func() nvml.ExtendedInterface {
		return &mock.ExtendedInterface{LookupSymbolFunc: func(name string) error {
			if slices.ContainsFunc(missing, func(m string) bool { return strings.HasPrefix(name, m) }) {
				return nvml.ERROR_FUNCTION_NOT_FOUND
			}
			return nil
		}}
	}
	return l
}

func gpu() *mock.Device {
	return &mock.Device{
		GetUUIDFunc: func() (string, nvml.Return) { return "GPU-1", nvml.SUCCESS },
		GetNameFunc: func() (string, nvml.Return) { return "Mock", nvml.SUCCESS },
		GetPciInfoFunc: func() (nvml.PciInfo, nvml.Return) {
			return nvml.PciInfo{BusIdLegacy: [16]int8{'0', ':', '1'}}, nvml.SUCCESS
		},
		GetMemoryInfo_v2Func: func() (nvml.Memory_v2, nvml.Return) {
			return nvml.Memory_v2{Total: 100, Reserved: 1, Used: 40, Free: 59}, nvml.SUCCESS
		},
		GetMigModeFunc: func() (int, int, nvml.Return) {
			return nvml.DEVICE_MIG_DISABLE, nvml.DEVICE_MIG_ENABLE,
				nvml.SUCCESS
		},
		GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			const none = 1<<32 - 1
			return []nvml.ProcessInfo{{Pid: 9, UsedGpuMemory: 30, GpuInstanceId: none, ComputeInstanceId: none},
				{Pid: 7, UsedGpuMemory: 1<<64 - 1, GpuInstanceId: none, ComputeInstanceId: none}}, nvml.SUCCESS
		},
		GetGraphicsRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return nil, nvml.ERROR_NOT_SUPPORTED
		},
		GetMPSComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.SUCCESS },
		GetTotalEccErrorsFunc: func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
			return 0, nvml.SUCCESS
		},
		GetRetiredPagesFunc: func(nvml.PageRetirementCause) ([]uint64, nvml.Return) {
			return nil,
				nvml.ERROR_NOT_SUPPORTED
		},
		GetAccountingModeFunc: func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_DISABLED, nvml.SUCCESS },
	}
}

func TestMock(t *testing.T) {
	l := library(gpu())
	d, err := open(l)
	if err != nil {
		t.Fatal(err)
	}
	r := d.Read(fstest.MapFS{})
	d.Close()
	if len(l.ShutdownCalls()) != 1 {
		t.Error("not shut down")
	}
	if len(r.Devices) != 1 || r.Driver != "570.1" || r.CUDA != "12.8" {
		t.Fatalf("%+v", r)
	}
	g := r.Devices[0]
	if g.Bus != "0:1" || *g.Total != 100 || *g.Reserved != 1 || *g.Used != 40 || *g.Free != 59 || *g.MIG ||
		*g.ECCErrors != 0 || g.Retired != nil ||
		g.Accounting != nil || g.Instances != nil || len(g.Errors) > 0 {
		t.Errorf("%+v", g)
	}
	if p := g.Processes; len(p) != 2 || p[0].PID != 7 || p[0].Used != nil || p[1].PID != 9 || *p[1].Used != 30 ||
		p[1].Kind != "compute" || p[1].GPUInstance != nil {
		t.Errorf("%+v", p)
	}
}

// An older driver lacks functions; calling one ends the process.
func TestMissingFunctions(t *testing.T) {
	g := gpu()
	g.GetMemoryInfo_v2Func, g.GetMigModeFunc, g.GetMPSComputeRunningProcessesFunc = nil, nil, nil
	g.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) {
		return nvml.Memory{Total: 100, Used: 41, Free: 59},
			nvml.SUCCESS
	}
	d, err := open(library(g, "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMigMode",
		"nvmlDeviceGetMPSComputeRunningProcesses"))
	if err != nil {
		t.Fatal(err)
	}
	got := d.Read(fstest.MapFS{}).Devices[0]
	if *got.Total != 100 || got.Reserved != nil || *got.Used != 41 || got.MIG != nil || len(got.Processes) != 2 ||
		len(got.Errors) > 0 {
		t.Errorf("%+v", got)
	}
}

// Everybody may ask an instance for its processes.
func TestInstancesWithoutPermission(t *testing.T) {
	part := gpu()
	part.GetGpuInstanceIdFunc = func() (int, nvml.Return) { return 2, nvml.SUCCESS }
	part.GetComputeInstanceIdFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
	whole := gpu()
	whole.GetMigModeFunc = func() (int, int, nvml.Return) {
		return nvml.DEVICE_MIG_ENABLE, nvml.DEVICE_MIG_ENABLE,
			nvml.SUCCESS
	}
	whole.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 2, nvml.SUCCESS }
	whole.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 0 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return part, nvml.SUCCESS
	}
	whole.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return nil,
			nvml.ERROR_NO_PERMISSION
	}
	d, err := open(library(whole))
	if err != nil {
		t.Fatal(err)
	}
	g := d.Read(fstest.MapFS{}).Devices[0]
	instance := func(p sidecar.GPUProcess) bool { return *p.GPUInstance == 2 && *p.ComputeInstance == 0 }
	if len(g.Instances) != 1 || len(g.Processes) != 2 || !instance(g.Processes[0]) || !instance(g.Processes[1]) ||
		len(g.Errors) > 0 {
		t.Errorf("%+v", g)
	}
}

// TestSameFigures asks NVML and nvidia-smi about one device: what they tell is the same, up to a MiB.
func TestSameFigures(t *testing.T) {
	const none = 1<<32 - 1
	d := gpu()
	d.GetUUIDFunc = func() (string, nvml.Return) { return "GPU-aaaaaaaa-0000-0000-0000-000000000001", nvml.SUCCESS }
	d.GetNameFunc = func() (string, nvml.Return) { return "NVIDIA A100-SXM4-80GB", nvml.SUCCESS }
	d.GetPciInfoFunc = func() (info nvml.PciInfo, ret nvml.Return) {
		for i, c := range []byte("00000000:01:00.0") {
			info.BusId[i] = int8(c)
		}
		return info, nvml.SUCCESS
	}
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{Total: 81920 << 20, Reserved: 640 << 20, Used: 50688 << 20, Free: 30592 << 20}, nvml.SUCCESS
	}
	list := func(p ...nvml.ProcessInfo) func() ([]nvml.ProcessInfo, nvml.Return) {
		for i := range p {
			p[i].GpuInstanceId, p[i].ComputeInstanceId = none, none
		}
		return func() ([]nvml.ProcessInfo, nvml.Return) { return p, nvml.SUCCESS }
	}
	d.GetComputeRunningProcessesFunc = list(nvml.ProcessInfo{Pid: 4101, UsedGpuMemory: 49152 << 20})
	d.GetMPSComputeRunningProcessesFunc = list(nvml.ProcessInfo{Pid: 4102, UsedGpuMemory: 500 << 20})
	d.GetGraphicsRunningProcessesFunc = list(nvml.ProcessInfo{Pid: 4103, UsedGpuMemory: 1<<64 - 1})
	d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) { return 3, nvml.SUCCESS }
	d.GetAccountingModeFunc = func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS }
	d.GetAccountingPidsFunc = func() ([]int, nvml.Return) { return []int{4101}, nvml.SUCCESS }
	d.GetAccountingStatsFunc = func(uint32) (nvml.AccountingStats, nvml.Return) {
		return nvml.AccountingStats{MaxMemoryUsage: 50000 << 20, IsRunning: 1}, nvml.SUCCESS
	}
	driver, err := open(library(d))
	if err != nil {
		t.Fatal(err)
	}
	proc := fstest.MapFS{"self": {}}
	for _, pid := range []string{"4101", "4102", "4103"} {
		proc[pid+"/stat"] = &fstest.MapFile{Data: []byte(pid + " (python) S 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 77 0")}
		proc[pid+"/fd/3"] = &fstest.MapFile{Data: []byte("/dev/nvidia0"), Mode: fs.ModeSymlink}
	}
	want := driver.Read(proc).Devices[0]
	got := fixture(t, "v12-a100.xml").reading(newProcTable(proc), nil).Devices[0]
	if !reflect.DeepEqual(got, want) {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		t.Errorf("nvidia-smi tells\n%s\nand NVML\n%s", a, b)
	}
}

// TestSharedMemory is a device that NVML counts no memory for, and one that it fails to count it for.
func TestSharedMemory(t *testing.T) {
	for ret, isShared := range map[nvml.Return]bool{nvml.ERROR_NOT_SUPPORTED: true, nvml.ERROR_UNKNOWN: false} {
		d := gpu()
		d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, ret }
		d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, ret }
		driver, err := open(library(d))
		if err != nil {
			t.Fatal(err)
		}
		if g := driver.Read(shared).Devices[0]; g.Shared != isShared || isShared && *g.Total != 125510920<<10 {
			t.Errorf("%v: %+v", ret, g)
		}
	}
}
