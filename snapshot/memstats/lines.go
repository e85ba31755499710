package memstats

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot/internal/plain"
)

var colors = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// maxLine is where longer lines are split.
const maxLine = 1 << 20

// eachLine gives the lines of a text and their numbers, each without colors. Where a log holds a
// table as one quoted text, with \n for its line breaks, the rows of the table come one by one. It
// ends where reading fails.
func eachLine(r *bufio.Reader, use func(s string, line int64)) error {
	var err error
	for line := int64(1); err == nil || err == bufio.ErrBufferFull; line++ {
		var raw []byte
		if raw, err = r.ReadSlice('\n'); len(raw) == 0 {
			break
		}
		s := strings.TrimRight(string(raw), "\r\n")
		if bytes.IndexByte(raw, 0x1b) >= 0 {
			s = colors.ReplaceAllString(s, "")
		}
		rows := []string{s}
		if strings.Contains(s, `|\n`) {
			rows = strings.Split(s, `\n`)
		}
		for _, row := range rows {
			use(row, line)
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// tables reads a text or log line by line for every kind of table in it.
func (r *reader) tables(br *bufio.Reader) error {
	sum, smi := summary{r: r}, smiTable{r: r}
	err := eachLine(br, func(s string, line int64) {
		if (strings.ContainsAny(s, "|:") || strings.Contains(s, "process")) && !sum.line(s, line) {
			smi.line(s, line)
		}
	})
	if err == nil {
		sum.flush(true)
		smi.flush()
	}
	return err
}

// header is the first line of a CSV file that is read here.
type header struct {
	comma byte
	cells []string
	query bool // of nvidia-smi --query-gpu or --query-compute-apps
	pairs bool // no header: each line is a counter's name and its value
}

// findHeader tells from the first line whether a text is CSV with counters; nil if not.
func findHeader(text []byte) *header {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
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
			h.query = h.query || strings.HasPrefix(name, "memory.") || strings.HasPrefix(name, "used_gpu_memory") ||
				name == "used_memory"
		}
		if len(h.cells) == 2 && known <= 1 {
			// A pandas Series of memory_stats has a line for each counter, with or without a header.
			h.pairs = known == 1 && number(&plain.Value{Kind: plain.String, Str: h.cells[1]}).Known
			if known == 0 {
				second, _, _ := strings.Cut(string(rest), "\n")
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
		return h.readPairs(r, br)
	case h.query:
		return h.readQuery(r, br)
	}
	v := plain.Value{Kind: plain.Map, Keys: h.cells, Items: make([]plain.Value, len(h.cells))}
	return h.rows(r, br, func(cells []string, line int64) {
		if cells[0] == h.cells[0] {
			return // the header once more: the program was started again
		}
		for i, c := range cells {
			v.Items[i] = plain.Value{Kind: plain.String, Str: c}
		}
		r.value(&v, line)
	})
}

// rows gives the rows behind the header that have as many cells.
func (h *header) rows(r *reader, br *bufio.Reader, use func(cells []string, line int64)) error {
	seen := false
	return eachLine(br, func(s string, line int64) {
		if s = strings.TrimPrefix(s, "\ufeff"); strings.TrimSpace(s) == "" {
			return
		}
		if !seen {
			seen = true
			return
		}
		cells := splitRow(s, h.comma)
		if len(cells) == len(h.cells) {
			use(cells, line)
			return
		}
		f := &Fault{Line: line, Offset: -1,
			Msg: fmt.Sprintf("the row has %d cells, the header %d", len(cells), len(h.cells))}
		if _, err := br.Peek(1); err != nil && !h.query {
			r.info.Cut = f
		} else {
			r.skip(f)
		}
	})
}

// readPairs reads CSV with a line for each counter of one sample.
func (h *header) readPairs(r *reader, br *bufio.Reader) error {
	v := plain.Value{Kind: plain.Map}
	err := eachLine(br, func(s string, _ int64) {
		cells := splitRow(s, h.comma)
		if len(cells) == 2 && len(v.Keys) < 1<<16 && recognize(cells[0]).role != roleNone {
			v.Keys = append(v.Keys, cells[0])
			v.Items = append(v.Items, plain.Value{Kind: plain.String, Str: cells[1]})
		}
	})
	if err == nil {
		r.value(&v, 1)
	}
	return err
}

// queried is a row of nvidia-smi --query-gpu or --query-compute-apps.
type queried struct {
	d     Device
	p     Process
	stamp string
}

// queryColumns are what is read of such a row, by the name in the header. A bare figure counts units of
// so many bytes.
var queryColumns = map[string]func(q *queried, cell string, unit int64){
	"index":           func(q *queried, c string, _ int64) { q.d.Index = index(c) },
	"name":            func(q *queried, c string, _ int64) { q.d.Name = clip(c, 100) },
	"uuid":            func(q *queried, c string, _ int64) { q.d.UUID = clip(c, 60) },
	"pci.bus_id":      func(q *queried, c string, _ int64) { q.d.Bus = clip(c, 40) },
	"memory.total":    func(q *queried, c string, unit int64) { q.d.Total = queryFigure(c, unit) },
	"memory.used":     func(q *queried, c string, unit int64) { q.d.Used = queryFigure(c, unit) },
	"memory.free":     func(q *queried, c string, unit int64) { q.d.Free = queryFigure(c, unit) },
	"pid":             func(q *queried, c string, _ int64) { q.p.PID, _ = strconv.ParseInt(c, 10, 64) },
	"process_name":    func(q *queried, c string, _ int64) { q.p.Name = clip(c, 200) },
	"used_gpu_memory": func(q *queried, c string, unit int64) { q.p.Used = queryFigure(c, unit) },
	"timestamp":       func(q *queried, c string, _ int64) { q.stamp = clip(c, 40) },
}

// renamed are columns that have two names.
var renamed = map[string]string{
	"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "used_memory": "used_gpu_memory",
}

// readQuery reads what nvidia-smi --query-gpu or --query-compute-apps prints with --format=csv.
// With -l the rows repeat: each round is a reading.
func (h *header) readQuery(r *reader, br *bufio.Reader) error {
	t := smiTable{r: r}
	sets, units := make([]func(*queried, string, int64), len(h.cells)), make([]int64, len(h.cells))
	apps := false
	for i, c := range h.cells {
		name, unit, _ := strings.Cut(strings.ToLower(c), " ")
		sets[i], units[i] = queryColumns[cmp.Or(renamed[name], name)], 1<<20
		if unit == "[kib]" {
			units[i] = 1 << 10
		}
		apps = apps || name == "pid"
	}
	err := h.rows(r, br, func(cells []string, line int64) {
		q := queried{Device{Index: -1}, Process{GPU: -1, GI: -1, CI: -1}, ""}
		for i, c := range cells {
			if sets[i] != nil {
				sets[i](&q, c, units[i])
			}
		}
		if g := t.g; g == nil || apps && q.stamp != g.Time || !apps && g.has(&q.d) || len(g.Processes) >= maxRows {
			t.flush()
			t.reading(line).Time = q.stamp
		}
		if apps {
			q.p.UUID = q.d.UUID
			t.g.Processes = append(t.g.Processes, q.p)
		} else {
			t.g.Devices = append(t.g.Devices, q.d)
		}
	})
	if err == nil {
		t.flush()
	}
	return err
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
