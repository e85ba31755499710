package device

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/snapana/snapana/snapshot/sidecar"
)

// A build without cgo cannot load NVML. It asks nvidia-smi instead, which every driver brings along, for the XML that
// `nvidia-smi -q -x` prints: its elements are those of nvsmi_device_v10.dtd to v12.dtd, and figures are in whole MiB,
// rounded down. What that leaves out of MIG instances, their names and UUIDs, `nvidia-smi -L` lists.

const smiName = "nvidia-smi"

// smi is the program, and how long one call of it may take: without persistence mode it first starts the driver, which
// takes seconds for each device.
type smi struct {
	name     string
	patience time.Duration
}

// maxSMI is far above what it prints about 16 devices with a hundred processes each.
const maxSMI = 16 << 20

// run gives what the program prints.
func (s smi) run(args ...string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), s.patience)
	defer stop()
	c := exec.CommandContext(ctx, s.name, args...)
	out := limited{left: maxSMI}
	c.Stdout, c.WaitDelay = &out, time.Second // a child of it may keep the pipe open
	err := c.Run()
	first, _, _ := bytes.Cut(bytes.TrimSpace(out.text.Bytes()), []byte("\n"))
	switch said := strings.ToValidUTF8(string(first[:min(len(first), 200)]), "\uFFFD"); {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%w: %s was not found", ErrNoDriver, smiName)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %s gave no answer within %s", ErrNoDriver, smiName, s.patience)
	case out.left < 0:
		return nil, fmt.Errorf("%w: %s printed more than %d MiB", ErrNoDriver, smiName, maxSMI>>20)
	case err != nil && said != "" && !strings.HasPrefix(said, "<"): // it prints errors where others print answers
		return nil, fmt.Errorf("%w: %s: %s", ErrNoDriver, smiName, said)
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %v", ErrNoDriver, smiName, err)
	}
	return out.text.Bytes(), nil
}

// limited keeps what is written to it, up to a limit. Then left is negative.
type limited struct {
	text bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, io.ErrShortWrite
	}
	return l.text.Write(p)
}

// read asks the program about all devices.
func (s smi) read() (*smiLog, error) {
	begun := time.Now()
	data, err := s.run("-q", "-x")
	if err != nil {
		return nil, err
	}
	log, err := parseSMI(data)
	if err != nil {
		return nil, err
	}
	if log.split() {
		if list, err := s.run("-L"); err == nil {
			log.name(list)
		}
	}
	log.begun, log.took = begun, time.Since(begun)
	return log, nil
}

// smiLog is the XML, as far as it is of use.
type smiLog struct {
	XMLName xml.Name `xml:"nvidia_smi_log"`
	Driver  string   `xml:"driver_version"`
	CUDA    string   `xml:"cuda_version"`
	GPUs    []smiGPU `xml:"gpu"`

	begun time.Time
	took  time.Duration
}

type smiGPU struct {
	ID        string         `xml:"id,attr"`
	Name      string         `xml:"product_name"`
	UUID      string         `xml:"uuid"`
	MIG       string         `xml:"mig_mode>current_mig"`
	Instances []smiInstance  `xml:"mig_devices>mig_device"`
	Memory    smiMemory      `xml:"fb_memory_usage"`
	ECC       smiErrors      `xml:"ecc_errors>aggregate"`
	Single    string         `xml:"retired_pages>multiple_single_bit_retirement>retired_count"`
	Double    string         `xml:"retired_pages>double_bit_retirement>retired_count"`
	Mode      string         `xml:"accounting_mode"`
	Processes *smiProcesses  `xml:"processes"`
	Accounted []smiAccounted `xml:"accounted_processes>accounted_process_info"`
}

type smiInstance struct {
	Index           string    `xml:"index"`
	GPUInstance     string    `xml:"gpu_instance_id"`
	ComputeInstance string    `xml:"compute_instance_id"`
	Memory          smiMemory `xml:"fb_memory_usage"`

	name, uuid string // of -L
}

type smiMemory struct {
	Total    string `xml:"total"`
	Reserved string `xml:"reserved"` // from release 510 on
	Used     string `xml:"used"`
	Free     string `xml:"free"`
}

// smiErrors are those of a device's life, under the names that three schemas give them.
type smiErrors struct {
	DoubleBit string `xml:"double_bit>total"`          // v10
	SRAM      string `xml:"sram_uncorrectable"`        // v11
	Parity    string `xml:"sram_uncorrectable_parity"` // v12
	SECDED    string `xml:"sram_uncorrectable_secded"`
	DRAM      string `xml:"dram_uncorrectable"`
}

type smiProcesses struct {
	Text string       `xml:",chardata"`
	List []smiProcess `xml:"process_info"`
}

type smiProcess struct {
	GPUInstance     string `xml:"gpu_instance_id"`
	ComputeInstance string `xml:"compute_instance_id"`
	PID             string `xml:"pid"`
	Type            string `xml:"type"`
	Name            string `xml:"process_name"`
	Used            string `xml:"used_memory"`
}

type smiAccounted struct {
	PID     string `xml:"pid"`
	MaxUsed string `xml:"max_memory_usage"`
	Running string `xml:"is_running"`
}

func parseSMI(data []byte) (*smiLog, error) {
	log := &smiLog{}
	clean := bytes.Map(func(r rune) rune { // the names of processes are as they are
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' {
			return '?'
		}
		return r
	}, data)
	d := xml.NewDecoder(bytes.NewReader(clean))
	d.Strict = false // they may have an ampersand
	if err := d.Decode(log); err != nil {
		return nil, fmt.Errorf("%w: %s printed something else than its XML (%v)", ErrNoDriver, smiName, err)
	}
	return log, nil
}

// split reports whether a device has instances.
func (l *smiLog) split() bool {
	for i := range l.GPUs {
		if len(l.GPUs[i].Instances) > 0 {
			return true
		}
	}
	return false
}

var (
	listedGPU      = regexp.MustCompile(`^GPU (\d+): `)
	listedInstance = regexp.MustCompile(`^\s+(MIG \S+)\s+Device\s+(\d+): \(UUID: ([^)]+)\)`)
)

// name gives instances the names and UUIDs that are listed.
func (l *smiLog) name(list []byte) {
	at := -1
	for line := range strings.Lines(string(list)) {
		if m := listedGPU.FindStringSubmatch(line); m != nil {
			at, _ = strconv.Atoi(m[1])
		} else if m := listedInstance.FindStringSubmatch(line); m != nil && at >= 0 && at < len(l.GPUs) {
			g := &l.GPUs[at]
			for i := range g.Instances {
				if v := &g.Instances[i]; v.Index == m[2] {
					v.name, v.uuid = g.Name+" "+m[1], m[3]
				}
			}
		}
	}
}

// reading makes a reading of a log. Without one, err is why.
func (l *smiLog) reading(table *procTable, err error) *sidecar.Reading {
	r := &sidecar.Reading{NVML: sidecar.NVML{Reader: smiName, Boot: table.boot, Devices: []sidecar.GPU{}}}
	if err != nil {
		r.Time, r.Errors = time.Now().UnixNano(), []sidecar.Failed{{What: smiName, Why: err.Error()}}
		return r
	}
	r.Time, r.Duration = l.begun.UnixNano(), new(int64(l.took))
	r.Driver, r.CUDA = l.Driver, word(l.CUDA)
	for i := range l.GPUs {
		g := l.GPUs[i].gpu(table)
		g.Index = new(int64(i))
		r.Devices = append(r.Devices, g)
	}
	if !table.all {
		r.Errors = append(r.Errors, sidecar.Failed{What: "/proc", Why: table.blind()})
	}
	return r
}

func (x *smiGPU) gpu(table *procTable) sidecar.GPU {
	g := sidecar.GPU{UUID: word(x.UUID), Name: word(x.Name), Bus: x.ID}
	q := figures{&g.Errors}
	g.Total, g.Reserved, g.Used, g.Free = q.memory(x.Memory)
	if mode := word(x.MIG); mode != "" {
		g.MIG = new(mode == "Enabled")
	}
	if x.Memory.unsupported() && (g.MIG == nil || !*g.MIG) {
		table.share(&g)
	}
	if g.MIG != nil && *g.MIG {
		g.Instances = []sidecar.MIGInstance{}
		for _, m := range x.Instances {
			v := sidecar.MIGInstance{UUID: m.uuid, Name: m.name, GPUInstance: q.count("gpu_instance_id", m.GPUInstance),
				ComputeInstance: q.count("compute_instance_id", m.ComputeInstance)}
			v.Total, v.Reserved, v.Used, v.Free = q.memory(m.Memory)
			g.Instances = append(g.Instances, v)
		}
	}
	g.Processes = q.processes(x.Processes, table)
	g.ECCErrors = q.sum("ecc_errors", x.ECC.DoubleBit, x.ECC.SRAM, x.ECC.Parity, x.ECC.SECDED, x.ECC.DRAM)
	single, double := q.count("retired_count", x.Single), q.count("retired_count", x.Double)
	if single != nil && double != nil {
		g.Retired = new(*single + *double)
	}
	if word(x.Mode) == "Enabled" {
		g.Accounting = []sidecar.Accounted{}
		for _, a := range x.Accounted {
			if pid := q.count("pid", a.PID); pid != nil {
				v := sidecar.Accounted{PID: *pid, MaxUsed: q.size("max_memory_usage", a.MaxUsed)}
				if n := q.count("is_running", a.Running); n != nil {
					v.Running = new(*n != 0)
				}
				g.Accounting = append(g.Accounting, v)
			}
		}
	}
	return g
}

// word is a text, "" where that stands for nothing known.
func word(s string) string {
	switch s = strings.TrimSpace(s); s {
	case "N/A", "[N/A]", "Not Supported", "[Not Supported]", "None", "Not Found", "[Not Found]",
		"Requested functionality has been deprecated":
		return ""
	}
	return s
}

// unsupported reports whether the driver counts no memory for the device.
func (m *smiMemory) unsupported() bool {
	return m.Total != "" && word(m.Total) == "" && word(m.Used) == "" && word(m.Free) == ""
}

// figures are read from texts, and those that are none are noted.
type figures struct{ failed *[]sidecar.Failed }

// number reads a count, or a count of a unit.
func (q figures) number(what, text, unit string) *int64 {
	text = word(text)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, unit)), 10, 64)
	if err == nil && n >= 0 && n < 1<<40 {
		return &n
	}
	if len(*q.failed) == 0 || (*q.failed)[len(*q.failed)-1] != (sidecar.Failed{What: what, Why: text}) {
		*q.failed = append(*q.failed, sidecar.Failed{What: what, Why: text})
	}
	return nil
}

func (q figures) count(what, text string) *int64 { return q.number(what, text, "") }

func (q figures) size(what, text string) *int64 {
	n := q.number(what, text, "MiB")
	if n != nil {
		*n <<= 20
	}
	return n
}

func (q figures) memory(m smiMemory) (total, reserved, used, free *int64) {
	const what = "fb_memory_usage"
	return q.size(what, m.Total), q.size(what, m.Reserved), q.size(what, m.Used), q.size(what, m.Free)
}

// sum adds the counts that there are, nil where there is none.
func (q figures) sum(what string, texts ...string) (total *int64) {
	for _, text := range texts {
		if n := q.count(what, text); n != nil {
			if total == nil {
				total = new(int64)
			}
			*total += *n
		}
	}
	return total
}

// processes lists who has memory on a device, by number; nil where the driver does not list them.
func (q figures) processes(x *smiProcesses, table *procTable) []sidecar.GPUProcess {
	if x == nil || len(x.List) == 0 && strings.TrimSpace(x.Text) != "" && strings.TrimSpace(x.Text) != "None" {
		return nil
	}
	out := []sidecar.GPUProcess{}
	for _, v := range x.List {
		pid := q.count("pid", v.PID)
		if pid == nil {
			continue
		}
		p := sidecar.GPUProcess{PID: *pid, Used: q.size("used_memory", v.Used), Kind: smiKind(v.Type),
			GPUInstance:     q.count("gpu_instance_id", v.GPUInstance),
			ComputeInstance: q.count("compute_instance_id", v.ComputeInstance)}
		if table.describe(&p); p.Name == "" && p.State != Gone {
			p.Name = smiProgram(v.Name)
		}
		out = merge(out, p)
	}
	return sorted(out)
}

// smiKind is the kind of a process: C, G, C+G, or M+C of a client of MPS.
func smiKind(s string) string {
	switch s = word(s); {
	case strings.Contains(s, "M"):
		return "mps"
	case s == "C+G":
		return "compute+graphics"
	case s == "G":
		return "graphics"
	case s == "C":
		return "compute"
	}
	return ""
}

// smiProgram is a program without folders and arguments, which may hold secrets.
func smiProgram(s string) string {
	if s = word(s); s == "Insufficient Permissions" || s == "[Insufficient Permissions]" {
		return ""
	}
	if at := strings.LastIndexByte(s, '\\'); at >= 0 { // of Windows, whose folders have blanks
		s = s[at+1:]
	} else if s, _, _ = strings.Cut(s, " "); s != "" {
		s = path.Base(s)
	}
	return strings.ToValidUTF8(s[:min(len(s), maxName)], "\uFFFD")
}
