package memstats

import (
	"math"
	"regexp"
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
	sumOOMs  = regexp.MustCompile(`OOMs:\s*(\d{1,18})\b`)
	sumRetry = regexp.MustCompile(`[mM]alloc retries:\s*(\d{1,18})\b`)
	sumRow   = regexp.MustCompile(`\|\s*(Allocated memory|Active memory|Requested memory|GPU reserved memory|` +
		`Non-releasable memory|Allocations|Active allocs|GPU reserved segments|Non-releasable allocs|` +
		`Oversize allocations|Oversize GPU segments|from large pool|from small pool)\s*\|(.*)$`)
	sumCell = regexp.MustCompile(`^\s*(\d{1,18})\s*([KMGTPE]i?B|B|K|M|G)?\s*$`)
)

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
	ooms, retries := sumOOMs.FindStringSubmatch(s), sumRetry.FindStringSubmatch(s)
	if ooms != nil {
		t.count("num_ooms", ooms[1])
	}
	if retries != nil {
		t.count("num_alloc_retries", retries[1])
	}
	if t.rows > 0 && strings.Contains(s, "|==========") {
		t.flush(false)
		return true
	}
	return ooms != nil || retries != nil || strings.Contains(s, "|----------") || strings.Contains(s, "| Cur Usage")
}

func (t *summary) open(no int64) {
	t.s, t.metric, t.rows = &Sample{Device: -1, Rank: -1, Line: no}, "", 0
}

func (t *summary) count(name, digits string) {
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		t.s.Set(name, n)
	}
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

// cell reads a number with a unit. torch divides and drops the rest (snapshot/SPEC.md 6.3); its units of bytes are
// powers of 1024 in all releases, those of counts powers of 1000.
func cell(digits, unit string) Figure {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return Figure{}
	}
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
