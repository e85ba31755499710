package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// NVMLOptions choose how a reading is printed.
type NVMLOptions struct {
	Options
	// Only says that the reading is of one process and its children, so that the rest of what is
	// used belongs to others.
	Only bool
	// Findings come after the table.
	Findings []finding.Finding
	// History is what was used on each device before, by the device's place in the reading; it
	// becomes a sparkline.
	History [][]int64
}

// NVML prints a reading of the driver: a table of devices, and of the processes on each.
func NVML(w io.Writer, r *sidecar.Reading, o NVMLOptions) error {
	if o.Brief {
		return briefNVML(r, o.Findings).doc(o.Options).print(w)
	}
	d := newDoc(o.Options)
	reader := "NVML " + cmp.Or(r.NVML.NVML, chart.Unknown)
	if r.Reader != "" {
		reader = "read by " + r.Reader
	}
	d.line(dim.of(fmt.Sprintf("Driver %s, CUDA %s, %s; %s", cmp.Or(r.Driver, chart.Unknown),
		cmp.Or(r.CUDA, chart.Unknown), reader, units.Plural(len(r.Devices), "device"))))
	d.failed(r.Errors)
	for i := range r.Devices {
		var history []int64
		if i < len(o.History) {
			history = o.History[i]
		}
		d.gap()
		d.gpu(&r.Devices[i], i, history, o.Only)
	}
	for i := range o.Findings {
		f := &o.Findings[i]
		d.gap()
		d.heading(string(f.Severity), finding.Warn, f.Title, 0)
		d.finding(append(slices.Clone(f.Why), fmt.Sprintf("GPU %d; %s.", f.Device, f.Trust())), f.Next, 10, 8)
	}
	return d.print(w)
}

const inGPU = "        " // indents what is said of a device

func (d *doc) gpu(g *sidecar.GPU, at int, history []int64, only bool) {
	head := slices.DeleteFunc([]string{g.Name, g.Bus, g.UUID}, func(s string) bool { return s == "" })
	d.line(bold.of(pad(gpuName(g, at), 8)), plain.cut(strings.Join(head, ", ")))
	memory := memoryLine(g.Total, g.Reserved, g.Used, g.Free)
	if g.Shared {
		memory += ", shared with the CPU"
	}
	spark := ""
	if len(history) > 1 {
		spark = sparkline(history, number(g.Total), 28)
	}
	d.line(inGPU+pad(memory, 62), cyan.of(spark))
	broken, retired := number(g.ECCErrors), number(g.Retired)
	health := when(broken > 0, "; %s", units.Plural(broken, "uncorrected ECC error")) +
		when(retired > 0, "; %s, no longer used by the device", units.Plural(retired, "retired page"))
	if health != "" {
		d.line(inGPU + health[2:])
	}
	d.failed(g.Errors)
	rest := g.Processes
	for _, m := range g.Instances {
		var in []sidecar.GPUProcess
		rest = slices.DeleteFunc(slices.Clone(rest), func(q sidecar.GPUProcess) bool {
			same := q.GPUInstance != nil && m.GPUInstance != nil && *q.GPUInstance == *m.GPUInstance &&
				number(q.ComputeInstance) == number(m.ComputeInstance)
			if same {
				in = append(in, q)
			}
			return same
		})
		name := fmt.Sprintf("instance %s.%s", orElse(m.GPUInstance, "?"), orElse(m.ComputeInstance, "?"))
		d.line(inGPU, bold.of(name), "  ", chart.Clip(chart.Plain(m.Name+", "+m.UUID), d.width-26))
		d.line(inGPU + memoryLine(m.Total, m.Reserved, m.Used, m.Free))
		d.processes(in, m.Total, nil, "")
	}
	switch {
	case g.Processes == nil:
		d.line(inGPU + "processes unknown")
	case g.Instances != nil:
		d.processes(rest, g.Total, nil, "")
	default:
		others := "used by no listed process"
		switch {
		case only:
			others = "used by everything else"
		case g.Shared:
			others = "used by other programs, on the CPU as well"
		case g.Reserved == nil:
			others = "used by the driver, or by no listed process"
		case slices.ContainsFunc(rest, func(q sidecar.GPUProcess) bool { return q.Used == nil }):
			others = "used by processes whose usage the driver does not report"
		}
		d.processes(rest, g.Total, g.Used, others)
	}
	d.accounting(g.Accounting)
}

// processes adds a table, children under their parents, with a sum for each tree. What the
// processes leave of used comes last.
func (d *doc) processes(all []sidecar.GPUProcess, total, used *int64, others string) {
	left := number(used)
	if len(all) == 0 && left == 0 {
		return
	}
	cols := []column{{head: "pid", width: 10}, {head: "used", width: 11}, {width: 7}, {sep: " ", width: -10, spare: 1},
		{head: "kind", sep: "  ", width: -9, narrow: 5}, {head: "user", width: -10, cut: chart.Clip},
		{head: "program", sep: " ", cut: chart.Clip}}
	if len(all) == 0 { // no head
		cols = []column{{width: 10}, {width: 11}, {width: 7}, {sep: " ", width: -10}, {sep: "  "}}
	}
	t := d.table(bold, cols...)
	row := func(pid string, bytes *int64, what ...any) {
		share, part := "", plain.of("")
		if bytes != nil && number(total) != 0 {
			share, part = units.Percent(*bytes, *total), bar(*bytes, *total, 10)
		}
		t.row(append([]any{pid, sizeOr(bytes), share, part}, what...)...)
	}
	var print func(parent, depth int) (sum int64, n int)
	print = func(parent, depth int) (sum int64, n int) {
		for _, i := range order(all, parent) {
			q := &all[i]
			left -= number(q.Used)
			name := cmp.Or(q.Name, "?")
			switch q.State {
			case device.Gone:
				name = "no such process"
			case device.Zombie:
				name += " (ended, zombie)"
			}
			kind := strings.NewReplacer("compute", "C", "graphics", "G", "mps", "M").Replace(q.Kind)
			row(fmt.Sprint(q.PID), q.Used, kind, cmp.Or(q.User, "?"), strings.Repeat("  ", min(depth, 6))+name)
			below, children := print(i, depth+1)
			tree := number(q.Used) + below
			if children > 0 && depth == 0 {
				row("", &tree, fmt.Sprintf("%d and its %s", q.PID, units.Plural(children, "child", "children")))
			}
			sum, n = sum+tree, n+children+1
		}
		return sum, n
	}
	print(-1, 0)
	if left > 0 {
		row("", &left, others)
	}
}

// order lists the children of a process, -1 for those without a parent here, by size.
func order(all []sidecar.GPUProcess, parent int) []int {
	var out []int
	for i := range all {
		if device.Above(all, &all[i]) == parent {
			out = append(out, i)
		}
	}
	sorting.Stable(out, func(a, b int) int { return cmp.Compare(number(all[b].Used), number(all[a].Used)) })
	return out
}

// accounting lists the processes that used most by the driver's accounting.
func (d *doc) accounting(all []sidecar.Accounted) {
	if len(all) == 0 {
		return
	}
	const most = 5
	all = slices.Clone(all)
	sorting.Stable(all, func(a, b sidecar.Accounted) int {
		return cmp.Compare(number(b.MaxUsed), number(a.MaxUsed))
	})
	var parts []string
	for _, a := range all[:min(len(all), most)] {
		ended := a.Running != nil && !*a.Running
		parts = append(parts, fmt.Sprintf("%d %s", a.PID, sizeOr(a.MaxUsed))+when(ended, " (ended)"))
	}
	if len(all) > most {
		parts = append(parts, fmt.Sprintf("... %d in total", len(all)))
	}
	d.line(inGPU + "peak use, from the driver's accounting: " + strings.Join(parts, ", "))
}

// failed lists calls that failed.
func (d *doc) failed(all []sidecar.Failed) {
	for _, f := range all {
		d.paragraph(yellow.of("could not read "+f.What+": "+f.Why), 8, 2)
	}
}

func gpuName(g *sidecar.GPU, at int) string {
	if g.Index != nil {
		at = int(*g.Index)
	}
	return chart.DeviceName(at)
}

func memoryLine(total, reserved, used, free *int64) string {
	if total == nil && used == nil && free == nil {
		return "memory unknown"
	}
	var parts []string
	for i, n := range []*int64{reserved, used, free} {
		if n != nil {
			parts = append(parts, units.Bytes(*n)+[]string{" driver", " used", " free"}[i])
		}
	}
	if total == nil {
		return strings.Join(parts, ", ")
	}
	return units.Bytes(*total) + " = " + strings.Join(parts, " + ")
}

var sparks = []rune("▁▂▃▄▅▆▇█")

// sparkline draws the last n values, from nothing to limit or to the highest of them.
func sparkline(values []int64, limit int64, n int) string {
	values = values[max(len(values)-n, 0):]
	limit = max(limit, slices.Max(values), 1)
	return blocks(values, limit, 1)[0]
}

// NVMLLine is a reading in one line, for logs.
func NVMLLine(r *sidecar.Reading) string {
	line := time.Unix(0, r.Time).UTC().Format(time.RFC3339)
	for i := range r.Devices {
		g := &r.Devices[i]
		memory := "used unknown"
		if g.Used != nil {
			memory = units.Bytes(*g.Used) + " of " + sizeOr(g.Total)
		}
		line += "  " + gpuName(g, i) + ": " + memory
		for _, q := range g.Processes {
			line += fmt.Sprintf(", %d %s", q.PID, sizeOr(q.Used))
		}
	}
	return line
}

func sizeOr(n *int64) string { return orElse((*units.Size)(n), chart.Unknown) }

// orElse prints a figure, or what stands for one that is not known.
func orElse[N int64 | units.Size](n *N, unknown string) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprint(*n)
}

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
