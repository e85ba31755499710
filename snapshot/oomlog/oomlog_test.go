package oomlog

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		os.WriteFile(path+".got", []byte(got), 0o644)
		t.Errorf("%s differs from %s.got", path, path)
	}
}

// collect scans a text that has no errors.
func collect(t testing.TB, text string) []Message {
	t.Helper()
	var out []Message
	if err := Scan(strings.NewReader(text), func(m Message) error { out = append(out, m); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// fields are the sizes of a message by name.
func (m *Message) fields() map[string]Size {
	out := map[string]Size{}
	for name, s := range map[string]Size{
		"tried": m.Tried, "total": m.Total, "free": m.Free, "allowed": m.Allowed, "allocated": m.Allocated,
		"unallocated": m.Unallocated, "reserved": m.Reserved, "active": m.Active, "pools": m.PrivatePools,
		"other": m.Other,
	} {
		if s.Known() && !s.Derived {
			out[name] = s
		}
	}
	for i, p := range m.Processes {
		out[fmt.Sprintf("process %d #%d", p.PID, i)] = p.Used
	}
	return out
}

// facts is all of a message on one line, but for its place and text.
func (m *Message) facts() string {
	s := fmt.Sprintf("%s %s dev %d rank %d class %q", m.Family, m.Backend, m.Device, m.Rank, m.Class)
	f := m.fields()
	var names []string
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s += fmt.Sprintf(" %s=%d", name, f[name].Bytes)
	}
	return s + fmt.Sprintf(" hint %q cut %v", m.Hint, m.Cut)
}

// cases reads testdata/oom_cases.txt.
func cases(t testing.TB) (names, texts []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "oom_cases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(data), "\n== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		names, texts = append(names, name), append(texts, text)
	}
	return names, texts
}

// real reads the messages that people reported, nil where they are not at hand.
func real(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "real", "oom_messages.jsonl"))
	if err != nil {
		return nil
	}
	var out []string
	for line := range bytes.Lines(data) {
		var v struct{ Text string }
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v.Text)
	}
	return out
}

// printed matches a size in a message, told by other means than the parser's. What is not
// available is no size.
var printed = regexp.MustCompile(`(\d+(?:\.\d+)?) (bytes|[KMG]i?B)\b`)

// checkSizes holds that each printed size is in exactly one field.
func checkSizes(t *testing.T, name, text string, m *Message) {
	t.Helper()
	var want, got []string
	text = strings.ReplaceAll(text, "17179869184.00 GiB", "")
	for _, g := range printed.FindAllStringSubmatch(text, -1) {
		var v float64
		fmt.Sscan(g[1], &v)
		unit := map[byte]float64{'b': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[g[2][0]]
		want = append(want, fmt.Sprintf("%.15g", math.Round(v*unit)))
	}
	for name, s := range m.fields() {
		if s.Known() || !strings.HasPrefix(name, "process") {
			got = append(got, fmt.Sprintf("%.15g", float64(s.Bytes)))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: sizes %v, printed are %v", name, got, want)
	}
}

func TestCases(t *testing.T) {
	names, texts := cases(t)
	var all strings.Builder
	for i, text := range texts {
		found := collect(t, text)
		if len(found) != 1 {
			t.Errorf("%s: %d messages", names[i], len(found))
			continue
		}
		m := &found[0]
		checkSizes(t, names[i], text, m)
		if want, _, _ := strings.Cut(names[i], ":"); len(want) == 1 && string(m.Family) != want {
			t.Errorf("%s: family %s", names[i], m.Family)
		}
		fmt.Fprintf(&all, "%s\n\t%s\n\t%s\n", names[i], m.facts(), m.Text)
	}
	golden(t, "oom_cases.golden", all.String())
}

// TestReal reads every message that people reported. The golden file has no texts.
func TestReal(t *testing.T) {
	texts := real(t)
	if texts == nil {
		t.Skip("no reported messages here")
	}
	var all strings.Builder
	for i, text := range texts {
		found := collect(t, text)
		if len(found) != 1 {
			t.Errorf("%d messages in %q", len(found), text)
			continue
		}
		checkSizes(t, fmt.Sprint("row ", i+1), text, &found[0])
		fmt.Fprintf(&all, "%d %s\n", i+1, found[0].facts())
	}
	golden(t, "oom_real.golden", all.String())
}

// TestNone holds that text about memory is no message.
func TestNone(t *testing.T) {
	for _, text := range []string{
		"",
		"If you get CUDA out of memory errors, reduce the batch size.\n",
		"WARNING: CUDA out of memory, retrying with half the batch\n",
		"except torch.cuda.OutOfMemoryError:\n    torch.cuda.empty_cache()\n",
		"    except torch.OutOfMemoryError as e:\n",
		"raise OutOfMemoryError('Allocation failed')\n",
		"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n",
		"Out of memory: Killed process 4242 (python) total-vm:1024kB\n",
		"    if 'CUDA out of memory' in str(e):\n",
		"    if \"CUDA error: out of memory\" in str(e) or \"CUDA error: out of memory\" not in text:\n",
		"if you see CUDA error: out of memory, use a smaller model\n",
		"        ss << \"CUDA out of memory. Tried to allocate \" << format_size(alloc_size);\n",
		"\"CUDA out of memory. Tried to allocate \", format_size(size), \" (GPU \", device, \"; \",\n",
		"if (err == cudaErrorMemoryAllocation) { cudaGetLastError(); }\n",
		"CUBLAS_STATUS_ALLOC_FAILED means that cuBLAS could not get memory\n",
		"case CUBLAS_STATUS_ALLOC_FAILED: return \"CUBLAS_STATUS_ALLOC_FAILED\";\n",
		"Search for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/cuda\n",
		"a tank with a total capacity of 40 GiB of which half is free; GPU capacity\n",
		"GPU 0 has a total capacity of 40 GiB\n",
		"mmdet - INFO - Epoch [1][50/1000] time: 0.62, memory: 12345, loss: 0.5\n",
		"Of the allocated memory 3.54 GiB is allocated by PyTorch\n",
		"|  Allocated memory      |   3116 MiB |  21865 MiB |      0 B   |      0 B   |\n",
		"K. MPS: `MPS backend out of memory (MPS allocated: {}, other allocations: {}).`\n",
		"CUDA out of memory. Allocation was preemptively rejected because it would exceed " +
			"per_process_memory_fraction limit. Requested size: {}\n",
		"not from the allocator: `CUDA error: out of memory`, `cudaErrorMemoryAllocation`, " +
			"`CUBLAS_STATUS_ALLOC_FAILED`\n",
		"0.98 memory: 12 GiB of\n0.97 memory: 13 GiB\n",
		"NotCUDA out of memory. Tried to allocate 2.00 GiB\n",
	} {
		for _, m := range collect(t, text) {
			t.Errorf("%q: found %s", text, m.facts())
		}
	}
}

func TestPlaces(t *testing.T) {
	_, texts := cases(t)
	var log strings.Builder
	var lines, offsets []int64
	at := int64(1)
	for i, text := range texts[:8] {
		pad := strings.Repeat(fmt.Sprintf("step %d, memory 1 GiB\n", i), 5000*i)
		log.WriteString(pad)
		at += int64(strings.Count(pad, "\n"))
		head := strings.Index(text, "CUDA out of")
		lines, offsets = append(lines, at), append(offsets, int64(log.Len()+head))
		log.WriteString(text + "\n")
		at += int64(strings.Count(text, "\n")) + 1
	}
	found := collect(t, log.String())
	if len(found) != len(lines) {
		t.Fatalf("%d messages, want %d", len(found), len(lines))
	}
	for i, m := range found {
		if m.Line != lines[i] || m.Offset != offsets[i] {
			t.Errorf("message %d: line %d, byte %d; want %d, %d", i, m.Line, m.Offset, lines[i], offsets[i])
		}
	}
}
