package memstats

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/snapana/snapana/snapshot/internal/plain"
)

// role says what a key of a record is for.
type role uint8

const (
	roleNone role = iota
	roleStat      // a counter, name is its own
	roleBase      // a counter in the nested form: figures lie deeper, by pool and figure
	roleStep
	roleEpoch
	roleDevice
	roleRank
	roleTime
	roleLabel
	rolePair // what mem_get_info returned
)

// meaning is what a key was recognized as.
type meaning struct {
	role   role
	name   string
	device int // that the key itself names, -1 none
	rank   int
}

var (
	pooled  = regexp.MustCompile(`^([a-z][a-z_]*)[._](all|small_pool|large_pool)[._](current|peak|allocated|freed)$`)
	single  = regexp.MustCompile(`^([a-z][a-z_]*)\.(current|peak|allocated|freed|total|max|min|count|avg)$`)
	private = regexp.MustCompile(`^reserved_bytes_by_private_pools\.\d+_\d+\.(all|small_pool|large_pool)\.` +
		`(current|peak|allocated|freed)$`)
	ordinal = regexp.MustCompile(`(?:^|[^a-z])(?:cuda|gpu|device|dev)[:_ #-]?(\d{1,4})(?:$|[^0-9])`)
	ranked  = regexp.MustCompile(`(?:^|[^a-z])rank[:_ #-]?(\d{1,7})(?:$|[^0-9])`)
)

// scalars have neither pools nor figures (snapshot/SPEC.md 6.1, 6.2). The others are what people call the results
// of memory_allocated() and the like, in bytes.
var scalars = map[string]string{
	"num_alloc_retries": "", "num_ooms": "", "max_split_size": "", "num_sync_all_streams": "",
	"num_device_alloc": "", "num_device_free": "", "num_oom_rejections": "",
	"num_host_alloc": "host.num_host_alloc", "num_host_free": "host.num_host_free",

	"memory_allocated": "allocated_bytes.all.current", "memory_allocated_bytes": "allocated_bytes.all.current",
	"max_memory_allocated": "allocated_bytes.all.peak", "max_memory_allocated_bytes": "allocated_bytes.all.peak",
	"memory_reserved": "reserved_bytes.all.current", "memory_reserved_bytes": "reserved_bytes.all.current",
	"max_memory_reserved": "reserved_bytes.all.peak", "max_memory_reserved_bytes": "reserved_bytes.all.peak",
	"memory_cached": "reserved_bytes.all.current", "max_memory_cached": "reserved_bytes.all.peak",
	"device.free": "device.free", "device.total": "device.total", "device_free": "device.free",
	"device_total": "device.total",
	"mem_free":     "device.free", "mem_total": "device.total",
}

// bases are the counters of the nested forms. As plain numbers, those of bytes are current ones.
var bases = map[string]bool{
	"allocation": true, "segment": true, "active": true, "inactive_split": true,
	"allocated_bytes": true, "reserved_bytes": true, "active_bytes": true, "inactive_split_bytes": true,
	"requested_bytes":      true,
	"oversize_allocations": true, "oversize_segments": true, "reserved_bytes_by_private_pools": true,
	"allocations": true, "active_requests": true, "host_alloc_time": true, "host_free_time": true,
}

// moments are keys that say when and where a sample was taken.
var moments = map[string]role{
	"step": roleStep, "global_step": roleStep, "_step": roleStep, "iteration": roleStep, "iter": roleStep,
	"batch":     roleStep,
	"batch_idx": roleStep, "it": roleStep, "update": roleStep,
	"epoch": roleEpoch, "current_epoch": roleEpoch, "epoch_idx": roleEpoch,
	"device": roleDevice, "device_id": roleDevice, "device_index": roleDevice, "gpu": roleDevice, "gpu_id": roleDevice,
	"rank": roleRank, "global_rank": roleRank, "process_index": roleRank,
	"time": roleTime, "timestamp": roleTime, "_timestamp": roleTime, "ts": roleTime, "wall_time": roleTime,
	"datetime": roleTime,
	"phase":    roleLabel, "stage": roleLabel, "split": roleLabel, "mode": roleLabel, "label": roleLabel,
	"tag": roleLabel, "event": roleLabel,
	"mem_get_info": rolePair,
}

// keys recognizes keys and remembers what it found: files repeat them.
type keys map[string]meaning

func (k keys) of(key string) meaning {
	if m, ok := k[key]; ok {
		return m
	}
	m := recognize(key)
	if len(k) < 1<<16 && len(key) < 256 {
		k[key] = m
	}
	return m
}

// recognize reads a key such as "allocated_bytes.all.current", "gpu0/allocated_bytes.all.peak",
// "stats.num_ooms", "host.active_bytes.peak" or "Step".
func recognize(key string) meaning {
	m := meaning{device: -1, rank: -1}
	s := strings.ToLower(strings.TrimSpace(key))
	if len(s) > 200 {
		return m
	}
	if r, ok := moments[s]; ok {
		m.role = r
		return m
	}
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '/' || r == '|' })
	for n := min(len(parts), 4); n >= 1; n-- {
		at := len(parts) - n
		name, ok := counter(strings.Join(parts[at:], "."), at > 0 && parts[at-1] == "host")
		if !ok {
			continue
		}
		m.role, m.name = roleStat, name
		prefix := strings.Join(parts[:at], "/")
		m.device, m.rank = inText(ordinal, prefix), inText(ranked, prefix)
		return m
	}
	if bases[s] {
		m.role, m.name = roleBase, s
	}
	return m
}

// counter gives the flat name of a counter.
func counter(s string, host bool) (string, bool) {
	if p := pooled.FindStringSubmatch(s); p != nil {
		return p[1] + "." + p[2] + "." + p[3], true
	}
	if private.MatchString(s) {
		return s, true
	}
	if name, ok := scalars[s]; ok {
		if name == "" {
			name = s
		}
		return name, true
	}
	if p := single.FindStringSubmatch(s); p != nil && (bases[p[1]] || host) {
		if strings.HasPrefix(p[1], "oversize_") {
			return s, p[2] == "current" || p[2] == "peak" || p[2] == "allocated" || p[2] == "freed"
		}
		return "host." + s, true
	}
	return "", false
}

// inText finds the number of a device or rank in a text, -1 for none.
func inText(re *regexp.Regexp, s string) int {
	if m := re.FindStringSubmatch(strings.ToLower(s)); m != nil {
		return index(m[1])
	}
	return -1
}

// scalar is a text that says a number as that number, and any other value as it is.
func scalar(v *plain.Value) plain.Value {
	if v.Kind == plain.String {
		s := strings.TrimSpace(v.Str)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return plain.Value{Kind: plain.Int, Int: n}
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return plain.Value{Kind: plain.Float, Float: f}
		}
	}
	return *v
}

// figure reads a counter's value. odd says that it cannot be one.
func figure(name string, v *plain.Value) (f Figure, odd bool) {
	switch n := scalar(v); n.Kind {
	case plain.Nil:
		return f, false
	case plain.Int:
		f = Figure{n.Int, 1}
	case plain.Float:
		switch r := math.Round(n.Float); {
		case math.IsNaN(n.Float):
			return f, false // how tables say that a cell is empty
		case math.Abs(r) > 1<<62:
			return f, true
		case math.Abs(r) >= 1<<53: // a float holds no more digits
			f = Figure{int64(r), 1 << (math.Ilogb(r) - 51)}
		default:
			f = Figure{int64(r), 1}
		}
	default:
		empty := []string{"", "null", "none", "-", "n/a"}
		return f, n.Kind != plain.String || !slices.Contains(empty, strings.ToLower(strings.TrimSpace(n.Str)))
	}
	if f.Value < 0 && name != "max_split_size" {
		return Figure{}, true
	}
	return f, false
}

// number reads a step, an epoch or a rank.
func number(v *plain.Value) Number {
	switch n := scalar(v); {
	case n.Kind == plain.Int:
		return Number{n.Int, true}
	case n.Kind == plain.Float && n.Float == math.Trunc(n.Float) && math.Abs(n.Float) < 1<<53:
		return Number{int64(n.Float), true}
	}
	return Number{}
}

// small reads the number of a device or rank, -1 for none.
func small(v *plain.Value) int {
	if n := number(v); n.Known && n.N >= 0 && n.N < 1<<20 {
		return int(n.N)
	}
	if v.Kind == plain.String {
		return inText(ordinal, v.Str)
	}
	return -1
}

var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
	"2006-01-02 15:04:05.999999999Z07:00", "2006/01/02 15:04:05.999999999"}

// moment reads a time in microseconds, 0 for none. The unit is told by the size: seconds since
// 1970 have 10 digits in this century.
func moment(v *plain.Value) int64 {
	if v.Kind == plain.String {
		for _, l := range layouts {
			if t, err := time.Parse(l, strings.TrimSpace(v.Str)); err == nil {
				return t.UnixMicro()
			}
		}
	}
	n := scalar(v)
	f := n.Float
	if n.Kind == plain.Int {
		f = float64(n.Int)
	}
	switch {
	case !(f > 0 && f < 1e19):
		return 0
	case f > 1e17: // nanoseconds
		return int64(f / 1e3)
	case f > 1e14: // microseconds
		return int64(f)
	case f > 1e11: // milliseconds
		return int64(f * 1e3)
	}
	return int64(f * 1e6)
}
