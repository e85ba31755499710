//go:build cgo && linux

package device

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/snapana/snapana/snapshot/sidecar"
)

// Reader is what this build reads the driver through.
const Reader = "NVML"

// Driver is NVML, loaded and initialized.
type Driver struct {
	lib nvml.Interface
}

// Open loads NVML. The error is ErrNoDriver, with the reason.
func Open() (*Driver, error) {
	// Asked before anything is called: the dynamic linker ends the program where a function is missing.
	if bare := dl.New(soname, dl.RTLD_LAZY|dl.RTLD_LOCAL); bare.Open() == nil {
		defer bare.Close()
		for _, name := range []string{"nvmlInit", "nvmlShutdown"} {
			if bare.Lookup(name) != nil && bare.Lookup(name+"_v2") != nil {
				return nil, lacks(name)
			}
		}
	}
	return open(nvml.New())
}

// soname is of what go-nvml loads.
const soname = "libnvidia-ml.so.1"

// lacks says that the library is there without a function that every driver has.
func lacks(name string) error {
	return fmt.Errorf("%w: %s is not that of a driver, it lacks %s", ErrNoDriver, soname, name)
}

func open(lib nvml.Interface) (*Driver, error) {
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
		for _, name := range []string{"nvmlSystemGetNVMLVersion", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"} {
			if !has(lib, name) {
				lib.Shutdown()
				return nil, lacks(name)
			}
		}
		return &Driver{lib}, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("%w: %s was not found", ErrNoDriver, soname)
	default:
		return nil, fmt.Errorf("%w: nvmlInit: %s", ErrNoDriver, words(ret))
	}
}

// Close unloads NVML. The Driver must not be used after it.
func (d *Driver) Close() { d.lib.Shutdown() }

// Version is that of the NVML library.
func (d *Driver) Version() (string, error) {
	version, ret := d.lib.SystemGetNVMLVersion()
	if ret != nvml.SUCCESS {
		return "", fmt.Errorf("nvmlSystemGetNVMLVersion: %s", words(ret))
	}
	return version, nil
}

// Read reads all devices. Names, users, parents and states of processes come from proc, which
// is /proc.
func (d *Driver) Read(proc fs.FS) *sidecar.Reading {
	begun := time.Now()
	r := &sidecar.Reading{Time: begun.UnixNano()}
	table := newProcTable(proc)
	r.Boot = table.boot
	q := query{lib: d.lib, table: table, failed: &r.Errors}
	r.Driver, _ = ask(&q, "nvmlSystemGetDriverVersion", d.lib.SystemGetDriverVersion)
	r.NVML.NVML, _ = ask(&q, "nvmlSystemGetNVMLVersion", d.lib.SystemGetNVMLVersion)
	if v, ok := ask(&q, "nvmlSystemGetCudaDriverVersion", d.lib.SystemGetCudaDriverVersion); ok {
		r.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	n, _ := ask(&q, "nvmlDeviceGetCount", d.lib.DeviceGetCount)
	r.Devices = []sidecar.GPU{}
	for i := range n {
		g := sidecar.GPU{Index: new(int64(i))}
		gq := query{lib: d.lib, table: table, failed: &g.Errors}
		h, ok := ask(&gq, "nvmlDeviceGetHandleByIndex",
			func() (nvml.Device, nvml.Return) { return d.lib.DeviceGetHandleByIndex(i) })
		if ok {
			gq.device(h, &g)
		}
		for k := range g.Processes {
			table.describe(&g.Processes[k])
		}
		r.Devices = append(r.Devices, g)
	}
	if !table.all {
		r.Errors = append(r.Errors, sidecar.Failed{What: "/proc", Why: table.blind()})
	}
	r.Duration = new(int64(time.Since(begun)))
	return r
}

// query asks the driver, and notes what fails.
type query struct {
	lib    nvml.Interface
	table  *procTable
	failed *[]sidecar.Failed
	lost   bool // the device is: nothing more is asked of it
}

// ask calls the function of the driver that is named, if the driver has it in any version. What
// the function returns for want of anything to tell is no failure.
func ask[T any](q *query, name string, call func() (T, nvml.Return), nothing ...nvml.Return) (v T, ok bool) {
	if q.lost || !has(q.lib, name) {
		return v, false
	}
	v, ret := call()
	switch {
	case ret == nvml.SUCCESS:
		return v, true
	case ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_FUNCTION_NOT_FOUND || slices.Contains(nothing, ret):
		return v, false
	}
	q.lost = ret == nvml.ERROR_GPU_IS_LOST
	*q.failed = append(*q.failed, sidecar.Failed{What: name, Why: words(ret)})
	return v, false
}

// has reports whether the driver has a function, which drivers before it do not: the dynamic
// linker ends the program when one that is missing is called.
func has(lib nvml.Interface, name string) bool {
	for _, version := range []string{"", "_v2", "_v3"} {
		if lib.Extensions().LookupSymbol(name+version) == nil {
			return true
		}
	}
	return false
}

func (q *query) device(h nvml.Device, g *sidecar.GPU) {
	g.UUID, _ = ask(q, "nvmlDeviceGetUUID", h.GetUUID)
	g.Name, _ = ask(q, "nvmlDeviceGetName", h.GetName)
	if pci, ok := ask(q, "nvmlDeviceGetPciInfo", h.GetPciInfo); ok {
		if g.Bus = text(pci.BusId[:]); g.Bus == "" {
			g.Bus = text(pci.BusIdLegacy[:])
		}
	}
	var unsupported bool
	g.Total, g.Reserved, g.Used, g.Free, unsupported = q.memory(h)
	if mode, ok := ask(q, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		mode, _,
			ret := h.GetMigMode()
		return mode, ret
	}); ok {
		g.MIG = new(mode == nvml.DEVICE_MIG_ENABLE)
		if *g.MIG {
			q.instances(h, g)
		}
	}
	if unsupported && g.Instances == nil {
		q.table.share(g)
	}
	if g.Processes == nil {
		g.Processes = q.processes(h)
	}
	g.ECCErrors = q.eccErrors(h)
	g.Retired = q.retiredPages(h)
	g.Accounting = q.accounting(h)
}

// memory reads the second version of the figures. The first, of older drivers, counts what the
// driver reserves as used. unsupported says that the driver counts none for this device.
func (q *query) memory(h nvml.Device) (total, reserved, used, free *int64, unsupported bool) {
	m, ok := ask(q, "nvmlDeviceGetMemoryInfo_v2", h.GetMemoryInfo_v2)
	if ok {
		return size(m.Total), size(m.Reserved), size(m.Used), size(m.Free), false
	}
	first, ok := ask(q, "nvmlDeviceGetMemoryInfo", func() (nvml.Memory, nvml.Return) {
		v, ret := h.GetMemoryInfo()
		unsupported = ret == nvml.ERROR_NOT_SUPPORTED
		return v, ret
	})
	if !ok {
		return nil, nil, nil, nil, unsupported
	}
	return size(first.Total), nil, size(first.Used), size(first.Free), false
}

// size is nil for what the driver cannot tell: all ones, which torch prints as 17179869184 GiB
// (snapshot/SPEC.md 7.2).
func size(n uint64) *int64 {
	if n > math.MaxInt64 {
		return nil
	}
	return new(int64(n))
}

// instances reads the parts of a device. Everybody may ask a part for its processes, while the
// device tells them to those who have the right.
func (q *query) instances(h nvml.Device, g *sidecar.GPU) {
	g.Instances = []sidecar.MIGInstance{}
	n, _ := ask(q, "nvmlDeviceGetMaxMigDeviceCount", h.GetMaxMigDeviceCount)
	for i := range n {
		m, ok := ask(q, "nvmlDeviceGetMigDeviceHandleByIndex",
			func() (nvml.Device, nvml.Return) { return h.GetMigDeviceHandleByIndex(i) },
			nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT)
		if !ok {
			continue
		}
		var v sidecar.MIGInstance
		v.UUID, _ = ask(q, "nvmlDeviceGetUUID", m.GetUUID)
		v.Name, _ = ask(q, "nvmlDeviceGetName", m.GetName)
		if id, ok := ask(q, "nvmlDeviceGetGpuInstanceId", m.GetGpuInstanceId); ok {
			v.GPUInstance = new(int64(id))
		}
		if id, ok := ask(q, "nvmlDeviceGetComputeInstanceId", m.GetComputeInstanceId); ok {
			v.ComputeInstance = new(int64(id))
		}
		v.Total, v.Reserved, v.Used, v.Free, _ = q.memory(m)
		g.Instances = append(g.Instances, v)
		processes := q.processes(m)
		for k := range processes {
			processes[k].GPUInstance, processes[k].ComputeInstance = v.GPUInstance, v.ComputeInstance
		}
		g.Processes = append(g.Processes, processes...)
	}
}

// processes lists who has memory on a device, by number; nil where nothing could be listed. One
// that is in several of the driver's lists is one process.
func (q *query) processes(h nvml.Device) []sidecar.GPUProcess {
	var out []sidecar.GPUProcess
	for _, list := range []struct {
		name, kind string
		call       func() ([]nvml.ProcessInfo, nvml.Return)
	}{
		{"nvmlDeviceGetComputeRunningProcesses", "compute", h.GetComputeRunningProcesses},
		{"nvmlDeviceGetGraphicsRunningProcesses", "graphics", h.GetGraphicsRunningProcesses},
		{"nvmlDeviceGetMPSComputeRunningProcesses", "mps", h.GetMPSComputeRunningProcesses},
	} {
		infos, ok := ask(q, list.name, list.call)
		if ok && out == nil {
			out = []sidecar.GPUProcess{}
		}
		for _, info := range infos {
			p := sidecar.GPUProcess{PID: int64(info.Pid), Kind: list.kind, Used: size(info.UsedGpuMemory),
				GPUInstance: instance(info.GpuInstanceId), ComputeInstance: instance(info.ComputeInstanceId)}
			out = merge(out, p)
		}
	}
	return sorted(out)
}

// instance is nil for the number that says that there is none.
func instance(id uint32) *int64 {
	if id == math.MaxUint32 {
		return nil
	}
	return new(int64(id))
}

func (q *query) eccErrors(h nvml.Device) *int64 {
	n, ok := ask(q, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return h.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC)
	})
	if !ok {
		return nil
	}
	return size(n)
}

// retiredPages counts the pages that the device has taken out of use for either cause.
func (q *query) retiredPages(h nvml.Device) *int64 {
	sum := int64(0)
	for _, cause := range []nvml.PageRetirementCause{
		nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
	} {
		pages, ok := ask(q, "nvmlDeviceGetRetiredPages",
			func() ([]uint64, nvml.Return) { return h.GetRetiredPages(cause) })
		if !ok {
			return nil
		}
		sum += int64(len(pages))
	}
	return &sum
}

// accounting lists what the driver remembers of processes, nil when it is not asked to.
func (q *query) accounting(h nvml.Device) []sidecar.Accounted {
	if mode, ok := ask(q, "nvmlDeviceGetAccountingMode", h.GetAccountingMode); !ok || mode != nvml.FEATURE_ENABLED {
		return nil
	}
	pids, ok := ask(q, "nvmlDeviceGetAccountingPids", h.GetAccountingPids)
	if !ok {
		return nil
	}
	out := []sidecar.Accounted{}
	for _, pid := range pids {
		a := sidecar.Accounted{PID: int64(pid)}
		stats, ok := ask(q, "nvmlDeviceGetAccountingStats",
			func() (nvml.AccountingStats, nvml.Return) { return h.GetAccountingStats(uint32(pid)) },
			nvml.ERROR_NOT_FOUND) // forgotten meanwhile
		if ok {
			a.MaxUsed, a.Running = size(stats.MaxMemoryUsage), new(stats.IsRunning != 0)
		}
		out = append(out, a)
	}
	return out
}

// text is a string of C.
func text(s []int8) string {
	var b strings.Builder
	for _, c := range s {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// words says what a return code means. The driver's own nvmlErrorString would differ from one
// release to the next.
func words(ret nvml.Return) string {
	if s, ok := meanings[ret]; ok {
		return s
	}
	return "NVML error " + strconv.Itoa(int(ret))
}

var meanings = map[nvml.Return]string{
	nvml.ERROR_NO_PERMISSION:     "no permission",
	nvml.ERROR_NOT_FOUND:         "not found",
	nvml.ERROR_DRIVER_NOT_LOADED: "the driver's kernel module is not loaded",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH: "the library and the kernel module are of different driver releases: " +
		"reboot, or update the container image",
	nvml.ERROR_GPU_IS_LOST:               "the device is lost: it fell off the bus, or is not accessible",
	nvml.ERROR_RESET_REQUIRED:            "the device needs a reset",
	nvml.ERROR_TIMEOUT:                   "timed out",
	nvml.ERROR_IN_USE:                    "in use",
	nvml.ERROR_UNINITIALIZED:             "NVML is not initialized",
	nvml.ERROR_INVALID_ARGUMENT:          "invalid argument",
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH: "the driver does not know this version of the call",
	nvml.ERROR_UNKNOWN:                   "unknown error",
}
