package memstats_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/snapana/snapana/fixtures/hostile"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/memstats"
)

// collect reads a file and keeps what is in it.
func collect(t testing.TB, data string) ([]memstats.Sample, []memstats.Reading, *memstats.Info, error) {
	t.Helper()
	var samples []memstats.Sample
	var readings []memstats.Reading
	info, err := memstats.Open(t.Context(), "-", strings.NewReader(data), memstats.Options{}, memstats.Handler{
		Sample:  func(s *memstats.Sample) { samples = append(samples, clone(s)) },
		Reading: func(r *memstats.Reading) { readings = append(readings, *r) },
	})
	return samples, readings, info, err
}

func clone(s *memstats.Sample) memstats.Sample {
	c := *s
	c.Stats = slices.Clone(s.Stats)
	return c
}

// words writes a sample in one line.
func words(s *memstats.Sample) string {
	var b strings.Builder
	for _, n := range []struct {
		name string
		n    memstats.Number
	}{{"step", s.Step}, {"epoch", s.Epoch}, {"device", memstats.Number{N: int64(s.Device), Known: s.Device >= 0}},
		{"rank", memstats.Number{N: int64(s.Rank), Known: s.Rank >= 0}},
		{"time", memstats.Number{N: s.Time, Known: s.Time != 0}}} {
		if n.n.Known {
			fmt.Fprintf(&b, "%s=%d ", n.name, n.n.N)
		}
	}
	if s.Label != "" {
		fmt.Fprintf(&b, "label=%s ", s.Label)
	}
	for _, st := range s.Stats {
		fmt.Fprintf(&b, "%s=%d", st.Name, st.Value)
		if st.Step != 1 {
			fmt.Fprintf(&b, "~%d", st.Step)
		}
		b.WriteByte(' ')
	}
	if s.Cut {
		b.WriteString("cut")
	}
	return strings.TrimSpace(b.String())
}

const ordered = "active.all.current=166 allocated_bytes.all.current=388343808 allocated_bytes.all.peak=421898240 " +
	"max_split_size=-1 num_alloc_retries=0 num_ooms=2 reserved_bytes.large_pool.current=3298534883328"

// TestForms reads the same counters in every form that they are saved in.
func TestForms(t *testing.T) {
	const flat = `{"active.all.current": 166, "allocated_bytes.all.current": 388343808, ` +
		`"allocated_bytes.all.peak": 421898240, ` +
		`"max_split_size": -1, "num_alloc_retries": 0, "num_ooms": 2, "reserved_bytes.large_pool.current": ` +
		`3298534883328}`
	const nested = `{"allocated_bytes": {"all": {"current": 388343808, "peak": 421898240}}, "reserved_bytes": ` +
		`{"large_pool": {"current": 3298534883328}}, ` +
		`"active": {"all": {"current": 166}}, "num_alloc_retries": 0, "num_ooms": 2, "max_split_size": -1}`
	printed := strings.NewReplacer(`"`, `'`).Replace(flat)
	for name, data := range map[string]string{
		"flat":            flat,
		"nested":          nested,
		"pretty":          strings.NewReplacer("{", "{\n  ", ", ", ",\n  ", "}", "\n}\n").Replace(nested),
		"byte order mark": "\xef\xbb\xbf" + flat,
		"floats":          strings.NewReplacer("388343808", "3.88343808e8", "166", "166.0").Replace(flat),
		"python dict":     printed,
		"python 3.12":     "OrderedDict(" + printed + ")",
		"python 3.11": "OrderedDict([" + strings.NewReplacer("{", "(", "}", ")", ": ", ", ", ", ",
			"), (").Replace(printed) + "])",
		"wandb": strings.ReplaceAll(strings.ReplaceAll(flat, `"a`, `"memory/a`), `"reserved`, `"memory/reserved`),
		"CSV": "active.all.current,allocated_bytes_all_current,allocated_bytes.all.peak,max_split_size," +
			"num_alloc_retries,num_ooms,reserved_bytes.large_pool.current,loss\n" +
			"166,388343808,421898240,-1,0,2,3298534883328.0,2.31\n",
		"CSV with tabs and quotes": "\"active.all.current\"\tmemory_allocated\tmax_memory_allocated\t" +
			"max_split_size\tnum_alloc_retries\tnum_ooms\treserved_bytes.large_pool.current\n" +
			"166\t388343808\t421898240\t-1\t0\t2\t3298534883328\n",
		"CSV with a line for each": ",0\nactive.all.current,166\nallocated_bytes.all.current,388343808\n" +
			"allocated_bytes.all.peak,421898240\n" +
			"max_split_size,-1\nnum_alloc_retries,0\nnum_ooms,2\nreserved_bytes.large_pool.current,3298534883328\n",
	} {
		t.Run(name, func(t *testing.T) { one(t, data, ordered) })
	}
	for p := range 6 {
		data, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("ordered.%d.pickle", p)))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint("pickle protocol ", p), func(t *testing.T) { one(t, string(data), ordered) })
	}
	t.Run("msgpack", func(t *testing.T) {
		data, err := msgpack.Marshal(map[string]any{"active.all.current": 166,
			"allocated_bytes.all.current": uint64(388343808),
			"allocated_bytes":             map[string]any{"all": map[string]any{"peak": 421898240.0}},
			"max_split_size":              -1,
			"num_alloc_retries":           0,
			"num_ooms":                    int8(2), "reserved_bytes.large_pool.current": int64(3 << 40), "note": "x",
			"list": []int{1}, "nothing": nil})
		if err != nil {
			t.Fatal(err)
		}
		one(t, string(data), ordered)
	})
}

func one(t *testing.T, data, want string) {
	t.Helper()
	samples, _, _, err := collect(t, data)
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != 1 || words(&samples[0]) != want {
		t.Errorf("%d samples, the first\n  %s, want\n  %s", len(samples), words(&samples[0]), want)
	}
}

// TestRecords reads what programs put around the counters.
func TestRecords(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want []string
	}{
		"keys beside": {`{"step": 3, "epoch": 1, "gpu": "cuda:1", "num_ooms": 0}`,
			[]string{"step=3 epoch=1 device=1 num_ooms=0"}},
		"keys around": {`{"time": 1795225813.5, "global_step": 3, "rank": 7, "phase": "val", "memory": ` +
			`{"num_ooms": 0}}`,
			[]string{"step=3 rank=7 time=1795225813500000 label=val num_ooms=0"}},
		"an ISO time": {`{"timestamp": "2026-11-21T10:00:00", "num_ooms": 0}`,
			[]string{"time=1795255200000000 num_ooms=0"}},
		"by device": {`{"step": 1, "stats": [{"num_ooms": 0}, {"num_ooms": 1}]}`,
			[]string{"step=1 device=0 num_ooms=0", "step=1 device=1 num_ooms=1"}},
		"device keys": {`{"step": 1, "cuda:0": {"num_ooms": 0}, "cuda:1": {"num_ooms": 1}}`,
			[]string{"step=1 device=0 num_ooms=0", "step=1 device=1 num_ooms=1"}},
		"int keys": {`{0: {'num_ooms': 0}, 1: {'num_ooms': 1}}`,
			[]string{"device=0 num_ooms=0", "device=1 num_ooms=1"}},
		"prefixed": {`{"gpu1/num_ooms": 1, "gpu0/num_ooms": 0, "step": 4}`,
			[]string{"step=4 device=0 num_ooms=0", "step=4 device=1 num_ooms=1"}},
		"a list": {`[{"step": 1, "num_ooms": 0}, {"step": 2, "num_ooms": 1}]`,
			[]string{"step=1 num_ooms=0", "step=2 num_ooms=1"}},
		"in a history": {`{"rank": 2, "history": [{"step": 1, "num_ooms": 0}, {"step": 2, "num_ooms": 1}]}`,
			[]string{"step=1 rank=2 num_ooms=0", "step=2 rank=2 num_ooms=1"}},
		"columns": {`{"step": [1, 2], "memory_allocated": [512, 1024]}`,
			[]string{"step=1 allocated_bytes.all.current=512", "step=2 allocated_bytes.all.current=1024"}},
		"mem_get_info": {`{"mem_get_info": [1, 2], "stats": {"num_ooms": 0}}`,
			[]string{"device.free=1 device.total=2 num_ooms=0"}},
		"host": {`{"allocated_bytes.current": 5, "num_host_alloc": 2, "host_alloc_time.total": 9}`,
			[]string{"host.allocated_bytes.current=5 host.host_alloc_time.total=9 host.num_host_alloc=2"}},
		"host, nested": {`{"allocations": {"current": 5, "peak": 6}, "host_free_time": {"avg": 2}}`,
			[]string{"host.allocations.current=5 host.allocations.peak=6 host.host_free_time.avg=2"}},
		"host, 2.7 to 2.9": {`{"allocation": {"current": 1}, "segment": {"current": 2}, "allocated_bytes": {"current": 9, ` +
			`"allocated": 8}, "reserved_bytes": {"current": 8}}`, []string{"host.active_bytes.allocated=8 " +
			"host.active_requests.current=1 host.allocated_bytes.current=8 host.allocations.current=2"}},
		"host, 2.10 and 2.11": {`{"active_bytes.current": 9, "active_bytes.peak": 9, "active_requests.current": 1, ` +
			`"allocated_bytes.current": 8}`, []string{"host.active_requests.current=1 host.allocated_bytes.current=8"}},
		"host, 2.13": {`{"active_bytes.current": 7, "active_bytes.peak": 9, "active_requests.current": 1, ` +
			`"allocated_bytes.current": 8}`, []string{"host.active_bytes.current=7 host.active_bytes.peak=9 " +
			"host.active_requests.current=1 host.allocated_bytes.current=8"}},
		"pools of 2.14": {`{"reserved_bytes_by_private_pools": {(0, 1): {"all": {"current": 7}}}}`,
			[]string{"reserved_bytes_by_private_pools.0_1.all.current=7"}},
		"of another time": {`{"foo_bytes.all.peak": 7, "note": "new counters are kept"}`,
			[]string{"foo_bytes.all.peak=7"}},
		"absent": {`{"num_ooms": NaN, "num_alloc_retries": null, "max_split_size": 1}`,
			[]string{"max_split_size=1"}},
		"cudaMallocAsync": {`{"allocated_bytes.all.current": 9, "allocation.all.peak": 0, "segment.all.current": 0,` +
			` "num_ooms": 0}`, []string{"allocated_bytes.all.current=9 num_ooms=0"}},
		"CSV": {"step,device,allocated_bytes.all.current\n0,0,512\n0,1,\n1,0,1024\nstep,device," +
			"allocated_bytes.all.current\n0,0,7\n",
			[]string{"step=0 device=0 allocated_bytes.all.current=512",
				"step=1 device=0 allocated_bytes.all.current=1024",
				"step=0 device=0 allocated_bytes.all.current=7"}},
		"JSON lines of two runs": {"{\"step\": 0, \"num_ooms\": 0}\n{\"step\": 1, \"num\n{\"step\": 0, \"num_ooms\": " +
			"0}\n{\"step\": 1, \"nu", []string{"step=0 num_ooms=0", "step=0 num_ooms=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			samples, _, _, err := collect(t, c.data)
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

// TestAppended reads pickles that were appended to one file, and a list in one pickle.
func TestAppended(t *testing.T) {
	for _, name := range []string{"appended.pickle", "list.pickle"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		samples, _, _, err := collect(t, string(data))
		if err != nil || len(samples) != 3 {
			t.Fatalf("%s: %d samples, %v", name, len(samples), err)
		}
		if got, want := words(&samples[2]), "step=2 epoch=1 device=1 time=1795225813500000 "+ordered; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		samples, _, info, err := collect(t, string(data[:len(data)-40]))
		if name == "appended.pickle" && (err != nil || len(samples) != 2 || info.Cut == nil) {
			t.Errorf("cut: %d samples, %v", len(samples), err)
		}
	}
}

// TestNotes checks what is said of data that could not be used.
func TestNotes(t *testing.T) {
	_, _, info, err := collect(t, "{\"num_ooms\": 1}\n{\"num_ooms\": -4, \"num_alloc_retries\": 1e400}\n{]\n{\"a\": "+
		"1}\n{\"num_ooms\": 2}\n{\"num")
	if err != nil {
		t.Fatal(err)
	}
	if info.Samples != 2 || info.Odd != 2 || info.Skipped != 1 || info.Foreign != 2 || info.Cut == nil ||
		info.Cut.Line != 6 || info.FirstOdd == nil || info.FirstOdd.Line != 2 ||
		info.FirstSkipped == nil || info.FirstSkipped.Line != 3 {
		t.Errorf("%+v, first %+v and %+v, cut %+v", info, info.FirstOdd, info.FirstSkipped, info.Cut)
	}
}

// TestRefused checks that what is not read here is refused in words.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		data, says string
		class      error
	}{
		"empty":      {"", "empty", snapshot.ErrNotSnapshot},
		"blank":      {" \n\n", "empty", snapshot.ErrNotSnapshot},
		"prose":      {"Traceback (most recent call last):\n", `begins with "Traceback`, snapshot.ErrNotSnapshot},
		"other JSON": {`{"loss": 2.31}`, "contains no memory counters", snapshot.ErrNotSnapshot},
		"no JSON":    {"{'a': }", "unexpected", snapshot.ErrCorrupt},
		"cut JSON":   {`{"num_ooms": 1`, "ends in the middle", snapshot.ErrTruncated},
		"deep JSON":  {strings.Repeat(`{"a":`, 1000), "nested", snapshot.ErrLimit},
		"only odd":   {`{"num_ooms": -1}`, "no usable counters", snapshot.ErrNotSnapshot},
		"binary":     {"\x00\x01\x02", "binary", snapshot.ErrNotSnapshot},
		"SQLite":     {"SQLite format 3\x00", "SQLite", snapshot.ErrNotSnapshot},
		"LFS":        {"version https://git-lfs.github.com/spec/v1\n", "git lfs pull", snapshot.ErrNotSnapshot},
		"recording": {"\x83\xa4type\xa6header\xa6format\xa7snapana\xa7version\x01", "recording",
			snapshot.ErrNotSnapshot},
		"code": {"\x80\x02cos\nsystem\nq\x00X\x01\x00\x00\x00xq\x01\x85q\x02Rq\x03.", "posix.system",
			snapshot.ErrRefused},
		"msgpack, deep":   {strings.Repeat("\x91", 1000), "nested", snapshot.ErrLimit},
		"msgpack, long":   {"\x81\xdb\xff\xff\xff\xffxx", "bytes", snapshot.ErrLimit},
		"msgpack, cut":    {"\xde\xff\xff\xa1a", "ends in the middle", snapshot.ErrTruncated},
		"headless CSV":    {"0, 16384 MiB, 500 MiB\n", "begins with", snapshot.ErrNotSnapshot},
		"snapshot":        {readFile(t, "../../fixtures/ghost.pickle"), "not a dump of counters", snapshot.ErrSnapshot},
		"half a sentence": {"the process ran | with GPU:\n", "begins with", snapshot.ErrNotSnapshot},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "code" {
				c.says = "os.system"
			}
			_, _, _, err := collect(t, c.data)
			if err == nil || !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q of class %v", err, c.says, c.class)
			}
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestHostile reads what attacks readers of snapshots: all of it is refused.
func TestHostile(t *testing.T) {
	for _, c := range hostile.All() {
		if c.Large {
			continue // goes through gigabytes
		}
		path := filepath.Join(t.TempDir(), c.Name)
		if err := os.WriteFile(path, c.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := memstats.Open(t.Context(), path, nil, memstats.Options{}, memstats.Handler{}); err == nil ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// TestPacked opens a compressed file, whole and cut.
func TestPacked(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for i := range 1000 {
		fmt.Fprintf(z, "{\"step\": %d, \"num_ooms\": %d}\n", i, i*i%97)
	}
	z.Close()
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		data []byte
		cut  bool
	}{{"whole.gz", b.Bytes(), false}, {"cut.gz", b.Bytes()[:b.Len()/2], true}} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, c.data, 0o666); err != nil {
			t.Fatal(err)
		}
		info, err := memstats.Open(t.Context(), path, nil, memstats.Options{}, memstats.Handler{})
		if err != nil || info.Name != c.name || !slices.Equal(info.Container, []string{"gzip", "JSON lines"}) ||
			(info.Cut != nil) != c.cut || c.cut == (info.Samples == 1000) {
			t.Errorf("%s: %+v, %v", c.name, info, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"step": 1, "allocated_bytes.all.current": 5, "x": [1, {"num_ooms": 2}]}`,
		"{\"num_ooms\": 1}\n{\"num_ooms\": 2}\n",
		"OrderedDict([('num_ooms', 1)])", "step,num_ooms\n1,2\n", "index, memory.used [MiB]\n0, 5 MiB\n",
		",0\nnum_ooms,2\n",
		"\x82\xa4step\x01\xa8num_ooms\x02", "\x80\x04}\x94\x8c\x08num_ooms\x94K\x01s.",
		"|  memory summary, device ID 0 |\n|  CUDA OOMs: 1 | cudaMalloc retries: 6 |\n| Allocated memory |  26377 " +
			"MB | 2 B " +
			"|\n|==========|\n",
		"GPU:0\nprocess       1234 uses      1.234 MB GPU memory\n",
		"|   0  NVIDIA X  Off  | 00000000:19:00.0 Off |\n|  8W | 9637MiB / 12192MiB |\n|    0   N/A  N/A    772207 " +
			"     C   " +
			"python    9635MiB |\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		samples, readings := int64(0), int64(0)
		info, err := memstats.Open(t.Context(), "-", bytes.NewReader(data), memstats.Options{}, memstats.Handler{
			Sample: func(s *memstats.Sample) {
				samples++
				for i, st := range s.Stats {
					if st.Step < 1 || st.Value < 0 && st.Name != "max_split_size" ||
						i > 0 && s.Stats[i-1].Name >= st.Name {
						t.Fatalf("%+v", s.Stats)
					}
				}
			},
			Reading: func(*memstats.Reading) { readings++ },
		})
		if err == nil && (info.Samples != samples || info.Readings != readings || samples+readings == 0) {
			t.Fatalf("%+v after %d samples and %d readings", info, samples, readings)
		}
	})
}
