package sidecar_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	. "github.com/snapana/snapana/fixtures/sidecartest"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// recorded is a file with every record type.
func recorded() []Map {
	var g Graph
	frame := g.Node(Node{Kind: "frame", Name: "main", File: "/app/train.py", Line: 7, Root: "frame"})
	g.Edge(frame, g.Tensor(0xff00_0000_0000_0000, 4096, 3), "local", "x")
	return []Map{
		Header("pid", 17, "rank", 0, "program", "train.py"),
		{"type", "env", "time", 2, "env", Map{"torch.version", "2.6.0", "host.ram", 1 << 40, "python.gc_enabled", true,
			"device.0.x", []int{1}}},
		{"type", "env", "time", 2, "env", Map{"driver.version", "570", "host.ram", 1 << 41}},
		{"type", "names", "time", 3, "id", 0, "names", []string{"active.all.current", "reserved_bytes.all.current"}},
		{"type", "sample", "time", 4, "step", 0, "devices",
			[]Map{{"device", 0, "names", 0, "stats", []int{3, 0}, "free", 5, "total", nil}},
			"host", Map{"rss", 9, "new", 1}, "tensors", Map{"cpu_count", 2}, "children", []Map{}},
		g.Record(0, "step", 5, "live", 70, "peak", 90, "host_every", 2, "dropped", Map{"nodes", 2}, "notes", []string{"a note"}),
		{"type", "snapshot", "time", 6, "file", "run.pickle", "bytes", 100, "holders", 0,
			"devices", []Map{{"device", 0, "free", 5, "total", nil}}, "counters", []Map{{"device", 0, "allocs", 12}}},
		{"type", "phase", "time", 6, "stage", "begin", "id", 3, "name", "rollout", "lap", 1, "step", 5, "thread", 77,
			"inside", 2, "devices", []Map{{"device", 0, "allocated", 70, "peak", 90, "reserved", 100, "reserved_peak", 110,
				"allocs", 12, "frees", 11}}},
		{"type", "phase", "time", 7, "stage", "end", "id", 3, "step", 5, "error", "ValueError", "devices", []Map{}},
		{"type", "oom", "time", 7, "device", 0, "requested", 2 << 20, "total", 1 << 34, "free", 0},
		{"type", "nvml", "time", 8, "driver", "570", "devices",
			[]Map{{"index", 0, "mig", false, "processes", []Map{{"pid", 1, "namespaces", []int{5, 1}}},
				"instances", []Map{{"uuid", "MIG-1", "total", 3}}, "accounting", []Map{{"pid", 1, "running", true}},
				"errors",
				[]Map{{"what", "a", "why", "b"}}}}},
		{"type", "fault", "time", 9, "where", "sample", "what", "no /proc", "count", 2},
		{"type", "weather", "time", 9, "sky", Map{"blue", []any{1, 2.5}}},
		{"type", "end", "time", 10, "steps", 1, "reason", "stop"},
	}
}

func read(t *testing.T, data []byte) *sidecar.File {
	t.Helper()
	f, err := sidecar.Read(t.Context(), bytes.NewReader(data), "run.snapana", sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRead(t *testing.T) {
	f := read(t, Stream(recorded()...))
	if len(f.Runs) != 1 || f.Truncated != nil || f.Gaps != nil || f.Partial != nil {
		t.Fatalf("%+v", f)
	}
	if want := []sidecar.Unknown{{"env.env.device.0.x", 1}, {"sample.host.new", 1},
		{"weather", 1}}; !reflect.DeepEqual(f.Unknown, want) {
		t.Errorf("unknown %v, want %v", f.Unknown, want)
	}
	r := &f.Runs[0]
	if *r.PID != 17 || *r.Rank != 0 || r.WorldSize != nil || r.Program != "train.py" || r.Time != 1 {
		t.Errorf("header %+v", r.Header)
	}
	if want := map[string]any{"torch.version": "2.6.0", "host.ram": int64(1 << 41), "python.gc_enabled": true,
		"driver.version": "570"}; !reflect.DeepEqual(r.Env, want) {
		t.Errorf("env %v", r.Env)
	}
	s := r.Samples[0]
	if v, ok := s.Devices[0].Stats.Get("active.all.current"); v != 3 || !ok {
		t.Errorf("statistics %+v", s.Devices[0].Stats)
	}
	if _, ok := s.Devices[0].Stats.Get("other"); ok || s.Devices[0].Total != nil || *s.Devices[0].Free != 5 ||
		s.Epoch != nil || *s.Step != 0 {
		t.Errorf("sample %+v", s)
	}
	if *s.Host.RSS != 9 || s.Host.Swap != nil || s.Children == nil || *s.Tensors.CPUCount != 2 ||
		s.Tensors.CPUBytes != nil {
		t.Errorf("host %+v, children %v, tensors %+v", s.Host, s.Children, s.Tensors)
	}
	run, dump := f.Snapshot("run.pickle", 100)
	if _, renamed := f.Snapshot("oom.pickle", 100); renamed != dump || dump == nil {
		t.Errorf("of the file under another name: %+v", renamed)
	}
	if _, other := f.Snapshot("run.pickle", 101); other != nil {
		t.Errorf("of another file under the same name: %+v", other)
	}
	if d := dump.Devices[0]; len(dump.Devices) != 1 || *d.Device != 0 || *d.Free != 5 || d.Total != nil {
		t.Errorf("devices of the snapshot %+v", dump.Devices)
	}
	if len(dump.Counters) != 1 || *dump.Counters[0].Allocs != 12 || dump.Counters[0].Frees != nil {
		t.Errorf("counters of the snapshot %+v", dump.Counters)
	}
	if begin, end := r.Phases[0], r.Phases[1]; len(r.Phases) != 2 || begin.Stage != sidecar.PhaseBegin || *begin.ID != 3 ||
		begin.Name != "rollout" || *begin.Lap != 1 || *begin.Inside != 2 || *begin.Devices[0].Peak != 90 ||
		*begin.Devices[0].Frees != 11 || end.Stage != sidecar.PhaseEnd || *end.ID != 3 || end.Lap != nil ||
		end.Error != "ValueError" || end.Devices == nil {
		t.Errorf("phases %+v", r.Phases)
	}
	h := run.HoldersOf(dump)
	if h == nil || h.Storages.Address[0] != 0xff00_0000_0000_0000 || h.Storages.Bytes[0] != 4096 ||
		h.Tensors.Flags[0] != sidecar.RequiresGrad|sidecar.Leaf {
		t.Fatalf("holders %+v", h)
	}
	if h.String(h.Nodes.Name[0]) != "main" || h.String(h.Edges.Label[0]) != "x" || h.Nodes.Line[0] != 7 ||
		h.Dropped["nodes"] != 2 || *h.Step != 5 || *h.Live != 70 || *h.Peak != 90 || *h.HostEvery != 2 ||
		h.String(h.Storages.Kind[0]) != "" {
		t.Errorf("holders %+v", h)
	}
	if g := r.NVML[0].Devices[0]; *g.Index != 0 || *g.MIG || g.Processes[0].Namespaces[0] != 5 ||
		*g.Accounting[0].Running != true || g.Errors[0].Why != "b" || *g.Instances[0].Total != 3 || g.Used != nil {
		t.Errorf("nvml %+v", g)
	}
	if *r.OOMs[0].Requested != 2<<20 || r.OOMs[0].Step != nil || *r.Faults[0].Count != 2 || r.End.Reason != "stop" ||
		r.End.Time != 10 {
		t.Errorf("%+v %+v %+v", r.OOMs, r.Faults, r.End)
	}
}

// A process may be killed at any byte, and its file may still be looked at while it runs.
func TestReadAnyPrefix(t *testing.T) {
	records := recorded()
	data := Stream(records...)
	ends := map[int]bool{}
	for i := range records {
		ends[len(Stream(records[:i+1]...))] = true
	}
	last := 0
	for n := range len(data) + 1 {
		f := read(t, data[:n])
		if whole := ends[n]; whole != (f.Truncated == nil) {
			t.Fatalf("%d bytes: truncated %v", n, f.Truncated)
		}
		if ends[n] {
			last = n
		} else if f.Truncated.Offset != int64(last) {
			t.Errorf("%d bytes: breaks at %d, want %d", n, f.Truncated.Offset, last)
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(data)
	z.Close()
	for n := 2; n < packed.Len(); n++ {
		if f := read(t, packed.Bytes()[:n]); f.Truncated == nil && n < packed.Len()-8 {
			t.Errorf("%d of %d bytes of gzip: nothing is said to be missing", n, packed.Len())
		}
	}
	if f := read(t, packed.Bytes()); f.Runs[0].End == nil {
		t.Error("gzip: no end")
	}
}

// However the bytes come, the records are the same.
func TestReadInPieces(t *testing.T) {
	var records []Map
	for range 150 { // beyond the size of a buffer
		records = append(records, recorded()...)
	}
	data := Stream(records...)
	want := read(t, data)
	if len(want.Runs) != 150 || want.Truncated != nil || want.Gaps != nil || len(data) < 128<<10 {
		t.Fatalf("%d bytes: %d runs, truncated %v, gaps %v", len(data), len(want.Runs), want.Truncated, want.Gaps)
	}
	// A last record that is longer than all before it moves within the buffer at the end.
	var g Graph
	for i := range 500 {
		g.Tensor(uint64(i), 512, 0)
	}
	if f := read(t, Stream(Header(), g.Record(0))); len(f.Runs[0].Holders) != 1 {
		t.Errorf("%+v", f)
	}
	for name, r := range map[string]io.Reader{
		"byte by byte": iotest.OneByteReader(bytes.NewReader(data)),
		"in halves":    iotest.HalfReader(bytes.NewReader(data)),
		"with the end": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		got, err := sidecar.Read(t.Context(), r, "run.snapana", sidecar.Options{})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sidecar.Read(t.Context(), iotest.TimeoutReader(iotest.HalfReader(bytes.NewReader(data))), "x",
		sidecar.Options{}); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a failing disk: %v", err)
	}
}

func TestReadRunsAfterATornRecord(t *testing.T) {
	data := Stream(recorded()...)
	for n := 1; n < len(data); n++ {
		f, err := sidecar.Read(t.Context(), bytes.NewReader(append(data[:n:n], data...)), "x", sidecar.Options{})
		if err != nil {
			t.Fatalf("torn after %d bytes: %v", n, err)
		}
		if r := f.Runs[len(f.Runs)-1]; r.End == nil || len(r.Samples) != 1 {
			t.Fatalf("torn after %d bytes: the second run is not whole", n)
		}
		if torn := read(t, data[:n]).Truncated; torn != nil &&
			(len(f.Gaps) != 1 || f.Gaps[0] != sidecar.Gap{Offset: torn.Offset, Bytes: int64(n) - torn.Offset}) {
			t.Fatalf("torn after %d bytes: gaps %v", n, f.Gaps)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	many := make([]int, 1025)
	for i := range many {
		many[i] = i
	}
	deep := strings.Repeat("\x91", 40) + "\xc0"
	wide := "\xdc\xff\xff" + strings.Repeat("\x90", 0xffff)
	holders := func(table string, columns ...any) Map {
		return Map{"type", "holders", "time", 1, "strings", []string{"", "a"}, table, Map(columns)}
	}
	for _, c := range []struct {
		name  string
		data  string
		class error
		says  string
	}{
		{"a text", "hello, this is a log", sidecar.ErrNotSidecar, "not a .snapana file"},
		{"a pickle", "\x80\x02}q\x00.", snapshot.ErrSnapshot, "is not a .snapana file"},
		{"JSON", `{"type": "header"}`, snapshot.ErrSnapshot, "is not a .snapana file"},
		{"another map", string(Stream(Map{"a", 1})), sidecar.ErrNotSidecar, "not a .snapana file"},
		{"another format", string(Stream(Map{"type", "header", "format", "other", "version", 1})),
			sidecar.ErrNotSidecar, `"other"`},
		{"a newer version", string(Stream(Map{"type", "header", "format", "snapana", "version", 2})),
			sidecar.ErrNotSidecar, "version 2"},
		{"a byte of no type", "\xc1", snapshot.ErrCorrupt, "at byte 61"},
		{"not a map", "\x05", snapshot.ErrCorrupt, "is not a map"},
		{"no type", "\x80", snapshot.ErrCorrupt, "begin with its type"},
		{"nested too deeply", "\x82\xa4type\xa3end\xa1x" + deep, snapshot.ErrCorrupt, "nested"},
		{"too many lists", "\x82\xa4type\xa3end\xa1x" + wide, snapshot.ErrCorrupt, "too many"},
		{"a key that is a list", "\x82\xa4type\xa3end\x90\xc0", snapshot.ErrCorrupt, "key"},
		{"a number for a text", string(Stream(Map{"type", "fault", "where", 3})), snapshot.ErrCorrupt,
			"at byte 79: fault.where: is not a string"},
		{"a float for a number", string(Stream(Map{"type", "end", "steps", 3.5})), snapshot.ErrCorrupt,
			"end.steps: is not an integer"},
		{"a number beyond all sizes", string(Stream(Map{"type", "end", "steps", uint64(1 << 63)})), snapshot.ErrCorrupt,
			"larger"},
		{"a list of nothing", string(Stream(Map{"type", "sample", "children", []any{nil}})), snapshot.ErrCorrupt,
			"not a map"},
		{"statistics without names", string(Stream(Map{"type", "sample", "devices",
			[]Map{{"names", 3, "stats", []int{1}}}})), snapshot.ErrCorrupt, "names"},
		{"columns of two lengths", string(Stream(holders("storages", "device", []int{0}, "address", []int{1, 2},
			"bytes", []int{1, 2}))), snapshot.ErrCorrupt, "storages.device"},
		{"a negative size", string(Stream(holders("storages", "device", []int{0}, "address", []int{1}, "bytes",
			[]int{-1}))), snapshot.ErrCorrupt, "outside"},
		{"more devices than a process has", string(Stream(holders("storages", "device", many, "address", many, "bytes",
			many))), snapshot.ErrCorrupt, "storages on more than 1024 devices"},
		{"a node that is not there", string(Stream(holders("edges", "from", []int{0}, "to", []int{9}, "kind",
			[]int{1}))), snapshot.ErrCorrupt, "edges.from[0] is 0, of 0"},
		{"a string that is not there", string(Stream(holders("nodes", "kind", []int{2}))), snapshot.ErrCorrupt,
			"nodes.kind[0] is 2, of 2"},
		{"bounds of two lengths", string(Stream(holders("bounds", "node", []int{}, "length", []int{1}, "limit",
			[]int{}))), snapshot.ErrCorrupt, "bounds.length"},
		{"a bound of a node that is not there", string(Stream(holders("bounds", "node", []int{4}, "length", []int{1},
			"limit", []int{2}))), snapshot.ErrCorrupt, "bounds.node[0] is 4, of 0"},
		{"a name that is not there", string(Stream(holders("nodes", "kind", []int{1}, "name", []int{7}))),
			snapshot.ErrCorrupt, "nodes.name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := []byte(c.data)
			if c.class == snapshot.ErrCorrupt {
				data = append(Stream(Header()), data...)
			}
			_, err := sidecar.Read(t.Context(), bytes.NewReader(data), "dir/x.snapana", sidecar.Options{})
			var fe *sidecar.FormatError
			if !errors.As(err, &fe) || !errors.Is(err, c.class) {
				t.Fatalf("got %v", err)
			}
			if !strings.HasPrefix(err.Error(), "dir/x.snapana: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("says %q, want %q in it", err, c.says)
			}
			if c.class == snapshot.ErrCorrupt {
				f, err := sidecar.Read(t.Context(), bytes.NewReader(data), "x", sidecar.Options{Partial: true})
				if err != nil || f.Partial == nil || len(f.Runs) != 1 {
					t.Errorf("with Partial: %+v, %v", f, err)
				}
			}
		})
	}
}

// What a file claims must not be allocated before it is read.
func TestReadBelievesNoLength(t *testing.T) {
	for _, claim := range []string{"\xdb\xff\xff\xff\xff", "\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff",
		"\xc6\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff"} {
		data := append(Stream(Header()), "\x82\xa4type\xa3end\xa1x"+claim+"abc"...)
		allocated := testing.AllocsPerRun(1, func() {
			if f := read(t, data); f.Truncated == nil {
				t.Errorf("%x: not said to be cut", claim)
			}
		})
		if allocated > 500 {
			t.Errorf("%x: %v allocations", claim, allocated)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := sidecar.Open(t.Context(), dir, sidecar.Options{}); !errors.Is(err, sidecar.ErrNotSidecar) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := sidecar.Open(t.Context(), filepath.Join(dir, "none"), sidecar.Options{}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestWriterRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpu.snapana")
	want := sidecar.NVML{
		Driver: "570.1", NVML: "12.570", CUDA: "12.8", Boot: "b", Duration: new(int64(3)),
		Devices: []sidecar.GPU{{
			Index: new(int64(0)), UUID: "GPU-1", Name: "H200", Bus: "0:1", Total: new(int64(1 << 40)),
			Reserved: new(int64(1)), Used: new(int64(2)), Free: new(int64(0)),
			MIG: new(true), Instances: []sidecar.MIGInstance{{UUID: "MIG-1", GPUInstance: new(int64(1)),
				ComputeInstance: new(int64(0)), Name: "1g", Total: new(int64(5)), Reserved: new(int64(1)),
				Used: new(int64(2)),
				Free: new(int64(2))}},
			Processes: []sidecar.GPUProcess{{PID: 7, Kind: "compute+mps", Used: new(int64(4)), Name: "python",
				PPID: new(int64(1)), Started: new(int64(9)), User: "u", State: "zombie",
				GPUInstance: new(int64(1)), ComputeInstance: new(int64(0)), Namespaces: []int64{7, 1},
				Parents: []int64{3, 2}}},
			Retired: new(int64(0)), ECCErrors: new(int64(1)),
			Accounting: []sidecar.Accounted{{PID: 7, MaxUsed: new(int64(1 << 33)), Running: new(false)}},
			Errors:     []sidecar.Failed{{"a", "b"}},
		}, {Processes: []sidecar.GPUProcess{}}},
		Errors: []sidecar.Failed{{What: "topology", Why: "not supported"}},
	}
	w, err := sidecar.Append(t.Context(), path, "1.0")
	if err != nil {
		t.Fatal(err)
	}
	reading := sidecar.Reading{Time: time.Unix(5, 6).UnixNano(), NVML: want}
	if err := errors.Join(w.Add(&reading), w.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := sidecar.Open(t.Context(), path, sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := f.Runs[0]
	if !reflect.DeepEqual(r.NVML, []sidecar.Reading{reading}) || f.Unknown != nil ||
		r.Producer != sidecar.ProducerNVML || r.Time != reading.Time {
		t.Errorf("got %+v, unknown %v", r.NVML, f.Unknown)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(Stream(recorded()...))
	f.Add(Stream(Header()))
	f.Add([]byte("\x82\xa4type\xa6header"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := sidecar.Read(t.Context(), bytes.NewReader(data), "fuzz", sidecar.Options{})
		if err != nil {
			var fe *sidecar.FormatError
			if !errors.As(err, &fe) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for i := range file.Runs {
			for _, h := range file.Runs[i].Holders {
				for e := range h.Edges.From {
					_ = h.String(h.Edges.Label[e]) + h.String(h.Nodes.Kind[h.Edges.To[e]])
				}
				for n := range h.Tensors.Node {
					_ = h.Storages.Bytes[h.Tensors.Storage[n]]
				}
			}
		}
	})
}
