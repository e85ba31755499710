package sample

import (
	"time"

	driver "github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Reading is one of three devices: one with a trainer, its workers and what others left behind,
// one that is split, and one of which little could be read. Its texts are hostile.
func Reading() *sidecar.Reading {
	process := func(pid, used int64, kind, name, user, state string, parents ...int64) sidecar.GPUProcess {
		p := sidecar.GPUProcess{PID: pid, Used: &used, Kind: kind, Name: name, User: user, State: state, Parents: parents}
		if used < 0 {
			p.Used = nil
		}
		if state == driver.Running {
			p.PPID, p.Started, p.Namespaces = new(int64(1)), new(10*pid), []int64{pid, pid % 100}
		}
		return p
	}
	part := func(p sidecar.GPUProcess, instance int64) sidecar.GPUProcess {
		p.GPUInstance, p.ComputeInstance = &instance, new(int64(0))
		return p
	}
	return &sidecar.Reading{
		Time: time.Date(2026, 1, 2, 12, 0, 0, 5, time.UTC).UnixNano(),
		NVML: sidecar.NVML{
			Driver: "550.54.15", NVML: "12.550.54.15", CUDA: "12.4", Boot: "0f0f", Duration: new(int64(4_000_000)),
			Errors: []sidecar.Failed{{What: "/proc", Why: "processes of other users are hidden: their names and states are unknown"}},
			Devices: []sidecar.GPU{{
				Index: new(int64(0)), UUID: "GPU-aaaa", Name: "NVIDIA A100-SXM4-80GB", Bus: "00000000:01:00.0",
				Total: new(int64(80 * gib)), Reserved: new(int64(640 * mib)), Used: new(int64(62 * gib)), Free: new(int64(17*gib + 384*mib)),
				MIG: new(false), Retired: new(int64(4)), ECCErrors: new(int64(1)),
				Processes: []sidecar.GPUProcess{
					process(4101, 48*gib, "compute+graphics", "python train.py", "ann", driver.Running, 4000),
					process(4102, 500*mib, "compute", "python train.py", "ann", driver.Running, 4101, 4000),
					process(4103, 500*mib, "compute", "python multiprocessing.spawn", "ann", driver.Running, 4100, 4101, 4000),
					process(4104, 300*mib, "mps", "", "ann", driver.Zombie, 4103, 4100, 4101, 4000),
					process(5000, 8*gib, "compute", "\x1b[2J<b>ollama</b>\u202e a name that is far too long for its place in the table", "someone-with-a-long-name", driver.Running),
					process(5001, -1, "compute", "", "", ""),
					process(5002, 2*gib, "compute", "", "", driver.Gone),
				},
				Accounting: []sidecar.Accounted{{PID: 4101, MaxUsed: new(int64(60 * gib)), Running: new(true)}, {PID: 9, MaxUsed: new(int64(70 * gib)), Running: new(false)}, {PID: 8}},
			}, {
				Index: new(int64(1)), UUID: "GPU-bbbb", Name: "NVIDIA A100-SXM4-80GB", Bus: "00000000:02:00.0",
				Total: new(int64(80 * gib)), Reserved: new(int64(640 * mib)), Used: new(int64(12 * gib)), Free: new(int64(67*gib + 384*mib)), MIG: new(true),
				Instances: []sidecar.MIGInstance{
					{UUID: "MIG-1", GPUInstance: new(int64(3)), ComputeInstance: new(int64(0)), Name: "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
						Total: new(int64(10 * gib)), Reserved: new(int64(0)), Used: new(int64(6 * gib)), Free: new(int64(4 * gib))},
					{UUID: "MIG-2", GPUInstance: new(int64(5)), ComputeInstance: new(int64(0)), Name: "NVIDIA A100-SXM4-80GB MIG 1g.10gb"},
				},
				Processes: []sidecar.GPUProcess{
					part(process(6001, 5*gib, "compute", "python serve.py", "ann", driver.Running), 3),
					part(process(6002, gib, "compute", "python serve.py", "ann", driver.Running, 6001), 3),
				},
			}, {
				Index: new(int64(2)), Errors: []sidecar.Failed{{What: "nvmlDeviceGetUUID", Why: "the device is lost: it fell off the bus, or is not accessible"}},
			}},
		},
	}
}
