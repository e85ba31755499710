package memstats

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot/internal/plain"
)

// header is the first line of a CSV file that is read here.
type header struct {
	comma byte
	cells []string
	query bool // of nvidia-smi --query-gpu or --query-compute-apps
	pairs bool // no header: each line is a counter's name and its value
}

// findHeader tells from the first line whether a text is CSV with counters; nil if not.
func findHeader(text []byte) *header {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	first := strings.TrimRight(string(line), "\r")
	for _, comma := range []byte{',', '\t', ';'} {
		if strings.IndexByte(first, comma) < 0 {
			continue
		}
		h := &header{comma: comma, cells: splitRow(first, comma)}
		known := 0
		for _, c := range h.cells {
			if m := recognize(c); m.role == roleStat || m.role == roleBase {
				known++
			}
			name, _, _ := strings.Cut(strings.ToLower(c), " ")
			if strings.HasPrefix(name, "memory.") || strings.HasPrefix(name, "used_gpu_memory") || name == "used_memory" {
				h.query = true
			}
		}
		if len(h.cells) == 2 && known <= 1 {
			// A pandas Series of memory_stats has a line for each counter, with or without a header.
			if h.pairs = known == 1 && number(&plain.Value{Kind: plain.String, Str: h.cells[1]}).Known; !h.pairs && known == 0 {
				_, rest, _ := strings.Cut(string(text), "\n")
				second, _, _ := strings.Cut(rest, "\n")
				cells := splitRow(strings.TrimRight(second, "\r"), comma)
				h.pairs = len(cells) == 2 && recognize(cells[0]).role == roleStat
			}
		}
		if known > 0 || h.query || h.pairs {
			return h
		}
	}
	return nil
}

// splitRow takes a row apart. Quotes are rare, and cells never hold line breaks.
func splitRow(line string, comma byte) []string {
	if !strings.Contains(line, `"`) {
		cells := strings.Split(line, string(rune(comma)))
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		return cells
	}
	c := csv.NewReader(strings.NewReader(line))
	c.Comma, c.LazyQuotes, c.FieldsPerRecord, c.TrimLeadingSpace = rune(comma), true, -1, true
	cells, err := c.Read()
	if err != nil {
		return nil
	}
	return cells
}

// read reads the file that the header is of.
func (h *header) read(r *reader, br *bufio.Reader) error {
	switch {
	case h.pairs:
		return r.pairs(br, h)
	case h.query:
		return r.query(br, h)
	}
	return r.rows(br, h)
}

// rows reads CSV with a column for each counter.
func (r *reader) rows(br *bufio.Reader, h *header) error {
	in := newLines(br)
	seen := false
	v := plain.Value{Kind: plain.Map, Keys: h.cells, Items: make([]plain.Value, len(h.cells))}
	for line := range in.all {
		if line = strings.TrimPrefix(line, "\ufeff"); strings.TrimSpace(line) == "" {
			continue
		}
		if !seen {
			seen = true
			continue
		}
		cells, f := h.row(line, in.line)
		if f != nil {
			if _, err := in.r.Peek(1); err != nil {
				r.info.Cut = f
			} else {
				r.skip(f)
			}
			continue
		}
		if len(cells) > 0 && cells[0] == h.cells[0] {
			continue // the header once more: the program was started again
		}
		for i, c := range cells {
			v.Items[i] = plain.Value{Kind: plain.String, Str: c}
		}
		if err := r.value(&v, in.line); err != nil {
			return err
		}
	}
	return in.fault()
}

// row takes a row apart that has as many cells as the header.
func (h *header) row(line string, no int64) ([]string, *Fault) {
	cells := splitRow(line, h.comma)
	if len(cells) == len(h.cells) {
		return cells, nil
	}
	return nil, &Fault{Line: no, Offset: -1, Msg: fmt.Sprintf("the row has %d cells, the header %d", len(cells),
		len(h.cells))}
}

// pairs reads CSV with a line for each counter of one sample.
func (r *reader) pairs(br *bufio.Reader, h *header) error {
	in := newLines(br)
	v := plain.Value{Kind: plain.Map}
	for line := range in.all {
		cells := splitRow(line, h.comma)
		if len(cells) == 2 && len(v.Keys) < 1<<16 && recognize(cells[0]).role != roleNone {
			v.Keys = append(v.Keys, cells[0])
			v.Items = append(v.Items, plain.Value{Kind: plain.String, Str: cells[1]})
		}
	}
	if err := in.fault(); err != nil {
		return err
	}
	return r.value(&v, 1)
}

// query reads what nvidia-smi --query-gpu or --query-compute-apps prints with --format=csv.
// With -l the rows repeat: each round is a reading.
func (r *reader) query(br *bufio.Reader, h *header) error {
	in := newLines(br)
	names, units := make([]string, len(h.cells)), make([]int64, len(h.cells))
	apps := false
	for i, c := range h.cells {
		name, unit, _ := strings.Cut(strings.ToLower(c), " ")
		names[i], units[i] = name, 1<<20
		if unit == "[kib]" {
			units[i] = 1 << 10
		}
		apps = apps || name == "pid"
	}
	var g *Reading
	seen := false
	for line := range in.all {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if !seen {
			seen = true
			continue
		}
		cells, f := h.row(line, in.line)
		if f != nil {
			r.skip(f)
			continue
		}
		d, p := Device{Index: -1}, Process{GPU: -1, GI: -1, CI: -1}
		stamp := ""
		for i, c := range cells {
			f := queryFigure(c, units[i])
			switch names[i] {
			case "index":
				d.Index = index(c)
			case "name", "gpu_name":
				d.Name = clip(c, 100)
			case "uuid", "gpu_uuid":
				d.UUID, p.UUID = clip(c, 60), clip(c, 60)
			case "pci.bus_id", "gpu_bus_id":
				d.Bus = clip(c, 40)
			case "memory.total":
				d.Total = f
			case "memory.used":
				d.Used = f
			case "memory.free":
				d.Free = f
			case "pid":
				p.PID, _ = strconv.ParseInt(c, 10, 64)
			case "process_name":
				p.Name = clip(c, 200)
			case "used_gpu_memory", "used_memory":
				p.Used = f
			case "timestamp":
				stamp = clip(c, 40)
			}
		}
		if g == nil || apps && stamp != g.Time || !apps && g.has(&d) || len(g.Processes) >= maxRows {
			if err := r.emitReading(g); err != nil {
				return err
			}
			g = newReading(in.line)
			g.Time = stamp
		}
		if apps {
			g.Processes = append(g.Processes, p)
		} else {
			g.Devices = append(g.Devices, d)
		}
	}
	if err := in.fault(); err != nil {
		return err
	}
	return r.emitReading(g)
}

// has reports whether a reading lists the device already.
func (r *Reading) has(d *Device) bool {
	return slices.ContainsFunc(r.Devices, func(o Device) bool {
		return o.Index == d.Index && o.UUID == d.UUID && o.Bus == d.Bus
	})
}

// queryFigure reads "16384 MiB", or "16384" of --format=nounits.
func queryFigure(s string, unit int64) *int64 {
	num, suffix, _ := strings.Cut(s, " ")
	switch suffix {
	case "KiB":
		unit = 1 << 10
	case "B":
		unit = 1
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return nil
	}
	return new(n * unit)
}
