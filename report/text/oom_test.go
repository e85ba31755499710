package text

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/fixtures/golden"
)

func oomReport(t *testing.T, text string, events ...oom.Event) *oom.Log {
	t.Helper()
	log, err := oom.ReadLog("train.log", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if log.Messages == 0 {
		t.Fatalf("no message in %q", text)
	}
	name := ""
	if events != nil {
		name = "snapshot.pickle"
	}
	log.Join(name, events)
	return log
}

const oomHead = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU 0 has a total capacity of " +
	"16.00 GiB of which %s is free. "

func oomTail(allocated, unallocated string) string {
	return "Of the allocated memory " + allocated + " is allocated by PyTorch, and " + unallocated +
		" is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting " +
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n"
}

// oomLogs are logs for every cause.
func oomLogs() [][2]string {
	return [][2]string{
		{"fragmentation", fmt.Sprintf(oomHead, "2.00 GiB", "348.00 MiB") +
			"Including non-PyTorch memory, this process has 14.66 GiB memory in use. Process 4242 has 1024.00 " +
			"MiB memory in use. " + oomTail("3.54 GiB", "10.62 GiB")},
		{"capacity, in a container", fmt.Sprintf(oomHead, "20.00 MiB", "8.00 MiB") +
			"Process 9 has 15.90 GiB memory in use. " + oomTail("15.20 GiB", "2.00 MiB")},
		{"other-processes", fmt.Sprintf(oomHead, "4.00 GiB", "1.00 GiB") +
			"Process 7 has 9.00 GiB memory in use. Including non-PyTorch memory, this process has 6.00 GiB " +
			"memory in use. " + oomTail("5.00 GiB", "512.00 MiB")},
		{"other-processes, not told apart", fmt.Sprintf(oomHead, "4.00 GiB", "1.00 GiB") +
			"Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. " +
			oomTail("5.00 GiB", "512.00 MiB")},
		{"joined", fmt.Sprintf(oomHead, "2.00 GiB", "600.00 MiB") + oomTail("12.00 GiB", "1.80 GiB")},
		{"capacity, no more than usual in pieces", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 20.00 MiB. " +
			"GPU 0 has a total capacity of 11.93 GiB of which 5.62 MiB is free. Of the allocated memory 10.43 GiB is " +
			"allocated by PyTorch, and 94.57 MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to " +
			"release all unoccupied cached memory.\n"},
		{"capacity, of which free is not printed", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.00 " +
			"GiB. GPU 0 has a total capacity of 13.74 GiB. Of the allocated memory 10.10 GiB is allocated by PyTorch, " +
			"and 3.47 GiB is reserved by PyTorch but unallocated.\n"},
		{"unknown, free is not printed", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 8.00 GiB. GPU 0 " +
			"has a total capacity of 15.11 GiB. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is " +
			"reserved by PyTorch but unallocated.\n"},
		{"room, within a limit", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 8.11 GiB. GPU 0 has a " +
			"total capacity of 16.54 GiB of which 16.54 GiB is free. 8.27 GiB allowed; Of the allocated memory 0 bytes " +
			"is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.\n"},
		{"room, more than the device has", "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB. GPU " +
			"0 has a total capacity of 15.49 GiB of which 84.98 GiB is free. Of the allocated memory 1.67 GiB is " +
			"allocated by PyTorch, and 8.08 GiB is reserved by PyTorch but unallocated.\n"},
		{"other-processes, that are listed and have much", "torch.OutOfMemoryError: CUDA out of memory. Tried to " +
			"allocate 56.00 MiB. GPU 0 has a total capacity of 7.79 GiB of which 20.75 MiB is free. Process 41 has 2.54 " +
			"GiB memory in use. Process 42 has 274.00 MiB memory in use. Process 43 has 274.00 MiB memory in use. " +
			"Process 44 has 274.00 MiB memory in use. Including non-PyTorch memory, this process has 4.41 GiB memory in " +
			"use. " + oomTail("3.90 GiB", "220.70 MiB")},
		{"unknown, cut behind this process", "CUDA out of memory. Tried to allocate 8.00 GiB. GPU 5 has a total " +
			"capacity of 23.52 GiB of which 6.62 GiB is free. Including non-PyTorch memory, this process has 16.44 GiB " +
			"memory in use. Process 41 has 448.00 MiB memory in use.\n"},
		{"unknown, cut among processes of a container", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " +
			"1.50 GiB. GPU 0 has a total capacity of 79.18 GiB of which 41.00 MiB is free. Process 41 has 50.74 GiB " +
			"memory in use. Process 42 has 14.72 GiB memory in use.\n"},
		{"capacity, half of it outside PyTorch", "CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has a total " +
			"capacty of 79.14 GiB of which 1.49 GiB is free. Process 41 has 77.08 GiB memory in use. Process 42 has " +
			"586.00 MiB memory in use. Of the allocated memory 37.13 GiB is allocated by PyTorch, and 292.06 MiB is " +
			"reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting " +
			"max_split_size_mb to avoid fragmentation.\n"},
		{"fragmentation, of Ascend", "RuntimeError: NPU out of memory. Tried to allocate 5.03 GiB (NPU 3; 60.96 GiB " +
			"total capacity; 49.47 GiB already allocated; 49.47 GiB current active; 1.32 GiB free; 57.55 GiB reserved " +
			"in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid " +
			"fragmentation.\n"},
		{"room", fmt.Sprintf(oomHead, "1.00 GiB", "6.00 GiB") + oomTail("9.00 GiB", "0 bytes")},
		{"room, and pieces", fmt.Sprintf(oomHead, "1.00 GiB", "6.00 GiB") + oomTail("6.00 GiB", "3.00 GiB")},
		{"too-large", fmt.Sprintf(oomHead, "31.25 GiB", "1.00 GiB") + oomTail("14.00 GiB", "600.00 MiB")},
		{"absurd", fmt.Sprintf(oomHead, "67109892.10 GiB", "1.00 GiB") + oomTail("14.00 GiB", "600.00 MiB")},
		{"absurd, more than 1 EB", "RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.\n"},
		{"limit", fmt.Sprintf(oomHead, "2.00 MiB", "14.00 GiB") + "1.05 GiB allowed; " +
			oomTail("1017.01 MiB", "57.99 MiB")},
		{"limit, rejected",
			"torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would " +
				"exceed per_process_memory_fraction limit. Requested size: 3.00 GiB\n"},
		{"limit, MPS",
			"RuntimeError: MPS backend out of memory (MPS allocated: 18.02 GB, other allocations: 107.10 MB, max " +
				"allowed: 18.13 GB). Tried to allocate 4.50 MB on private pool.\n"},
		{"limit, MPS with more outside PyTorch",
			"RuntimeError: MPS backend out of memory (MPS allocated: 7.43 GB, other allocations: 24.46 GB, max " +
				"allowed: 32.00 GB). Tried to allocate 129.21 MB on private pool.\n"},
		{"private-pools", fmt.Sprintf(oomHead, "512.00 MiB", "100.00 MiB") +
			strings.Replace(oomTail("14.00 GiB", "64.00 MiB"), "PyTorch,",
				"PyTorch, with 1.00 GiB allocated in private pools (e.g., CUDA Graphs),", 1)},
		{"capacity, spilled", fmt.Sprintf(oomHead, "256.00 MiB", "0 bytes") + oomTail("37.10 GiB", "735.87 MiB")},
		{"capacity, cudaMallocAsync",
			"torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of " +
				"memory)\nCurrently allocated     : 5.64 GiB\nRequested               : 2.00 GiB\nDevice limit       " +
				"     : 8.00 GiB\nFree (according to CUDA): 0 bytes\n"},
		{"outside", "torch.AcceleratorError: CUDA error: out of memory\n"},
		{"host",
			"RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 34359738368 bytes.\n"},
		{"unknown", "torch.OutOfMemoryError: Allocation on device \n"},
	}
}

func oomText(t *testing.T, r *oom.Log, o Options) string {
	return render(t, func(w io.Writer) error { return OOM(w, r, o) })
}

func TestOOMGolden(t *testing.T) {
	var all strings.Builder
	for _, l := range oomLogs() {
		r := oomReport(t, l[1])
		if want, _, _ := strings.Cut(l[0], ","); string(r.Groups[r.Main].Cause) != want {
			t.Errorf("%s: cause %s", l[0], r.Groups[r.Main].Cause)
		}
		all.WriteString("== " + l[0] + "\n" + oomText(t, r, Options{}) + "\n")
	}
	event := oom.Event{Device: 0, Index: 7975, Segment: 2 << 30, Free: 348 << 20, Reserved: 14<<30 + 200<<20,
		Allocated: 3 << 30, Site: "train.py:9 main"}
	first, second := oomLogs()[0][1], oomLogs()[2][1]
	all.WriteString("== joined with a snapshot\n" + oomText(t, oomReport(t, first, event), Options{Color: true}))
	event.Segment = 20 << 20
	all.WriteString("== joined with another event\n" + oomText(t, oomReport(t, first, event), Options{}))
	all.WriteString("== joined with no event\n" + oomText(t, oomReport(t, first, []oom.Event{}...), Options{}))
	ranks := ""
	for _, rank := range []int{3, 0, 1, 2, 7, 1} {
		ranks += fmt.Sprintf("[rank%d]: %s", rank, first)
	}
	all.WriteString("== several\n" + oomText(t, oomReport(t, "CUDA error: out of memory\n"+ranks+second), Options{}))
	all.WriteString("== several, all explained\n" + oomText(t, oomReport(t, ranks+second), Options{All: true}))
	golden.Check(t, "oom.txt", []byte(all.String()))
}

// TestOOMFits holds the usualWidth and the number of lines, and keeps control characters of a log
// from the terminal.
func TestOOMFits(t *testing.T) {
	var many strings.Builder
	for i, l := range oomLogs() {
		many.WriteString(l[1])
		fmt.Fprintf(&many, "[rank%d]: \x1b]0;x\a\u202e"+strings.Repeat("Long", 40)+"Error: CUDA out of memory. "+
			"Tried to allocate %d.00 MiB. GPU 0 has a total capacity of 1.00 GiB of which 0 bytes is free. ", i*2, i)
		for pid := range 40 {
			fmt.Fprintf(&many, "Process %d has 17179869184.00 GiB memory in use. ", pid+1e9)
		}
		many.WriteString("\n")
	}
	event := oom.Event{Site: strings.Repeat("deep/", 50) + "\x1b[2Jx.py:1 f"}
	for i, l := range append(oomLogs(), [2]string{"many", many.String()}) {
		for _, all := range []bool{false, true} {
			r := oomReport(t, l[1], event)
			r.Name, r.Snapshot = strings.Repeat("name\r", 30), strings.Repeat("\x1bsnapshot", 30)
			out := oomText(t, r, Options{All: all})
			if strings.ContainsAny(out, "\x1b\a\r\t\u202e") {
				t.Errorf("%s: control characters", l[0])
			}
			for line := range strings.Lines(out) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > usualWidth {
					t.Errorf("%s: %d columns: %s", l[0], n, line)
				}
			}
			if n := strings.Count(out, "\n"); i < len(oomLogs()) && n > 40 {
				t.Errorf("%s: %d lines", l[0], n)
			}
		}
	}
}

func TestRankWords(t *testing.T) {
	for want, ranks := range map[string][]int{
		"rank 3": {3}, "ranks 0 to 3, 7": {0, 1, 2, 3, 7}, "ranks 1, 3": {1, 3}, "ranks 1, 2": {1, 2},
		"ranks 0, 2, 4, 6, 8, 10, 12, ... 2 more": {0, 2, 4, 6, 8, 10, 12, 14, 16},
	} {
		if got := rankWords(ranks); got != want {
			t.Errorf("%v: %q, want %q", ranks, got, want)
		}
	}
}
