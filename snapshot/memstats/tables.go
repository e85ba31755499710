package memstats

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// summary reads memory_summary tables (snapshot/SPEC.md 6.3). Every row stands for itself, so a table may be
// abbreviated, cut, indented, or behind the prefixes of a log.
type summary struct {
	r      *reader
	s      *Sample // the open table, nil outside
	metric string  // of the last row that was no part
	rows   int
}

var (
	sumTitle = regexp.MustCompile(`memory summary, device ID (\d{1,6})`)
	sumRow   = regexp.MustCompile(`\|\s*(Allocated memory|Active memory|Requested memory|GPU reserved memory|` +
		`Non-releasable memory|Allocations|Active allocs|GPU reserved segments|Non-releasable allocs|` +
		`Oversize allocations|Oversize GPU segments|from large pool|from small pool)\s*\|(.*)$`)
	sumCell = regexp.MustCompile(`^\s*(\d{1,18})\s*([KMGTPE]i?B|B|K|M|G)?\s*$`)
)

// sumCounts are counters above the rows.
var sumCounts = map[string]*regexp.Regexp{
	"num_ooms":          regexp.MustCompile(`OOMs:\s*(\d{1,18})\b`),
	"num_alloc_retries": regexp.MustCompile(`[mM]alloc retries:\s*(\d{1,18})\b`),
}

var sumMetrics = map[string]string{
	"Allocated memory": "allocated_bytes", "Active memory": "active_bytes", "Requested memory": "requested_bytes",
	"GPU reserved memory": "reserved_bytes", "Non-releasable memory": "inactive_split_bytes",
	"Allocations": "allocation", "Active allocs": "active", "GPU reserved segments": "segment",
	"Non-releasable allocs": "inactive_split",
	"Oversize allocations":  "oversize_allocations", "Oversize GPU segments": "oversize_segments",
}

var sumColumns = []string{"current", "peak", "allocated", "freed"}

// line looks at one line, and reports whether it belongs to a table.
func (t *summary) line(s string, no int64) bool {
	if m := sumTitle.FindStringSubmatch(s); m != nil {
		t.flush(true)
		t.open(no)
		t.s.Device, _ = strconv.Atoi(m[1])
		return true
	}
	if m := sumRow.FindStringSubmatch(s); m != nil {
		if t.s == nil {
			t.open(no)
		}
		t.row(m[1], m[2])
		return true
	}
	if t.s == nil {
		return false
	}
	counted := false
	for name, pattern := range sumCounts {
		if m := pattern.FindStringSubmatch(s); m != nil {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			t.s.Set(name, n)
			counted = true
		}
	}
	if t.rows > 0 && strings.Contains(s, "|==========") {
		t.flush(false)
		return true
	}
	return counted || strings.Contains(s, "|----------") || strings.Contains(s, "| Cur Usage")
}

func (t *summary) open(no int64) {
	t.s, t.metric, t.rows = &Sample{Device: -1, Rank: -1, Line: no}, "", 0
}

func (t *summary) row(label, rest string) {
	pool := ".all."
	switch label {
	case "from large pool":
		pool = ".large_pool."
	case "from small pool":
		pool = ".small_pool."
	default:
		t.metric = sumMetrics[label]
	}
	if t.metric == "" {
		return // a part, and its whole was cut off
	}
	t.rows++
	if strings.HasPrefix(t.metric, "oversize") {
		pool = "."
	}
	cells := strings.Split(rest, "|")
	for i, column := range sumColumns {
		if i >= len(cells) || i == len(cells)-1 { // a cell ends with a |, else it may be cut
			break
		}
		m := sumCell.FindStringSubmatch(cells[i])
		if m == nil {
			continue
		}
		name := t.metric + pool + column
		if f := cell(m[1], m[2]); f.Known() {
			t.s.Stats = append(t.s.Stats, Stat{name, f})
		} else {
			t.r.odd(t.s, name)
		}
	}
}

// cell reads a number of at most 18 digits with a unit. torch divides and drops the rest
// (snapshot/SPEC.md 6.3); its units of bytes are powers of 1024 in all releases, those of counts powers of 1000.
func cell(digits, unit string) Figure {
	n, _ := strconv.ParseInt(digits, 10, 64)
	step := int64(1)
	if power := strings.Index("KMGTPE", unit[:min(len(unit), 1)]); unit != "" && unit != "B" {
		for range power + 1 {
			if strings.HasSuffix(unit, "B") {
				step *= 1024
			} else {
				step *= 1000
			}
		}
	}
	if n > math.MaxInt64/step {
		return Figure{}
	}
	return Figure{n * step, step}
}

// flush hands on the open table. cut says that its last rule was not seen.
func (t *summary) flush(cut bool) {
	if t.s != nil {
		t.s.Cut = cut
		t.r.emit(t.s)
		t.s = nil
	}
}

// smiTable reads the tables of nvidia-smi, of drivers old and new, and the lines of
// list_gpu_processes (snapshot/SPEC.md 6.5). Rows stand for themselves, so that a head or a tail is enough.
type smiTable struct {
	r       *reader
	g       *Reading
	pending *Device // its line with the memory comes next
	listed  int     // the device of a list_gpu_processes text, -1 none
}

var (
	smiBanner = regexp.MustCompile(`NVIDIA-SMI\s+(\S+)(?:.*Driver Version:\s*(\S+))?` +
		`(?:.*CUDA (?:\S+ )?Version:\s*(\S+))?`)
	smiDevice = regexp.MustCompile(`\|\s+(\d{1,4})\s+(\S.*?)\s+(?:On|Off|N/A|Default|WDDM|TCC|MCDM)\s*\|\s*` +
		`([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])`)
	smiMemory = regexp.MustCompile(`\|\s*(\d{1,12})MiB\s*/\s*(\d{1,12})MiB\s*\|`)
	smiMIG    = regexp.MustCompile(`\|\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s*\|\s*` +
		`(\d{1,12})MiB\s*/\s*(\d{1,12})MiB\s*\|`)
	smiProc = regexp.MustCompile(`\|\s+(\d{1,4})\s+(?:(N/A|\d{1,4})\s+(N/A|\d{1,4})\s+)?(\d{1,18})\s+` +
		`(C\+G|M\+C|C|G)\s+(\S.*?)\s+(\d{1,12}MiB|N/A)\s*\|`)

	listGPU  = regexp.MustCompile(`(?:^|\s)GPU:(\d{1,4})\s*$`)
	listProc = regexp.MustCompile(`process\s+(\d{1,18})\s+uses\s+(\d{1,12}(?:\.\d{1,3})?) MB GPU memory`)
)

func (t *smiTable) line(s string, no int64) {
	switch {
	case strings.Contains(s, "NVIDIA-SMI"):
		if m := smiBanner.FindStringSubmatch(s); m != nil {
			t.flush()
			g := t.reading(no)
			g.Driver, g.CUDA = m[2], m[3]
		}
	case strings.Contains(s, "MiB"), strings.Contains(s, "|"):
		t.row(s, no)
	case strings.Contains(s, "GPU:"):
		if m := listGPU.FindStringSubmatch(s); m != nil {
			t.listed, _ = strconv.Atoi(m[1])
			t.device(Device{Index: t.listed}, no)
		}
	case strings.Contains(s, "no processes are running"):
		if t.g != nil && len(t.g.Devices) > 0 {
			t.g.Devices[len(t.g.Devices)-1].Idle = true
		}
	case strings.Contains(s, "MB GPU memory"):
		if t.g != nil && len(t.g.Processes) >= maxRows {
			t.flush()
		} else if m := listProc.FindStringSubmatch(s); m != nil {
			pid, _ := strconv.ParseInt(m[1], 10, 64)
			mib, _ := strconv.ParseFloat(m[2], 64)
			p := Process{GPU: -1, GI: -1, CI: -1, PID: pid, Used: new(int64(math.Round(mib * (1 << 20))))}
			g := t.reading(no)
			if len(g.Devices) > 0 {
				p.GPU = t.listed
			}
			g.Processes = append(g.Processes, p)
		}
	}
}

func (t *smiTable) row(s string, no int64) {
	if g := t.g; g != nil && g.rows() >= maxRows {
		t.flush()
	}
	if m := smiProc.FindStringSubmatch(s); m != nil {
		p := Process{Type: m[5], Name: clip(m[6], 200), GI: index(m[2]), CI: index(m[3]),
			Used: mebibytes(strings.TrimSuffix(m[7], "MiB"))}
		p.GPU, _ = strconv.Atoi(m[1])
		p.PID, _ = strconv.ParseInt(m[4], 10, 64)
		g := t.reading(no)
		g.Processes = append(g.Processes, p)
	} else if m := smiMIG.FindStringSubmatch(s); m != nil {
		g := t.reading(no)
		g.Instances = append(g.Instances, Instance{GPU: index(m[1]), GI: index(m[2]), CI: index(m[3]),
			Index: index(m[4]), Used: mebibytes(m[5]), Total: mebibytes(m[6])})
	} else if m := smiDevice.FindStringSubmatch(s); m != nil {
		t.device(Device{Index: index(m[1]), Name: clip(m[2], 100), Bus: m[3]}, no)
	} else if m := smiMemory.FindStringSubmatch(s); m != nil && t.pending != nil {
		t.pending.Used, t.pending.Total = mebibytes(m[1]), mebibytes(m[2])
		t.pending = nil
	}
}

// device adds a device; one that is there already begins the next reading.
func (t *smiTable) device(d Device, no int64) {
	if t.g != nil && slices.ContainsFunc(t.g.Devices, func(o Device) bool { return o.Index == d.Index }) {
		t.flush()
	}
	g := t.reading(no)
	g.Devices = append(g.Devices, d)
	t.pending = &g.Devices[len(g.Devices)-1]
}

// maxRows bounds a reading; no machine has so many processes on its GPUs.
const maxRows = 1 << 14

func (t *smiTable) reading(no int64) *Reading {
	if t.g == nil {
		t.g = newReading(no)
	}
	return t.g
}

func (t *smiTable) flush() {
	t.r.emitReading(t.g)
	t.g, t.pending = nil, nil
}

// index reads a short number, -1 for N/A.
func index(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return -1
}

// mebibytes reads a figure of nvidia-smi, which prints whole MiB.
func mebibytes(s string) *int64 { return queryFigure(s, 1<<20) }
