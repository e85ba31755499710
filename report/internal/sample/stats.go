package sample

import (
	"fmt"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/counters"
)

// Stats is a report on two files of counters, one of them damaged, and on a text of nvidia-smi,
// beside a made-up comparison.
func Stats(t testing.TB) *analyze.Stats {
	t.Helper()
	var one, two strings.Builder
	for i := range 24 {
		live := 500<<20 + i*8<<20
		fmt.Fprintf(&one, `{"time": %d.5, "step": %d, "epoch": %d, "device": 0, "allocated_bytes.all.current": %d, "active_bytes.all.current": %d, `+
			`"reserved_bytes.all.current": %d, "allocation.all.current": %d, "num_alloc_retries": %d, "num_ooms": 0}`+"\n",
			1790000000+2*i, i, i/4, live, live+i%3<<20, live+200<<20, 100+i, i/20)
		fmt.Fprintf(&one, `{"step": %d, "device": 1, "allocated_bytes.all.current": %d, "allocated_bytes.all.peak": %d, "reserved_bytes.all.current": %d}`+"\n",
			i, 300<<20, 390<<20-i/8<<20, 400<<20)
		fmt.Fprintf(&two, `{"rank": 7, "memory_allocated": %d, "memory_reserved": %d, "x\u001b[31m.all.current": 1}`+"\n", 900<<20-min(i, 21)*40<<20, 900<<20)
	}
	one.WriteString("{\"num_ooms\": -1}\n{]\n{\"loss\": 2}\n{\"step\": 24, \"allo")
	smi := "| NVIDIA-SMI 535.1  Driver Version: 535.1  CUDA Version: 12.2 |\n|   0  NVIDIA X\x1b[31m Y  Off  | 00000000:19:00.0 Off |\n|  8W | 9637MiB / 12192MiB |\n" +
		"|    0   N/A  N/A    772207      C   python    9635MiB |\n|    0   N/A  N/A    5      G   /usr/lib/xorg/Xorg    N/A |\n" +
		"|  1    3   0   0  |  14366MiB / 19968MiB | 28 |\n"
	var r analyze.Stats
	for _, f := range []struct{ name, text string }{{"rank0.jsonl", one.String()}, {"rank7.jsonl", two.String()}, {"smi.txt", smi},
		{"query.csv", "index, name, memory.used [MiB], memory.free [MiB]\n0, X, 5 MiB, 7 MiB\n"}} {
		if err := r.Add(t.Context(), "-", strings.NewReader(f.text), analyze.StatsOptions{Options: counters.Options{Metrics: []string{"num_ooms"}}, Capacity: 1 << 30}); err != nil {
			t.Fatal(err)
		}
		r.Files[len(r.Files)-1].Info.Name = f.name
	}
	r.Snapshot = "snapshot.pickle"
	r.Checks = []*counters.Check{{Device: 0, Event: 1234, Moment: "found by its 100 allocations and 50 frees", Whole: true, Unchecked: 2, Reasons: []string{"Peaks were reset."},
		Rows: []counters.Row{
			{Name: "active.all.current", Stats: 3, Step: 1, Snapshot: 3, Agreement: counters.Equal},
			{Name: "allocated_bytes.all.current", Stats: 1 << 20, Step: 1 << 20, Snapshot: 1<<20 + 5, Agreement: counters.Within},
			{Name: "allocated_bytes.all.peak", Stats: 512, Step: 1, Snapshot: 1024, Agreement: counters.Differs, Why: "peaks were reset"},
		}}}
	return &r
}
