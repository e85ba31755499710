package text

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/sidecar"
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
	p := newPrinter(w, o.Options)
	p.line(p.paint(dim, fmt.Sprintf("Driver %s, CUDA %s, NVML %s; %s", orUnknown(r.Driver), orUnknown(r.CUDA), orUnknown(r.NVML.NVML), units.Plural(len(r.Devices), "device"))))
	p.failed(r.Errors)
	for i := range r.Devices {
		var history []int64
		if i < len(o.History) {
			history = o.History[i]
		}
		p.line("")
		p.gpu(&r.Devices[i], i, history, o.Only)
	}
	for i := range o.Findings {
		p.line("")
		p.finding(&o.Findings[i])
	}
	return p.w.Flush()
}

func (p *printer) gpu(g *sidecar.GPU, at int, history []int64, only bool) {
	head := plain([]string{g.Name, g.Bus, g.UUID})
	p.line(p.paint(bold, pad(gpuName(g, at), 8)) + chart.Clip(strings.Join(slices.DeleteFunc(head, func(s string) bool { return s == "" }), ", "), p.width-8))
	line := memoryLine(g.Total, g.Reserved, g.Used, g.Free)
	if len(history) > 1 {
		line = pad(line, 62) + p.paint(cyan, sparkline(history, number(g.Total), 28))
	}
	p.line(pad("", 8) + line)
	var health []string
	if number(g.ECCErrors) > 0 {
		health = append(health, units.Plural(*g.ECCErrors, "uncorrected ECC error"))
	}
	if number(g.Retired) > 0 {
		health = append(health, units.Plural(*g.Retired, "retired page")+", no longer used by the device")
	}
	if len(health) > 0 {
		p.line(pad("", 8) + strings.Join(health, "; "))
	}
	p.failed(g.Errors)
	rest := g.Processes
	for _, m := range g.Instances {
		var in []sidecar.GPUProcess
		same := func(q sidecar.GPUProcess) bool {
			return q.GPUInstance != nil && m.GPUInstance != nil && *q.GPUInstance == *m.GPUInstance && number(q.ComputeInstance) == number(m.ComputeInstance)
		}
		for _, q := range rest {
			if same(q) {
				in = append(in, q)
			}
		}
		rest = slices.DeleteFunc(slices.Clone(rest), same)
		p.line(pad("", 8) + p.paint(bold, fmt.Sprintf("instance %s.%s", unknownOr(m.GPUInstance), unknownOr(m.ComputeInstance))) +
			"  " + chart.Clip(chart.Plain(m.Name+", "+m.UUID), p.width-26))
		p.line(pad("", 8) + memoryLine(m.Total, m.Reserved, m.Used, m.Free))
		p.processes(in, m.Total, nil, "")
	}
	switch {
	case g.Processes == nil:
		p.line(pad("", 8) + "processes unknown")
	case g.Instances != nil:
		p.processes(rest, g.Total, nil, "")
	default:
		others := "used by no listed process"
		switch {
		case only:
			others = "used by everything else"
		case g.Reserved == nil:
			others = "used by the driver, or by no listed process"
		case slices.ContainsFunc(rest, func(q sidecar.GPUProcess) bool { return q.Used == nil }):
			others = "used by processes whose usage the driver does not report"
		}
		p.processes(rest, g.Total, g.Used, others)
	}
	p.accounting(g.Accounting)
}

// processes prints a table, children under their parents, with a sum for each tree. What the
// processes leave of used comes last.
func (p *printer) processes(all []sidecar.GPUProcess, total, used *int64, others string) {
	if len(all) == 0 && number(used) == 0 {
		return
	}
	if len(all) > 0 {
		p.line(p.paint(bold, right("pid", 10)+right("used", 11)+pad("", 18)+"  "+pad("kind", 9)+pad("user", 11)+"program"))
	}
	left := number(used)
	var print func(parent, depth int) (sum int64, n int)
	print = func(parent, depth int) (sum int64, n int) {
		for _, i := range order(all, parent) {
			q := &all[i]
			left -= number(q.Used)
			p.process(q, total, depth)
			below, children := print(i, depth+1)
			tree := number(q.Used) + below
			if children > 0 && depth == 0 {
				p.line(right("", 10) + right(units.Bytes(tree), 11) + share(p, tree, total) + fmt.Sprintf("  %d and its %s", q.PID, units.Plural(children, "child", "children")))
			}
			sum, n = sum+tree, n+children+1
		}
		return sum, n
	}
	print(-1, 0)
	if left > 0 {
		p.line(right("", 10) + right(units.Bytes(left), 11) + share(p, left, total) + "  " + others)
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
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(number(all[b].Used), number(all[a].Used)) })
	return out
}

func (p *printer) process(q *sidecar.GPUProcess, total *int64, depth int) {
	part := pad("", 18)
	if q.Used != nil {
		part = share(p, *q.Used, total)
	}
	name := cmp.Or(chart.Plain(q.Name), "?")
	switch q.State {
	case device.Gone:
		name = "no such process"
	case device.Zombie:
		name += " (ended, zombie)"
	}
	indent := strings.Repeat("  ", min(depth, 6))
	user := cmp.Or(chart.Plain(q.User), "?")
	kind := strings.NewReplacer("compute", "C", "graphics", "G", "mps", "M").Replace(q.Kind)
	p.line(right(fmt.Sprint(q.PID), 10) + right(sizeOr(q.Used), 11) + part + "  " + pad(kind, 9) + pad(chart.Clip(user, 10), 11) + chart.Clip(indent+name, p.width-61))
}

func share(p *printer, bytes int64, total *int64) string {
	if number(total) == 0 {
		return pad("", 18)
	}
	return right(units.Percent(bytes, *total), 7) + " " + p.paint(cyan, bar(bytes, *total, 10))
}

func (p *printer) accounting(all []sidecar.Accounted) {
	if len(all) == 0 {
		return
	}
	const most = 5
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b sidecar.Accounted) int { return cmp.Compare(number(b.MaxUsed), number(a.MaxUsed)) })
	var parts []string
	for _, a := range all[:min(len(all), most)] {
		s := fmt.Sprintf("%d %s", a.PID, sizeOr(a.MaxUsed))
		if a.Running != nil && !*a.Running {
			s += " (ended)"
		}
		parts = append(parts, s)
	}
	if len(all) > most {
		parts = append(parts, fmt.Sprintf("... %d in total", len(all)))
	}
	p.line(pad("", 8) + "peak use, from the driver's accounting: " + strings.Join(parts, ", "))
}

// failed lists calls that failed.
func (p *printer) failed(all []sidecar.Failed) {
	for _, f := range all {
		for i, l := range wrap(chart.Plain("could not read "+f.What+": "+f.Why), p.width-10) {
			if i > 0 {
				l = "  " + l
			}
			p.line(pad("", 8) + p.paint(yellow, l))
		}
	}
}

func (p *printer) finding(f *finding.Finding) {
	label := strings.ToUpper(string(f.Severity))
	p.headline(label, finding.Warn, chart.Plain(f.Title), math.MaxInt)
	trust := fmt.Sprintf("GPU %d; %s confidence", f.Device, f.Confidence)
	if f.Heuristic {
		trust += ", heuristic"
	}
	p.section("Why", plain(append(slices.Clone(f.Why), trust+".")), 10)
	p.section("Next", plain(numbered(f.Next)), 8)
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
	parts := []string{}
	for _, part := range []struct {
		n    *int64
		name string
	}{{reserved, "driver"}, {used, "used"}, {free, "free"}} {
		if part.n != nil {
			parts = append(parts, units.Bytes(*part.n)+" "+part.name)
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
	var b strings.Builder
	for _, v := range values {
		at := int(float64(max(v, 0)) / float64(limit) * float64(len(sparks)))
		b.WriteRune(sparks[min(at, len(sparks)-1)])
	}
	return b.String()
}

// NVMLLine is a reading in one line, for logs.
func NVMLLine(r *sidecar.Reading) string {
	var b strings.Builder
	b.WriteString(time.Unix(0, r.Time).UTC().Format(time.RFC3339))
	for i := range r.Devices {
		g := &r.Devices[i]
		fmt.Fprintf(&b, "  %s:", gpuName(g, i))
		if g.Used == nil {
			b.WriteString(" used unknown")
		} else {
			fmt.Fprintf(&b, " %s of %s", units.Bytes(*g.Used), sizeOr(g.Total))
		}
		for _, q := range g.Processes {
			fmt.Fprintf(&b, ", %d %s", q.PID, sizeOr(q.Used))
		}
	}
	return b.String()
}

func sizeOr(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return units.Bytes(*n)
}

func unknownOr(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func orUnknown(s string) string { return chart.Plain(cmp.Or(s, "unknown")) }

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
