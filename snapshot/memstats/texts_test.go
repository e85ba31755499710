package memstats_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/snapshot/memstats"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// in gives bytes as MiB, 0 for unknown ones.
func in(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n / mib
}

// device and process write the parts of a reading in one line.
func device(d memstats.Device) string {
	return fmt.Sprintf("%d %s %s %d/%d MiB", d.Index, d.Name, d.Bus, in(d.Used), in(d.Total))
}

func process(p memstats.Process) string {
	return fmt.Sprintf("%d %d/%d %d %s %s %d MiB", p.GPU, p.GI, p.CI, p.PID, p.Type, p.Name, in(p.Used))
}

// TestRealTexts reads texts from the wild; the values were read from them by eye.
func TestRealTexts(t *testing.T) {
	type figures map[string]memstats.Figure
	for name, c := range map[string]struct {
		device       int
		stats        int // how many figures in all
		cut          bool
		want         figures
		driver, cuda string
		devices      []string
		instances    []memstats.Instance
		processes    []string
	}{
		"comfyui_cudaMallocAsync_torch2.8_prefixed.txt": {stats: 8,
			want: figures{ // all others are zeros that nobody counted
				"allocated_bytes.all.current": {3116 * mib, mib}, "allocated_bytes.all.peak": {21865 * mib, mib},
				"active_bytes.all.current": {3116 * mib, mib}, "reserved_bytes.all.current": {3424 * mib, mib},
				"reserved_bytes.all.peak": {22208 * mib, mib},
				"num_ooms":                {0, 1}, "num_alloc_retries": {0, 1}, "allocation.all.current": {},
				"requested_bytes.all.current":       {},
				"reserved_bytes.large_pool.current": {},
			}},
		"fairseq_2442_torch1.5_TRUNCATED.txt": {stats: 14, cut: true, want: figures{
			"num_ooms": {1, 1}, "num_alloc_retries": {6, 1},
			"allocated_bytes.all.current": {26377 * mib, mib}, "allocated_bytes.all.peak": {26988 * mib, mib},
			"allocated_bytes.all.allocated": {767743 * gib, gib}, "allocated_bytes.all.freed": {767717 * gib, gib},
			"allocated_bytes.small_pool.current": {395 * mib, mib},
			"allocated_bytes.large_pool.freed":   {738542 * gib, gib},
			"reserved_bytes.all.current":         {},
		}},
		"gravitorch_docstring_torch1x.txt": {stats: 106, want: figures{
			"allocated_bytes.all.current": {512, 1}, "allocated_bytes.small_pool.peak": {3584, 1},
			"reserved_bytes.all.current":         {2048 << 10, 1 << 10},
			"inactive_split_bytes.all.allocated": {2058 << 10, 1 << 10}, "inactive_split_bytes.all.freed": {11264, 1},
			"active.all.peak":              {7, 1},
			"segment.small_pool.allocated": {1, 1}, "oversize_segments.freed": {0, 1},
			"requested_bytes.all.current": {},
		}},
		"minicpm_zerollama_torch2x.txt": {stats: 118, want: figures{
			"allocated_bytes.all.current": {5624 * mib, mib}, "requested_bytes.large_pool.allocated": {7310 * mib, mib},
			"reserved_bytes.all.freed":            {190464 << 10, 1 << 10},
			"reserved_bytes.small_pool.allocated": {250 * mib, mib},
			"inactive_split_bytes.all.current":    {60505 << 10, 1 << 10},
			"inactive_split_bytes.all.freed":      {20000 * mib, mib},
			"allocation.all.allocated":            {487593, 1}, "segment.all.peak": {407, 1},
			"inactive_split.small_pool.freed": {220942, 1}, "num_ooms": {0, 1},
		}},
		"movie_lm_abbreviated_escaped.txt": {stats: 46, want: figures{ // torch's abbreviated form: no pools
			"num_ooms": {2, 1}, "num_alloc_retries": {2, 1}, "allocated_bytes.all.current": {25828 * mib, mib},
			"allocated_bytes.all.freed": {0, 1},
			"requested_bytes.all.peak":  {25756 * mib, mib}, "reserved_bytes.all.current": {30662 * mib, mib},
			"inactive_split.all.allocated": {1423, 1},
			"segment.all.current":          {1542, 1}, "allocated_bytes.large_pool.current": {},
		}},
		"pytorch_35901_torch1.4_TRUNCATED.txt": {stats: 30, cut: true, want: figures{
			"num_ooms": {1, 1}, "num_alloc_retries": {1, 1}, "active_bytes.large_pool.freed": {88215 * mib, mib},
			"reserved_bytes.all.current":   {12420 * mib, mib},
			"reserved_bytes.all.allocated": {16924 * mib, mib}, "reserved_bytes.all.freed": {4504 * mib, mib},
			"reserved_bytes.large_pool.current": {},
		}},

		"dcgm_time_slicing_5procs.txt": {devices: []string{"0 NVIDIA GeForce ... 00000000:01:00.0 4297/8192 MiB"},
			processes: []string{
				"0 -1/-1 1776886 C /usr/bin/dcgmproftester11 764 MiB",
				"0 -1/-1 1776921 C /usr/bin/dcgmproftester11 764 MiB",
				"0 -1/-1 1776937 C /usr/bin/dcgmproftester11 764 MiB",
				"0 -1/-1 1777068 C /usr/bin/dcgmproftester11 764 MiB",
				"0 -1/-1 1777079 C /usr/bin/dcgmproftester11 764 MiB",
			}},
		"desktop_graphics_procs_elided_names.txt": {devices: []string{"0 NVIDIA GeForce ... 00000000:0A:00.0 " +
			"388/12288 MiB"}, processes: []string{
			"0 -1/-1 1995 G /usr/lib/xorg/Xorg 202 MiB", "0 -1/-1 2355 G /usr/bin/gnome-shell 29 MiB",
			"0 -1/-1 3109 G ...944559455204059567,131072 122 MiB", "0 -1/-1 4142 G ...AAAAAAAAA= --shared-files 30 MiB",
		}},
		"mig_devices_nvitop8.txt": {instances: []memstats.Instance{
			{GPU: 1, GI: 3, CI: 0, Index: 0, Used: new(int64(14366 * mib)), Total: new(int64(19968 * mib))},
			{GPU: 1, GI: 5, CI: 0, Index: 1, Used: new(int64(9880 * mib)), Total: new(int64(19968 * mib))},
			{GPU: 1, GI: 6, CI: 0, Index: 2, Used: new(int64(13 * mib)), Total: new(int64(19968 * mib))},
		}},
		"rlinf_255_two4090_new_layout_head.txt": {driver: "550.163.01", cuda: "12.4", devices: []string{
			"0 NVIDIA GeForce RTX 4090 00000000:4E:00.0 507/24564 MiB",
			"1 NVIDIA GeForce RTX 4090 00000000:4F:00.0 459/24564 MiB",
		}},
		"timesnet_4procs.txt": {processes: []string{
			"0 -1/-1 1763 G /usr/lib/xorg/Xorg 46 MiB", "0 -1/-1 728072 C long_term_forecast 1991 MiB",
			"0 -1/-1 728074 C long_term_forecast 2089 MiB",
			"0 -1/-1 728076 C long_term_forecast 2221 MiB", "0 -1/-1 728077 C long_term_forecast 2489 MiB",
		}},
		"titanx_1proc.txt": {driver: "470.82.01", cuda: "11.4",
			devices:   []string{"0 NVIDIA TITAN X ... 00000000:19:00.0 9637/12192 MiB"},
			processes: []string{"0 -1/-1 772207 C python 9635 MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("../../../shared/real/text", name)
			data, err := os.ReadFile(path)
			if os.IsNotExist(err) {
				t.Skip(err)
			}
			samples, readings, _, err := collect(t, string(data))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == nil {
				if len(samples) != 0 || len(readings) != 1 {
					t.Fatalf("%d samples, %d readings", len(samples), len(readings))
				}
				r := readings[0]
				var devices, processes []string
				for _, d := range r.Devices {
					devices = append(devices, device(d))
				}
				for _, p := range r.Processes {
					processes = append(processes, process(p))
				}
				if r.Driver != c.driver || r.CUDA != c.cuda || !slices.Equal(devices, c.devices) ||
					!slices.Equal(processes, c.processes) ||
					!slices.EqualFunc(r.Instances, c.instances,
						func(a, b memstats.Instance) bool { return reflect.DeepEqual(a, b) }) {
					t.Errorf("%+v\n%q\n%q", r, devices, processes)
				}
				return
			}
			if len(samples) != 1 || len(readings) != 0 {
				t.Fatalf("%d samples, %d readings", len(samples), len(readings))
			}
			s := &samples[0]
			if s.Device != 0 || s.Cut != c.cut || len(s.Stats) != c.stats {
				t.Errorf("device %d, cut %v, %d figures", s.Device, s.Cut, len(s.Stats))
			}
			for name, f := range c.want {
				if got := s.Get(name); got != f {
					t.Errorf("%s is %v, want %v", name, got, f)
				}
			}
		})
	}
}

// TestAllTexts holds that no text from the wild fails without a reason, so that new ones are looked at.
func TestAllTexts(t *testing.T) {
	paths, _ := filepath.Glob("../../../shared/real/text/*")
	if len(paths) == 0 {
		t.Skip("no texts")
	}
	for _, path := range paths {
		if _, err := memstats.Open(t.Context(), path, nil, memstats.Options{}, memstats.Handler{}); err != nil {
			t.Error(err)
		}
	}
}

// TestSummaryAgainstStats holds the memory_summary texts of the corpus, at the precision that they
// have, against the counters of the same moment.
func TestSummaryAgainstStats(t *testing.T) {
	dirs, _ := filepath.Glob("../../../shared/corpus/*")
	compared := 0
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "memory_summary.txt"))
		truth, err2 := os.ReadFile(filepath.Join(dir, "truth.json"))
		if err != nil || err2 != nil {
			continue
		}
		got, _, _, err := collect(t, string(text))
		if err != nil {
			t.Fatal(err)
		}
		want, _, _, err := collect(t, string(truth))
		if err != nil {
			t.Fatal(err)
		}
		s := &got[0] // memory_summary() is of the current device, 0
		for _, w := range want[0].Stats {
			f := s.Get(w.Name)
			if !f.Known() {
				continue
			}
			compared++
			if w.Value < f.Value || w.Value >= f.Value+f.Step {
				t.Errorf("%s: %s is %d, the text has %v", filepath.Base(dir), w.Name, w.Value, f)
			}
		}
	}
	if len(dirs) > 0 && compared < 200 {
		t.Errorf("only %d figures compared", compared)
	}
}

// TestTables reads tables that logs have mangled, and texts of other tools.
func TestTables(t *testing.T) {
	const table = "|===========================================================================|\n" +
		"|                  PyTorch CUDA memory summary, device ID 1                 |\n" +
		"|---------------------------------------------------------------------------|\n" +
		"|            CUDA OOMs: 0            |        cudaMalloc retries: 3         |\n" +
		"|===========================================================================|\n" +
		"|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n" +
		"|---------------------------------------------------------------------------|\n" +
		"| Allocated memory      |     512 B  |    3584 B  |   11776 KiB|   11264 B  |\n" +
		"|       from small pool |     512 B  |    3584 B  |   11776 KiB|   11264 B  |\n" +
		"|---------------------------------------------------------------------------|\n" +
		"| Allocations           |    1234 K  |     750 M  |      22    |      21    |\n" +
		"|===========================================================================|\n"
	const words1 = "device=1 allocated_bytes.all.allocated=12058624~1024 allocated_bytes.all.current=512 " +
		"allocated_bytes.all.freed=11264 allocated_bytes.all.peak=3584 " +
		"allocated_bytes.small_pool.allocated=12058624~1024 allocated_bytes.small_pool.current=512 " +
		"allocated_bytes.small_pool.freed=11264 allocated_bytes.small_pool.peak=3584 " +
		"allocation.all.allocated=22 allocation.all.current=1234000~1000 allocation.all.freed=21 " +
		"allocation.all.peak=750000000~1000000 num_alloc_retries=3 num_ooms=0"
	prefixed := func(p, s string) string { return p + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+p) }
	headless := strings.SplitN(table, "\n", 8)
	for name, c := range map[string]struct {
		data string
		want []string
	}{
		"plain":    {table, []string{words1}},
		"CRLF":     {strings.ReplaceAll(table, "\n", "\r\n"), []string{words1}},
		"colors":   {"\x1b[32m" + strings.ReplaceAll(table, "|\n", "|\x1b[0m\n"), []string{words1}},
		"prefixes": {prefixed("[rank1]: 2026-11-21 10:00:00,123 INFO ", table), []string{words1}},
		"escaped":  {`{"msg": "` + strings.ReplaceAll(table, "\n", `\n`) + `"}` + "\n# log", nil},
		"two": {"step 1\n" + table + "\nstep 2\n" + strings.Replace(table, "ID 1", "ID 0", 1),
			[]string{words1, strings.Replace(words1, "device=1", "device=0", 1)}},
		"no head": {headless[7], []string{strings.NewReplacer("device=1 ", "", " num_alloc_retries=3 num_ooms=0",
			"").Replace(words1)}},
		"cut in a cell": {"log\n" + table[:strings.Index(table, "   3584 B  |   11776 KiB|")], []string{
			"device=1 allocated_bytes.all.current=512 num_alloc_retries=3 num_ooms=0 cut"}},
	} {
		t.Run(name, func(t *testing.T) {
			samples, _, _, err := collect(t, c.data)
			if c.want == nil {
				if err == nil {
					t.Errorf("read %d samples from a quoted text in a record", len(samples))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range samples {
				got = append(got, words(&samples[i]))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestReadings reads what other calls and queries print.
func TestReadings(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want []string // devices and processes of all readings
	}{
		"list_gpu_processes": {"GPU:1\nprocess     728072 uses     1991.500 MB GPU memory\nGPU:2\nno processes are " +
			"running\nGPU:1\nno processes are running\n",
			[]string{"1   0/0 MiB", "2   0/0 MiB idle", "1 -1/-1 728072   1991 MiB", "-", "1   0/0 MiB idle", "-"}},
		"old table": {"| NVIDIA-SMI 418.87  Driver Version: 418.87  CUDA Version: 10.1 |\n|    0      1234      C  " +
			" python    " +
			"305MiB |\n|    1      1235    C+G   /usr/bin/x y   N/A |\n",
			[]string{"0 -1/-1 1234 C python 305 MiB", "1 -1/-1 1235 C+G /usr/bin/x y 0 MiB", "-"}},
		"query": {"index, name, memory.total [MiB], memory.used [MiB]\n0, NVIDIA A100, 40960 MiB, 12 MiB\n1, " +
			"NVIDIA A100, " +
			"40960 MiB, [N/A]\n0, NVIDIA A100, 40960 MiB, 13 MiB\n",
			[]string{"0 NVIDIA A100  12/40960 MiB", "1 NVIDIA A100  0/40960 MiB", "-", "0 NVIDIA A100  13/40960 MiB",
				"-"}},
		"compute apps": {"pid, process_name, used_gpu_memory [MiB]\n1234, /usr/bin/python3, 500 MiB\n",
			[]string{"-1 -1/-1 1234  /usr/bin/python3 500 MiB", "-"}},
		"nounits": {"gpu_uuid, pid, used_gpu_memory [MiB]\nGPU-1, 1234, 500\n",
			[]string{"-1 -1/-1 1234   500 MiB", "-"}},
		"MIG process": {"+-\n|    1    3    0      11211      C   python                          14323MiB |\n",
			[]string{"1 3/0 11211 C python 14323 MiB", "-"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, readings, _, err := collect(t, c.data)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range readings {
				for _, d := range r.Devices {
					s := device(d)
					if d.Idle {
						s += " idle"
					}
					got = append(got, s)
				}
				for _, p := range r.Processes {
					got = append(got, process(p))
				}
				got = append(got, "-")
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

func BenchmarkJSONLines(b *testing.B) {
	data, err := os.ReadFile("../../../shared/corpus/fragmentation_oom/memory_stats.jsonl")
	if err != nil {
		b.Skip(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := memstats.Open(b.Context(), "-", bytes.NewReader(data), memstats.Options{},
			memstats.Handler{}); err != nil {
			b.Fatal(err)
		}
	}
}
