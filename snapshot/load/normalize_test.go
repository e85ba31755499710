package load

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/snapshot"
)

func fromJSON(t *testing.T, text string) *snapshot.Snapshot {
	t.Helper()
	s, err := Read(t.Context(), strings.NewReader(text), "x.json", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Torch 1.13: a bare list, blocks without address, requested size or frames, history instead.
func TestNormalizeHistory(t *testing.T) {
	s := fromJSON(t, `[
		{"device": 1, "address": 4096, "total_size": 2048, "stream": 0, "segment_type": "small", "blocks": [
		{"size": 512, "state": "active_allocated", "history": [
			{"addr": 4096, "real_size": 100, "frames": [{"filename": "a.py", "line": 1, "name": "f"}]},
			{"addr": 4096, "real_size": 200, "frames": []}]},
		{"size": 1024, "state": "inactive", "history": [{"addr": 4608, "real_size": 300}]},
		{"size": 512, "state": "active_pending_free", "history": [{"addr": 5632, "real_size": 400}]}]}]`)
	var at []uint64
	for _, b := range s.Blocks {
		at = append(at, b.Address)
	}
	if len(at) != 3 || at[0] != 4096 || at[1] != 4608 || at[2] != 5632 {
		t.Errorf("addresses %v", at)
	}
	if b := s.Blocks[0]; b.Requested != 100 || len(s.Stacks.Get(b.Stack)) != 1 {
		t.Errorf("live block: requested %d, stack of %d frames", b.Requested, len(s.Stacks.Get(b.Stack)))
	}
	if b := s.Blocks[1]; b.Requested != 0 || b.Stack != 0 {
		t.Errorf("inactive block: requested %d, stack %d", b.Requested, b.Stack)
	}
	seg := s.Segments[0]
	if seg.AllocatedSize != 512 || seg.ActiveSize != 1024 || seg.RequestedSize != 500 {
		t.Errorf("totals: allocated %d, active %d, requested %d", seg.AllocatedSize, seg.ActiveSize, seg.RequestedSize)
	}
	if s.Writer.Text != "1.13" || s.NumDevices() != 2 || s.Traces != nil || !s.HasStacks || s.HasTimes {
		t.Errorf("writer %q, %d devices, stacks %v, times %v", s.Writer.Text, s.NumDevices(), s.HasStacks, s.HasTimes)
	}
	missing(t, s, "the trace (no device_traces")
}

// What the file says is never replaced.
func TestNormalizeKeeps(t *testing.T) {
	s := fromJSON(t, `{"segments": [
		{"device": 0, "address": 4096, "total_size": 512, "allocated_size": 7, "active_size": 8, "requested_size": 9,
		"blocks": [{"address": 9000, "size": 512, "requested_size": 10, "state": "active_allocated",
		"frames": [{"filename": "a.py", "line": 1, "name": "f"}], "history": [{"addr": 1, "real_size": 11}]}]}],
		"device_traces": []}`)
	b, seg := s.Blocks[0], s.Segments[0]
	if b.Address != 9000 || b.Requested != 10 || b.Stack <= snapshot.EmptyStack {
		t.Errorf("block %+v", b)
	}
	if seg.AllocatedSize != 7 || seg.ActiveSize != 8 || seg.RequestedSize != 9 {
		t.Errorf("segment %+v", seg)
	}
}

// Every device that has segments has a trace, if only an empty one.
func TestNormalizeTraces(t *testing.T) {
	s := fromJSON(t, `{"segments": [
		{"device": 2, "address": 0, "total_size": 512, "blocks": [{"size": 512, "state": "active_allocated"}]}],
		"device_traces": [[]]}`)
	if len(s.Traces) != 3 || s.NumDevices() != 3 {
		t.Errorf("%d traces for %d devices", len(s.Traces), s.NumDevices())
	}
	if s.Blocks[0].Requested != 512 {
		t.Errorf("requested %d, want the block's size where it is not known", s.Blocks[0].Requested)
	}
	missing(t, s, "the trace (it is empty: ", "call stacks: ", "requested sizes")
	if call := s.RecordingCall(); !strings.HasPrefix(call, "_record_memory_history(True, ") {
		t.Errorf("a trace is recorded by %s", call)
	}
}

func missing(t *testing.T, s *snapshot.Snapshot, want ...string) {
	t.Helper()
	all := strings.Join(s.Missing, "\n")
	for _, w := range want {
		if !strings.Contains(all, w) {
			t.Errorf("notes %q lack %q", s.Missing, w)
		}
	}
}

func TestFingerprint(t *testing.T) {
	// Each release adds to the one before.
	const (
		seg20 = `{"device": 0, "address": 4096, "total_size": 512, "stream": 0, ` +
			`"blocks": [{"size": 512, "state": "inactive", "history": []}]}`
		seg21 = `{"device": 0, "address": 4096, "total_size": 512, "stream": 0, "is_expandable": false, ` +
			`"blocks": [{"size": 512, "state": "inactive", "address": 4096}]}`
		alloc  = `"action": "alloc", "addr": 4096, "size": 512, "stream": 0`
		old    = `"allocator_settings": {"max_split_size": -1}`
		new    = `"allocator_settings": {"max_split_size": -1, "graph_capture_record_stream_reuse": false}`
		scope  = `"external_annotations": [{"stage": "START", "name": "s", "device": 0, "time_us": 1}]`
		timed  = alloc + `, "time_us": 5`
		region = timed + `, "compile_context": "N/A"`
		note   = region + `, "user_metadata": ""`
		pool   = note + `, "pool_id": [0, 0]`
		newer  = `"allocator_settings": {"graph_capture_record_stream_reuse": false, "max_cached_size": 1}`
		host   = `"host_traces": [], "host_segments": []`
	)
	dict := func(segment, event string, more ...string) string {
		s := `{"segments": [` + segment + `], "device_traces": [[{` + event + `}]]`
		for _, m := range more {
			s += ", " + m
		}
		return s + "}"
	}
	for _, tt := range []struct{ want, text string }{
		{"1.4 to 1.12", `[{"device": 0, "address": 4096, "total_size": 512, "blocks": []}]`},
		{"1.13 or earlier", `[{"device": 0, "address": 4096, "total_size": 512, "stream": 0, "blocks": []}]`},
		{"2.1 or later, memory_snapshot()", `[` + seg21 + `]`},
		{"2.0", dict(seg20, alloc)},
		{"2.1", dict(seg21, alloc)},
		{"2.2", dict(seg21, timed)},
		{"2.3 to 2.7", dict(seg21, timed, old)},
		{"2.5 to 2.7", dict(seg21, timed, old, scope)},
		{"2.8", dict(seg21, region, old, scope)},
		{"2.5 to 2.7", dict(seg21, timed, old, `"external_annotations": []`)},
		{"2.9", dict(seg21, region, new, scope)},
		{"2.10 to 2.11", dict(seg21, note, new, scope)},
		{"2.11", dict(seg21, note+`, "forward_frames": ["x"]`, new, scope)},
		{"2.12", dict(seg21, pool, new, scope)},
		{"2.13", dict(seg21, pool, newer, scope)},
		{"2.14 or later", dict(seg21, pool, newer, scope, host)},
		{"2.14 or later", dict(seg21, pool+`}, {"action": "annotate", "addr": 4096, "size": 0`, newer, scope, host)},
		{"2.1 or later, from a profile", dict(`{"device": 0, "address": 0, "total_size": 0, "stream": 0, "blocks": []}`,
			alloc+`, "category": "gradient"`)},
		{"torch_npu", dict(seg21, `"action": "workspace_snapshot", "addr": 0, "size": 0`)},
	} {
		if got := fromJSON(t, tt.text).Writer; got.Text != tt.want {
			t.Errorf("writer %q, want %q, of %s", got.Text, tt.want, tt.text)
		}
	}
}

// TestBackend tells the kind of device by settings and frames.
func TestBackend(t *testing.T) {
	const head = `{"segments": [], "device_traces": [[{"action": "alloc", "addr": 4096, "size": 512, "stream": 0, ` +
		`"frames": [{"filename": "%", "line": 1, "name": "&"}]}]]`
	for _, c := range []struct{ file, name, settings, want string }{
		{"train.py", "step", "", "cuda"},
		{"/lib/python3.12/site-packages/torch/cuda/memory.py", "empty_cache", "", "cuda"},
		{"/home/u/xpu/npu/hip.py", "hip", "", "cuda"},
		{"/lib/python3.12/site-packages/torch_npu/npu/memory.py", "f", "", "npu"},
		{"??", "c10_npu::NPUCachingAllocator::malloc(int)", "", "npu"},
		{`C:\\site-packages\\torch\\xpu\\memory.py`, "f", "", "xpu"},
		{"??", "c10::xpu::XPUCachingAllocator::malloc(int)", "", "xpu"},
		{"??", "c10::hip::HIPCachingAllocator::Native::malloc(int)", "", "hip"},
		{"/opt/rocm/lib/libamdhip64.so.7", "??", "", "hip"},
		{"train.py", "step", `"PYTORCH_ALLOC_CONF": "", "expandable_segments": false`, "xpu"},
		{"train.py", "step", `"PYTORCH_HIP_ALLOC_CONF": ""`, "hip"},
		{"train.py", "step", `"PYTORCH_CUDA_ALLOC_CONF": "release_lock_on_hipmalloc:True"`, "hip"},
		{"train.py", "step", `"PYTORCH_CUDA_ALLOC_CONF": ""`, "cuda"},
	} {
		text := strings.NewReplacer("%", c.file, "&", c.name).Replace(head)
		if c.settings != "" {
			text += `, "allocator_settings": {` + c.settings + `}`
		}
		if got := fromJSON(t, text+"}").Writer.Backend; got != c.want {
			t.Errorf("%s, %s, {%s}: %q, want %q", c.file, c.name, c.settings, got, c.want)
		}
	}
}

// Blocks that are larger than by default tell of a setting that old files do not record.
func TestRounded(t *testing.T) {
	const file = `{"segments": [{"device": 0, "address": 4096, "total_size": 4096, "stream": 0, "is_expandable": false,
		"segment_type": "small", "blocks": [{"size": SIZE, "requested_size": 2600, "state": "active_allocated",
		"address": 4096}]}], "device_traces": [[{"action": "alloc", "addr": 4096, "size": 2600, "stream": 0},
		{"action": "alloc", "addr": 512, "size": 1, "stream": 0}]]}`
	missing(t, fromJSON(t, strings.ReplaceAll(file, "SIZE", "3072")), "right for the default")
	missing(t, fromJSON(t, strings.ReplaceAll(file, "SIZE", "4096")),
		"roundup_power2_divisions was set, since live blocks (1)")
}

// A page whose allocations are never freed was filtered by trace_plot -f.
func TestFilteredPage(t *testing.T) {
	const trace = `{"segments": [], "device_traces": [[
		{"action": "alloc", "addr": 512, "size": 512, "stream": 0},
		{"action": "alloc", "addr": 1024, "size": 512, "stream": 0},
		{"action": "free_requested", "addr": %, "size": 512, "stream": 0}]]}`
	for addr, filtered := range map[string]bool{"512": false, "9999": true} {
		page := plotPage(strings.Replace(trace, "%", addr, 1))
		s, err := Read(t.Context(), strings.NewReader(page), "x.html", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(s.Missing, "\n"), "trace_plot -f"); got != filtered {
			t.Errorf("free of %s: filtered %v, want %v", addr, got, filtered)
		}
	}
}

// The real snapshots are not part of the module: they are tested where they lie beside it.
func TestRealFiles(t *testing.T) {
	for name, want := range map[string]struct {
		writer         string
		devices        int
		times, stacks  bool
		missing, lacks string
	}{
		"torch-2.0-history.pickle":              {"2.0", 1, false, true, "only the last event", "requested sizes"},
		"torch-2.2-two-devices-no-trace.pickle": {"2.1 to 2.2", 2, false, true, "the trace", ""},
		"torch-2.3-small.pickle":                {"2.3 to 2.7", 1, true, true, "", "call stacks"},
		"torch-2.4-one-event.pickle":            {"2.3 to 2.7", 1, true, true, "only the last event", ""},
		"torch-2.6-annotations.pickle":          {"2.5 to 2.7", 1, true, true, "", "trace"},
		"torch-2.6-trace-plot.html":             {"2.5 to 2.7", 1, true, true, "", "trace_plot -f"},
		"torch-2.9-inference.pickle":            {"2.9", 1, true, true, "", "call stacks"},
	} {
		paths, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "real", name))
		if len(paths) == 0 {
			t.Skip("the real snapshots are not here")
		}
		s, err := Open(t.Context(), paths[0], Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Writer.Text != want.writer || s.NumDevices() != want.devices || s.HasTimes != want.times ||
			s.HasStacks != want.stacks {
			t.Errorf("%s: writer %q, %d devices, times %v, stacks %v", name, s.Writer.Text, s.NumDevices(), s.HasTimes,
				s.HasStacks)
		}
		notes := strings.Join(s.Missing, "\n")
		if !strings.Contains(notes, want.missing) || want.lacks != "" && strings.Contains(notes, want.lacks) {
			t.Errorf("%s: notes %q", name, s.Missing)
		}
		for i := range s.Segments {
			seg := &s.Segments[i]
			var sum int64
			for _, b := range blocksOf(s, seg) {
				if b.Address != seg.Address+uint64(sum) {
					t.Fatalf("%s: block at %#x, want %#x", name, b.Address, seg.Address+uint64(sum))
				}
				sum += b.Size
			}
			if sum != seg.TotalSize {
				t.Errorf("%s: blocks of segment %#x sum to %d of %d bytes", name, seg.Address, sum, seg.TotalSize)
			}
		}
	}
}
